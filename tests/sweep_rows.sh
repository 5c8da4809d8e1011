#!/bin/bash
# Rows of sweeps are neither lost nor doubled, whoever writes them and whatever is killed meanwhile.
#   sweep_rows.sh DTSIM same           -j 1, -j 8 and four shards give the same rows
#   sweep_rows.sh DTSIM ends           a crash, a hang and points that are infeasible are rows too: 100 in all, exit 3
#   sweep_rows.sh DTSIM kill [TIMES]   kill -9 of the sweep or of a worker at random moments: what goes on completes
set -u
dtsim=$(realpath "$1") what=$2 times=${3:-20}
scratch=$(mktemp -d) || exit 2
trap 'rm -rf "$scratch"' EXIT
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
    [ "$(wc -l <one.rows)" = 60 ] || fail "found $(wc -l <one.rows) rows"
}

# Two points take minutes: the worker of one is killed, the other one takes longer than it may.
ends()
{
    local pid i code
    cat >ends.yaml <<'end'
base:
  model: {stages: {forward: 1 s, backward: 2 s, parameters: 100 M}}
  cluster: {nodes: 256, gpus_per_node: 8, inside: {bandwidth: 300 GB/s, latency: 1 us}, network: {bandwidth: 25 GB/s, latency: 5 us}}
  batch: {micro_batches: 8}
  strategy: {data: 1}
  simulation: {engine: ideal, collectives: messages, fold: off}
sweep:
  grid: {batch.micro_batches: {range: [1, 97]}}
  include: [{strategy.pipeline: 4096}, {strategy.data: 2047, simulation.engine: simgrid},
            {strategy.data: 2048, simulation.engine: simgrid}]
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
}

# The sweep's process, or one of its workers.
victim() # PID
{
    local workers
    ((RANDOM % 2)) && workers=$(pgrep -P "$1") && [ "$workers" ] && set -- $workers
    echo "$1"
}

kill_often()
{
    local begun micros i moment pid killed=0
    begun=$(date +%s%N)
    sweep whole -j 2 || fail "$(cat err)"
    micros=$((($(date +%s%N) - begun) / 1000))
    rows whole >whole.rows
    for ((i = 0; i < times; i++)); do
        moment=$(((RANDOM * 32768 + RANDOM) % micros))
        sweep cut -j 2 --retry-failed &
        pid=$!
        sleep "$(printf '%d.%06d' $((moment / 1000000)) $((moment % 1000000)))"
        kill -9 "$(victim "$(pgrep -P $pid || echo $pid)")" 2>/dev/null && killed=$((killed + 1))
        wait $pid 2>/dev/null
        [ -e cut/shard-1-of-1.jsonl ] && [ -s cut/shard-1-of-1.jsonl ] || continue
        rows cut >cut.rows
        [ "$(grep -o '"id":"[0-9a-f]*"' cut.rows | sort | uniq -d)" ] && fail "a row stands twice"
        [ $((i % 4)) = 3 ] || continue
        sweep cut -j 2 --retry-failed || fail "cannot go on: $(cat err)"
        rows cut | cmp whole.rows - || fail "after $i kills the rows differ from those of a sweep that nobody disturbed"
        rm -r cut
    done
    sleep 1
    pgrep -f "$dtsim sweep sweep.yaml --engine ideal -o cut" >/dev/null && fail "a process is left"
    echo "$killed of $times kills met a process"
}

case $what in
same) same ;;
ends) ends ;;
kill) kill_often ;;
*) fail "unknown test $what" ;;
esac
