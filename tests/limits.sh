#!/bin/bash
# Where the system gives less than a command needs: a message and exit code 1 (6 where a library cannot be loaded), never
# a signal and never a silent failure: limits.sh DTSIM
#   full        every command that prints, into a device that is full
#   descriptors, memory, stack, fork, sizes of files    limits of a process
#   reads       that end in an error, and a line without an end
#   pipes       that nobody writes
#   /proc       that is not there
set -u
dtsim=$(realpath "$1")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
unset DTSIM_DATA
failed=0 tried=0 refused=0

cat >s.yaml <<'END'
model: {stages: {forward: 1 s, backward: 2 s, boundary: 1 MB}}
cluster: {nodes: 2, gpus_per_node: 2, inside: {bandwidth: 300 GB/s, latency: 1 us},
          network: {bandwidth: 25 GB/s, latency: 5 us}}
batch: {micro_batches: 4}
strategy: {pipeline: 4}
END
echo '{"base": "s.yaml"}' >requests
"$dtsim" run s.yaml -o out >log 2>&1 && "$dtsim" sweep s.yaml --set strategy.pipeline=1,2 -o rows >log 2>&1 || { cat log; exit 1; }

complain()
{
    echo "$*: exit code $code"
    head -c 500 said
    failed=1
}

while read -r words; do
    tried=$((tried + 1))
    # shellcheck disable=SC2086
    "$dtsim" $words >/dev/full 2>said <requests
    code=$?
    if [ $code != 1 ] || ! grep -q 'cannot write to standard output' said || [ "$(wc -l <said)" -gt 8 ]; then
        complain "$words >/dev/full"
    fi
done <<'END'
--version
--help
help
help --man
help run
help scenario
help dgx-h100
run --help
list
list gpus
schema
completion bash
completion zsh
completion fish
completion words -- run a.yaml --set strategy.
run s.yaml
run s.yaml --json
run absent.yaml --json
run --nope --json
show s.yaml
show s.yaml --figure
show s.yaml --program
show s.yaml --memory
check s.yaml
compare s.yaml s.yaml
compare s.yaml s.yaml --json
explain s.yaml
explain out
explain out --json
sweep s.yaml --set strategy.pipeline=1,2 --dry-run
results rows
results rows --json
results rows --csv
results rows --markdown
collective dgx-h100 --ranks 8 --bytes 1M
collective dgx-h100 --ranks 8 --bytes 1M --json
serve -j 1
END
echo "$tried commands into a full device"

# limited LIMIT COMMAND...: it does what it does without the limit, or says why not. A long environment takes stack too.
limited()
{
    local limit=$1

    shift
    tried=$((tried + 1))
    # shellcheck disable=SC2086
    (exec >printed 2>said <requests && ulimit $limit && exec env -i PATH="$PATH" HOME="${HOME-/}" "$dtsim" "$@") 2>shell
    code=$?
    case $code in
    0) ;;
    # workers of a sweep may lack the memory that the program itself has
    3) refused=$((refused + 1)) && grep -q 'out of memory' printed || complain "$* ($limit)" ;;
    1 | 6) refused=$((refused + 1)) && [ -s said ] || complain "$* ($limit), which says nothing" ;;
    127) grep -q 'loading shared libraries' said || complain "$* ($limit)" ;;    # before the program has begun
    *) complain "$* ($limit)" ;;
    esac
}

all()
{
    limited "$1" --version
    limited "$1" schema
    limited "$1" list gpus
    limited "$1" check s.yaml
    limited "$1" run s.yaml --json
    limited "$1" run s.yaml --engine fast -o out
    limited "$1" compare s.yaml s.yaml
    limited "$1" explain out
    limited "$1" sweep s.yaml --set strategy.pipeline=1,2 -o rows -j 2 --force
    limited "$1" results rows
    limited "$1" plot gantt out
    limited "$1" collective dgx-h100 --ranks 8 --bytes 1M --engine fast
    limited "$1" serve -j 2
}

# Reads of this file end in an error.
tried=0
mem=/proc/self/mem
mkdir long unread
ln -s $mem unread/shard-1-of-1.jsonl
while read -r words; do
    tried=$((tried + 1))
    # shellcheck disable=SC2086
    timeout 20 "$dtsim" $words >/dev/null 2>said </dev/null
    code=$?
    [ $code = 1 ] && grep -q 'cannot read.*Input/output error' said || complain "$words"
done <<END
check $mem
run $mem
train $mem
plan $mem
sweep $mem
validate $mem
collective --table $mem
calibrate fit $mem
results unread
import nccl-tests $mem
import kineto $mem
import pytorch-schedule $mem
import pipedream-profile $mem
import megatron $mem
import deepspeed $mem
check s.yaml --set cluster=$mem
check s.yaml --set cluster.gpu=$mem
check s.yaml --set cluster.communication=$mem
check s.yaml --set software=$mem
END
echo "$tried reads that end in an error"
{ head -1 rows/shard-1-of-1.jsonl; head -c 17000000 /dev/zero | tr '\0' x; echo; } >long/shard-1-of-1.jsonl
"$dtsim" results long >/dev/null 2>said
code=$?
[ $code = 4 ] && grep -q 'jsonl:2:1: error: a line of more than 16777216 bytes' said || complain "a long line"

# 80,000 mistakes take no longer than reading them: nothing is looked up for messages that are not shown, and keys are found by
# hash. The limit is of seconds of a processor: some of these took a minute.
cat >mistakes.py <<'END'
import json
many = range(80000)
small = 'model: {stages: {forward: 1 s, backward: 2 s}}\nbatch: {micro_batches: 4}\n'
keys = ''.join(f'  k{i}: 1\n' for i in many)
for name, text in {
    'top.yaml': small + 'cluster: ideal\nstrategy: {pipeline: 2}\n' + keys.replace('  ', ''),
    'strategy.yaml': small + 'cluster: ideal\nstrategy:\n  pipeline: -1\n  schedule: nope\n' + keys,
    'cluster.yaml': small + 'strategy: {pipeline: 2}\ncluster:\n  platform: nope\n' + keys,
    'axes.yaml': small + 'cluster: ideal\nstrategy: {pipeline: 2}\nplan:\n' + keys,
    'names.yaml': small + 'cluster: ideal\nstrategy: {pipeline: 2}\nmemory: {recompute: {modules: [' + ', '.join(map('zz{}'.format, many)) + ']}}\n',
    'layers.yaml': 'cluster: ideal\nmodel:\n  layers:\n' + '    - {forwrd: 1 s, backwrd: 1 s}\n' * 40000,
    'grid.yaml': 'base: s.yaml\nsweep:\n  grid:\n' + ''.join(f'    strategy.k{i}: [1, 2]\n' for i in many),
    'where.yaml': 'base: s.yaml\nsweep:\n  grid: {strategy.pipeline: [1, 2]}\n  where:\n' + ''.join(f'    - k{i} > 1\n' for i in many),
    'platform.yaml': keys.replace('  ', ''), 'bridge.yaml': 'train:\n' + keys,
    'hf.yaml': 'model: {hf_config: hf.json, sequence: 128}\ncluster: dgx-h100\nbatch: {global: 8, micro: 1}\n',
    'hf.json': json.dumps({'model_type': 'llama', **{f'k{i}': 1 for i in many}}),
    'ds.json': json.dumps({'train_batch_size': 8, **{f'k{i}': 1 for i in many}}),
}.items():
    open(name, 'w').write(text)
END
if ! grep -q __asan_init "$dtsim" && python3 mistakes.py; then
    tried=0
    while read -r expected words; do
        tried=$((tried + 1))
        # shellcheck disable=SC2086
        (ulimit -t 4; exec "$dtsim" $words) >said 2>&1 </dev/null
        code=$?
        [ $code = "$expected" ] || complain "$words"
    done <<'END'
4 check top.yaml
4 check strategy.yaml
4 check cluster.yaml
4 plan axes.yaml
4 check names.yaml
4 check layers.yaml
4 compare strategy.yaml cluster.yaml
4 sweep grid.yaml --dry-run
4 sweep where.yaml --dry-run
4 collective platform.yaml --ranks 2 --bytes 1M
4 run s.yaml --set cluster.gpu=./platform.yaml
4 run s.yaml --set software=./platform.yaml
0 check hf.yaml
4 import deepspeed ds.json
4 import bridge bridge.yaml
4 validate top.yaml
END
    echo "$tried files of 80,000 mistakes"
    # Budgets of memory hold while a scenario is read and its stages are made: MiB that a command may hold, its words.
    cat >held.py <<'END'
import resource, subprocess, sys
open('layers.yaml', 'w').write('cluster: ideal\nbatch: {micro_batches: 4}\nstrategy: {pipeline: 2}\nmodel:\n  layers:\n' +
                               '    - {forward: 1 ms, backward: 1 ms}\n' * 150000)
for most, budget, code, words in (36, '30 MiB', 7, 'run layers.yaml'), (240, '200 MiB', 7, 'run layers.yaml'), (
        400, '40 MiB', 3, 'sweep layers.yaml --set batch.micro_batches=1,2 -o held -j 1'):
    child = subprocess.Popen([sys.argv[1], *words.split(), '--engine', 'fast', '--budget', budget], stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL)
    status, usage = child.wait(), resource.getrusage(resource.RUSAGE_CHILDREN)
    held = usage.ru_maxrss >> 10         # of the largest so far
    if status != code or held > most:
        sys.exit(f'{words} --budget {budget}: exit code {status}, {held} MiB')
END
    python3 held.py "$dtsim" >said 2>&1
    code=$?
    [ $code = 0 ] || complain "budgets of memory"
fi

# Nobody writes these pipes: in a folder they are refused, and what a command names is waited for within the budget alone.
tried=0
mkdir pipes pipes/r pipes/t
mkfifo pipes/r/result.json pipes/t/shard-1-of-1.jsonl pipes/pipe
printf 'base: pipes/pipe\nsweep: {grid: {strategy.pipeline: [1, 2]}}\n' >pipes/s.yaml
while read -r expected words; do
    tried=$((tried + 1))
    # shellcheck disable=SC2086
    timeout 20 "$dtsim" $words >said 2>&1 </dev/null
    code=$?
    [ $code = "$expected" ] || complain "$words"
done <<'END'
4 report pipes/r
4 explain pipes/r
3 compare pipes/r s.yaml
4 plot gantt pipes/r
4 results pipes/t
4 sweep s.yaml --set strategy.pipeline=1,2 -o pipes/t
4 sweep pipes/s.yaml --dry-run
4 check s.yaml --set strategy.schedule.csv=pipes/pipe
4 check s.yaml --set cluster=pipes/pipe
4 check s.yaml --set software=pipes/pipe
7 run pipes/pipe --budget 0.3s
7 check pipes/pipe --budget 0.3s
7 compare pipes/pipe s.yaml --budget 0.3s
7 explain pipes/pipe --budget 0.3s
7 train pipes/pipe --budget 0.3s
END
echo "$tried pipes that nobody writes"
(sleep 0.3; cat s.yaml) | "$dtsim" run - --budget 20s >said 2>&1 && "$dtsim" run <(sleep 0.3; cat s.yaml) --budget 20s >said 2>&1 &&
    "$dtsim" compare <(cat s.yaml) s.yaml >said 2>&1
code=$?
[ $code = 0 ] || complain "a pipe that somebody writes"

tried=0
for count in 4 5 6 7 8 9; do
    all "-n $count"
done
for kilobytes in 32 64 200 1000 1024; do          # with 16 the system's loader itself may end by a signal
    all "-s $kilobytes"
done
if ! grep -q __asan_init "$dtsim"; then      # the sanitizer itself takes more addresses than the limit leaves
    for kilobytes in 10500 11000 11500 12000 12500 13000 14000 16000 20000 40000 80000; do
        all "-v $kilobytes"
    done
fi
for kilobytes in 1 4 8; do                        # of a file: the messages have room
    all "-f $kilobytes"
done
code=$(find . -name '.*.new' | wc -l)
[ "$code" = 0 ] || complain "temporary files are left"
# Without /proc; the messages of two pipelines meet on links, so that SimGrid gets them.
if ! grep -q __asan_init "$dtsim" && unshare -rm sh -c 'mount -t tmpfs none /proc' 2>/dev/null; then
    tried=$((tried + 1))
    unshare -rm bash -c 'mount -t tmpfs none /proc; ln -s "$1" link; PATH=$PWD; link check s.yaml --set cluster.gpu=h100-80gb &&
        link run s.yaml --set software=megatron-core --engine fast && link sweep s.yaml --set strategy.pipeline=1,2 -o rows2 &&
        ! link run s.yaml --set strategy.pipeline=2 --set strategy.data=2 && ! link run s.yaml --budget "1 MiB"' - "$dtsim" >said 2>&1
    code=$?
    [ $code = 0 ] && grep -q 'stopped by --budget 1 MiB' said && grep -q 'there is no /proc here' said || complain "without /proc"
else
    echo "skipped: nobody may take /proc away here"
fi
# Root may always fork.
if [ "$(id -u)" = 0 ] && setpriv --reuid=65534 --clear-groups "$dtsim" --version >log 2>&1; then
    chmod -R a+rwX .
    real=$dtsim
    printf '#!/bin/sh\nexec setpriv --reuid=65534 --clear-groups "%s" "$@"\n' "$real" >without
    chmod a+x without
    dtsim=$PWD/without
    all "-u 1"
elif [ "$(id -u)" != 0 ]; then
    all "-u 1"
fi
echo "$tried runs under limits, $refused refused"
exit $failed
