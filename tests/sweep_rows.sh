#!/bin/bash
# Rows of sweeps are neither lost nor doubled, whoever writes them and whatever is killed meanwhile.
#   sweep_rows.sh DTSIM same           -j 1, -j 8 and four shards give the same rows, and so does the base in the header
#   sweep_rows.sh DTSIM ends           a crash, a hang and points that are infeasible are rows too: 100 in all, exit 3
#   sweep_rows.sh DTSIM kill [TIMES]   kill -9 of the sweep, and of a worker, at random moments: what goes on completes
#   sweep_rows.sh DTSIM mpi [TIMES]    under mpirun too, also when processes are killed there
#   sweep_rows.sh DTSIM slurm          what Slurm's variables say: ranges, lists, parts that run again, tasks of srun
#   sweep_rows.sh DTSIM disk           the disk is full before the sweep ends: rows stay whole, and what goes on completes
#   sweep_rows.sh DTSIM verify [TIMES] the best are verified once, whoever does it and whatever is killed meanwhile
#   sweep_rows.sh DTSIM memory         a worker that runs out of memory, or is killed for it, costs its row
set -u
dtsim=$(realpath "$1") what=$2 times=${3:-10}
scratch=$(mktemp -d) || exit 2
# A child that is killed before it has become its command would run the trap too.
trap '[ $BASHPID = $$ ] && { umount "$scratch/disk" 2>/dev/null; rm -rf "$scratch"; }' EXIT
cd "$scratch" || exit 2
RANDOM=1
cat >sweep.yaml <<'end'
base:
  model: {stages: {forward: 1 s, backward: 2 s, recompute: 1 s, backward_input: 1 s, backward_weight: 1 s, boundary: 1 MB}}
  cluster: {nodes: 4, gpus_per_node: 4, inside: {bandwidth: 300 GB/s, latency: 1 us}, network: {bandwidth: 25 GB/s, latency: 5 us}}
  batch: {micro_batches: 8}
sweep:
  grid: {strategy.pipeline: {range: [1, 5]}, batch.micro_batches: [8, 16, 32], strategy.schedule: [gpipe, 1f1b, zb-h1, naive]}
end

fail()
{
    echo "$*"
    exit 1
}

sweep() # FOLDER OPTION...
{
    "$dtsim" sweep sweep.yaml --engine ideal -o "$@" >/dev/null 2>err
}

rows() # FOLDER: in the order of their points
{
    "$dtsim" results "$1" --json || fail "$1 cannot be read"
}

same()
{
    sweep one -j 1 && sweep eight -j 8 || fail "$(cat err)"
    for shard in 1 2 3 4; do
        sweep four --shard $shard/4 -j 1 || fail "$(cat err)"
    done
    rows one >one.rows
    for folder in eight four; do
        rows $folder | cmp one.rows - || fail "the rows of $folder differ"
    done
    head -n 1 one/shard-1-of-1.jsonl | python3 -c 'import json; print(json.dumps(json.loads(input())["base"]))' >base.yaml
    "$dtsim" sweep base.yaml --set 'strategy.pipeline={range: [1, 5]}' --set batch.micro_batches=8,16,32 \
        --set strategy.schedule=gpipe,1f1b,zb-h1,naive --engine ideal -o again >/dev/null 2>err || fail "$(cat err)"
    cmp <(rows again | grep -F '"status":"ok"') <(grep -F '"status":"ok"' one.rows) ||
        fail "the base in the header gives other rows"
    [ "$(wc -l <one.rows)" = 60 ] || fail "found $(wc -l <one.rows) rows"
    [ "$(wc -L <one.rows)" -lt 2200 ] || fail "a row has $(wc -L <one.rows) bytes"
}

# A task as Slurm starts it: array's ids, this one, step, and how many tasks srun started
task() # FOLDER IDS ID STEP TASKS TASK
{
    local ids

    read -ra ids <<<"$2"
    env SLURM_ARRAY_JOB_ID=42 SLURM_ARRAY_TASK_ID="$3" SLURM_ARRAY_TASK_COUNT=${#ids[@]} SLURM_ARRAY_TASK_MIN="${ids[0]}" \
        SLURM_ARRAY_TASK_MAX="${ids[-1]}" SLURM_ARRAY_TASK_STEP="$4" SLURM_STEP_NUM_TASKS="$5" SLURM_PROCID="$6" \
        "$dtsim" sweep sweep.yaml --engine ideal -o "$1" -j 1 >/dev/null 2>"err.$3.$6"
}

slurm()
{
    sweep one -j 1 || fail "$(cat err)"
    rows one >one.rows
    for case in "range:4 5 6 7:1:1" "steps:0 3 6:3:1" "list:2 5 9:1:1" "list-srun:2 5 9:1:2" "range-srun:1 2:1:3"; do
        IFS=: read -r folder ids step tasks <<<"$case"
        pids=()
        for id in $ids; do
            for ((t = 0; t < tasks; t++)); do
                task "$folder" "$ids" "$id" "$step" "$tasks" $t &
                pids+=($!)
            done
        done
        for pid in "${pids[@]}"; do
            wait "$pid" || fail "$folder: a task ended with $?: $(cat err.*)"
        done
        rows "$folder" | cmp one.rows - || fail "the rows of $folder differ"
        count=$(ls "$folder"/shard-*-of-$((tasks * $(wc -w <<<"$ids"))).jsonl | wc -l)
        [ "$count" = $((tasks * $(wc -w <<<"$ids"))) ] || fail "$folder: $count shards"
        [ "$(cat "$folder"/shard-* | grep -c '"id"')" = 60 ] || fail "$folder: a row stands twice"
    done
    rm list/shard-*                      # a part that runs again takes the shard that it had
    task list "2 5 9" 5 1 1 0 && mv list/shard-* again.jsonl && task list "2 5 9" 5 1 1 0 || fail "$(cat err.5.0)"
    cmp <(grep -v dtsim_sweep again.jsonl) <(grep -v dtsim_sweep list/shard-*) || fail "a part that runs again takes other points"
    task list "2 5 9 13" 13 1 1 0 && [ -e list/shard-4-of-4.jsonl ] || fail "the fourth shard of a list: $(cat err.13.0)"
}

# Two points take minutes: the worker of one is killed, the other one takes longer than it may.
ends()
{
    local pid i code
    cat >ends.yaml <<'end'
base:
  model: {stages: {forward: 1 s, backward: 2 s, parameters: 100 M}}
  cluster: {nodes: 256, gpus_per_node: 8, inside: {bandwidth: 300 GB/s, latency: 1 us}, network: {bandwidth: 25 GB/s, latency: 5 us, nics: 1}}
  batch: {micro_batches: 8}
  strategy: {data: 1}
  simulation: {engine: ideal, collectives: messages, fold: off}
sweep:
  grid: {batch.micro_batches: {range: [1, 97]}}
  include: [{strategy.pipeline: 4096}, {strategy.data: 1023, strategy.channels: 4, simulation.engine: simgrid},
            {strategy.data: 1024, strategy.channels: 4, simulation.engine: simgrid}]
end
    "$dtsim" sweep ends.yaml -j 2 --timeout '10 s' -o ends >/dev/null 2>err &
    pid=$!
    for ((i = 0; i < 600; i++)); do              # until the 98 others have their rows, and the header
        [ -e ends/shard-1-of-1.jsonl ] && [ "$(wc -l <ends/shard-1-of-1.jsonl)" -ge 99 ] && break
        sleep 0.1
    done
    kill -9 "$(pgrep -P $pid | head -1)"
    wait $pid
    code=$?
    [ $code = 3 ] || fail "exit $code, expected 3: $(cat err)"
    rows ends >ends.rows
    [ "$(wc -l <ends.rows)" = 100 ] || fail "found $(wc -l <ends.rows) rows"
    for status in crash timeout infeasible; do
        [ "$(grep -c "\"status\":\"$status\"" ends.rows)" = 1 ] || fail "expected one row $status: $(cat err)"
    done
    # No statement is about all points, whoever makes it; but for a condition that leaves the failed ones out.
    "$dtsim" report ends -o page.html >/dev/null 2>err || fail "$(cat err)"
    for words in "results ends" "results ends --top 1" "results ends --markdown" "results ends --pareto iteration_time_s,gpus" \
        "results ends --where iteration_time_s>0"; do
        # shellcheck disable=SC2086
        "$dtsim" $words >out 2>err || fail "$words: $(cat err)"
        grep -q '2 of [0-9]* points failed: one of them may be better than all others; the same search with --retry-failed runs' out || fail "$words: $(cat out)"
    done
    python3 -c 'import base64, re, zlib
data = re.search("id=\"data\">([^<]*)<", open("page.html").read()).group(1)
print(zlib.decompress(base64.b64decode(data)).replace(b"\\n", b" "))' | grep -q '2 of 100 points failed' ||
        fail "the page does not say that points failed"
    "$dtsim" results ends --where 'status == "ok"' >out 2>err && ! grep -q 'points failed' out || fail "$(cat out err)"
}

# None of the sweep's processes outlives it by much.
none_left() # FOLDER
{
    local i left
    for ((i = 0; i < 100; i++)); do
        left=$(pgrep -f "^$dtsim sweep sweep.yaml --engine ideal -o $1") || return
        sleep 0.1
    done
    fail "processes are left: $left"
}

# kill_at PID MICROSECONDS sweep|worker: kill -9 after that time
kill_at()
{
    local victim=$1 workers
    sleep "$(printf '%d.%06d' $(($2 / 1000000)) $(($2 % 1000000)))"
    if [ "$3" = worker ]; then
        mapfile -t workers < <(pgrep -P "$1")
        victim=${workers[RANDOM % (${#workers[@]} + !${#workers[@]})]-}
    fi
    [ "$victim" ] && kill -9 "$victim" 2>/dev/null && killed=$((killed + 1))
    wait "$1" 2>/dev/null
}

kill_often() # sweep|worker
{
    local i killed=0
    rm -rf cut
    for ((i = 0; i < times; i++)); do
        [ "$1" = worker ] && rm -rf cut          # without one of them the sweep ends all the same
        "$dtsim" sweep sweep.yaml --engine ideal -o cut -j 2 --retry-failed >/dev/null 2>err &
        kill_at $! $(((RANDOM * 32768 + RANDOM) % micros)) "$1"
        [ -s cut/shard-1-of-1.jsonl ] || continue
        rows cut >cut.rows
        [ "$(grep -o '"id":"[0-9a-f]*"' cut.rows | sort | uniq -d)" ] && fail "a row stands twice"
        [ "$1" = worker ] || [ $((i % 4)) = 3 ] || continue
        sweep cut -j 2 --retry-failed || fail "cannot go on: $(cat err)"
        rows cut | diff whole.rows - >differ ||
            fail "after $i kills of a $1 rows differ from those of an undisturbed sweep: $(cut -c1-600 differ)"
        rm -r cut
    done
    [ $killed = 0 ] && fail "no kill met a $1"
    none_left cut
    echo "$killed of $times kills met a $1"
}

kills()
{
    local begun
    sed -i 's/\[8, 16, 32\]/[256, 512, 1024]/' sweep.yaml         # long enough to be met
    begun=$(date +%s%N)
    sweep whole -j 2 || fail "$(cat err)"
    micros=$((($(date +%s%N) - begun) / 1000))
    rows whole >whole.rows
    kill_often sweep
    kill_often worker
}

# Three processes: the first one writes, two work.
mpi_sweep() # FOLDER
{
    ASAN_OPTIONS=detect_leaks=0 mpirun --allow-run-as-root --oversubscribe -n 3 \
        "$dtsim" sweep sweep.yaml --engine ideal -o "$1" >/dev/null 2>err
}

mpi()
{
    local code i pid victim
    command -v mpirun >/dev/null || { echo "skipped: mpirun is not installed"; exit 0; }
    mpirun --allow-run-as-root --oversubscribe -n 2 true >err 2>&1 ||
        { echo "skipped: mpirun cannot start a program here: $(tail -1 err)"; exit 0; }
    sed -i 's/\[8, 16, 32\]/[256, 512, 1024]/' sweep.yaml
    sweep whole -j 1 || fail "$(cat err)"
    rows whole >whole.rows
    mpi_sweep mpi
    code=$?
    [ $code = 6 ] && { echo "skipped: dtsim was built without libopenmpi-dev"; exit 0; }
    [ $code = 0 ] || fail "exit $code: $(cat err)"
    rows mpi | cmp whole.rows - || fail "the rows under mpirun differ"
    mpi_sweep mpi || fail "$(cat err)"
    grep -q '60 of them were there before' err || fail "expected nothing to do, found: $(cat err)"
    mpi_kills "${3:-3}"
}

# kill -9 of the first process, of another one and of that one's worker in turns, each when there are some rows.
mpi_kills() # TIMES
{
    local i wait pid killed=0
    for ((i = 0; i < $1; i++)); do
        rm -rf killed
        mpi_sweep killed &
        wait=$((2 + RANDOM % 40))
        until [ -e killed/shard-1-of-1.jsonl ] && [ "$(wc -l <killed/shard-1-of-1.jsonl)" -gt $wait ]; do
            kill -0 $! || fail "mpirun ended by itself: $(cat err)"
            sleep 0.005
        done
        mapfile -t pid < <(pgrep -f "^$dtsim sweep sweep.yaml --engine ideal -o killed")
        [ ${#pid[@]} -gt 0 ] && kill -9 "${pid[i % 3 * (${#pid[@]} - 1) / 2]}" && killed=$((killed + 1))
        wait $!
        none_left killed
        rows killed >killed.rows
        [ "$(wc -l <killed.rows)" -ge $wait ] || fail "rows are lost"
        [ "$(grep -o '"id":"[0-9a-f]*"' killed.rows | sort | uniq -d)" ] && fail "a row stands twice"
        sweep killed -j 2 --retry-failed || fail "cannot go on: $(cat err)"
        rows killed | diff whole.rows - >differ || fail "rows differ: $(cut -c1-600 differ)"
    done
    echo "$killed of $1 kills met a process"
}

# A small file system that can be made larger; where none may be mounted, a bound on the size of files.
disk()
{
    mkdir disk
    sweep whole -j 2 || fail "$(cat err)"
    rows whole >whole.rows
    if mount -t tmpfs -o size=32k none disk 2>/dev/null; then
        sweep disk/rows -j 2 && fail "the disk was not full"
        mount -o remount,size=1m disk || fail "the disk cannot be made larger"
    else
        echo "no file system may be mounted here; files are bounded instead"
        (trap '' XFSZ && ulimit -f 32 && sweep disk/rows -j 2) && fail "no file was too large"
    fi
    grep -q 'shard-1-of-1.jsonl: error: cannot write: \(No space left on device\|File too large\)' err ||
        fail "expected a clear error, found: $(cat err)"
    rows disk/rows >cut.rows
    [ "$(wc -l <cut.rows)" -gt 0 ] && [ "$(wc -l <cut.rows)" -lt 60 ] || fail "found $(wc -l <cut.rows) rows"
    sweep disk/rows -j 2 || fail "cannot go on: $(cat err)"
    rows disk/rows | cmp whole.rows - || fail "the rows differ from those of a sweep whose disk was large enough"
}

# One point needs a gigabyte; its worker cannot have it. Another one's worker is killed as the system does.
memory()
{
    local code i
    cat >memory.yaml <<'end'
base:
  model: {stages: {forward: 1 s, backward: 2 s}}
  cluster: ideal
  batch: {micro_batches: 8}
  strategy: {schedule: gpipe, pipeline: 4}
  simulation: {engine: ideal}
sweep:
  grid: {batch.micro_batches: {range: [1, 20]}}
  include: [{batch.micro_batches: 1000000}]
end
    (ulimit -v 700000 && exec "$dtsim" sweep memory.yaml -o memory -j 2 >/dev/null 2>err)
    code=$?
    [ $code = 3 ] || fail "exit $code, expected 3: $(cat err)"
    rows memory >memory.rows
    [ "$(wc -l <memory.rows)" = 21 ] || fail "found $(wc -l <memory.rows) rows"
    grep '"status":"crash"' memory.rows | grep '"batch.micro_batches":1000000' | grep -q 'out of memory' ||
        fail "no row says that memory ran out: $(grep crash memory.rows)"
    "$dtsim" sweep memory.yaml -o killed -j 1 >/dev/null 2>err &
    for ((i = 0; i < 600; i++)); do              # until the others have their rows, and the header
        [ -e killed/shard-1-of-1.jsonl ] && [ "$(wc -l <killed/shard-1-of-1.jsonl)" = 21 ] && break
        sleep 0.02
    done
    kill -9 "$(pgrep -P $!)"
    wait $!
    rows killed | grep '"status":"crash"' | grep '"batch.micro_batches":1000000' | grep -q 'signal 9.*memory' ||
        fail "no row says that its worker was killed: $(rows killed | grep 1000000)"
}

# Rows that are there already are verified: of the best 20 and those that tie with them. None is lost, doubled or
# verified twice.
verify()
{
    local begun i killed=0
    sweep plain -j 2 || fail "$(cat err)"
    begun=$(date +%s%N)
    sweep one -j 1 --verify 20 || fail "$(cat err)"
    micros=$((($(date +%s%N) - begun) / 1000))
    rows one >whole.rows
    [ "$(grep -c '"verified_engine":"simgrid"' whole.rows)" -ge 20 ] || fail "too few are verified: $(cat err)"
    grep '"verified_engine"' whole.rows | grep -qv '"verified_iteration_time_s":[0-9]' && fail "a row lacks its time"
    for shard in 1 2 3; do
        sweep three --shard $shard/3 --verify 20 || fail "$(cat err)"
    done
    grep -q verified_engine three/* && fail "a shard cannot know the best"
    for folder in plain three; do
        sweep $folder -j 2 --verify 20 || fail "$(cat err)"
        rows $folder | cmp whole.rows - || fail "the rows of $folder differ"
        [ "$(cat $folder/* | grep -c '"id"')" = 60 ] || fail "a row stands twice in $folder"
    done
    cp -r plain again
    sweep again --verify 20 || fail "$(cat err)"
    grep -q ' 0 verified on simgrid' err || fail "verified twice: $(cat err)"
    cmp plain/shard-1-of-1.jsonl again/shard-1-of-1.jsonl || fail "the file was written though nothing was to do"
    rm -rf plain
    sweep plain -j 2 || fail "$(cat err)"
    for ((i = 0; i < times; i++)); do
        rm -rf cut
        cp -r plain cut
        "$dtsim" sweep sweep.yaml --engine ideal -o cut -j 2 --verify 20 >/dev/null 2>err &
        kill_at $! $(((RANDOM * 32768 + RANDOM) % micros)) sweep
        rows cut >cut.rows
        [ "$(wc -l <cut.rows)" = 60 ] || fail "$(wc -l <cut.rows) rows are left of 60"
        sweep cut -j 2 --verify 20 || fail "cannot go on: $(cat err)"
        rows cut | diff whole.rows - >differ || fail "after a kill rows differ: $(cut -c1-600 differ)"
        [ "$(cat cut/* | grep -c '"id"')" = 60 ] || fail "a row stands twice"
    done
    [ $killed = 0 ] && fail "no kill met the sweep"
    echo "$killed of $times kills met the sweep"
}

case $what in
same) same ;;
verify) verify ;;
ends) ends ;;
kill) kills ;;
mpi) mpi "$@" ;;
slurm) slurm ;;
disk) disk ;;
memory) memory ;;
*) fail "unknown test $what" ;;
esac
