#!/bin/bash
# Plans are the same whoever does the work and whatever is killed meanwhile: what is printed, the rows, the scenarios.
#   plan_rows.sh DTSIM same           one worker and two, and a plan that goes on although nothing is left to do
#   plan_rows.sh DTSIM kill [TIMES]   kill -9 of the plan, and of a worker, at random moments: what goes on completes
#   plan_rows.sh DTSIM bounds [all]   what bounds prune is never among the best: the rows are as of a plan that replays
#                                     all; of three models on 8 to 32 GPUs with many schedules; all: with all axes
set -u
dtsim=$(realpath "$1") what=$2 times=${3:-3}
scratch=$(mktemp -d) || exit 2
# A child that is killed before it has become its command would run the trap too.
trap '[ $BASHPID = $$ ] && rm -rf "$scratch"' EXIT
cd "$scratch" || exit 2
RANDOM=1
options=()
cat >scenario.yaml <<'end'
model: {transformer: {layers: 24, hidden: 2048, heads: 16, sequence: 2048, vocabulary: 50304}}
cluster: {platform: dgx-a100, nodes: 1}
batch: {global: 64}
strategy: {zero: 1}
memory: {precision: mixed-bf16}
software: megatron-core
end

fail()
{
    echo "$*"
    exit 1
}

plan() # FOLDER OPTION...
{
    "$dtsim" plan scenario.yaml "${options[@]}" -o "$@" >out 2>err
    code=$?
    sed "s|$1/|FOLDER/|" out >"$1.out"
    return $code
}

rows() # FOLDER: as their ids order them
{
    "$dtsim" results "$1" --json >unsorted || fail "$1 cannot be read"
    sort unsorted
}

# A plan leaves the same files as the uninterrupted one.
expect_same() # FOLDER
{
    rows "$1" | cmp whole.rows - || fail "the rows of $1 differ"
    expect_same_choice "$1"
}

expect_same_choice() # FOLDER
{
    diff whole.out "$1.out" || fail "what is printed of $1 differs"
    for file in whole/rank-*.yaml; do
        cmp "$file" "$1/${file##*/}" || fail "$1/${file##*/} differs"
    done
}

whole()
{
    plan whole -j 2 || fail "$(cat err)"
    rows whole >whole.rows
    [ "$(wc -l <whole.rows)" -ge 20 ] || fail "found $(wc -l <whole.rows) rows"
}

same()
{
    plan alone -j 1 || fail "$(cat err)"
    expect_same alone
    plan alone -j 4 || fail "$(cat err)"
    expect_same alone
}

# kill_at PID MICROSECONDS plan|worker: kill -9 after that time
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

kills() # plan|worker
{
    local i killed=0
    for ((i = 0; i < times; i++)); do
        [ $((i % 3)) = 0 ] && rm -rf cut         # up to three kills of one plan
        "$dtsim" plan scenario.yaml "${options[@]}" -o cut -j 2 >/dev/null 2>err &
        kill_at $! $(((RANDOM * 32768 + RANDOM) % micros)) "$1"
        [ $((i % 3)) = 2 ] || [ $i = $((times - 1)) ] || continue
        plan cut -j 2 --retry-failed || fail "cannot go on: $(cat err)"
        rows cut >cut.rows
        [ "$(grep -o '"id":"[0-9a-f]*"' cut.rows | sort | uniq -d)" ] && fail "a row stands twice"
        case $1 in
        plan) expect_same cut ;;
        worker) expect_same_choice cut ;;        # where a row was lost, others were replayed in its stead
        esac
    done
    [ $killed = 0 ] && [ "$times" -ge 10 ] && fail "no kill met a $1"
    echo "$killed of $times kills met a $1"
}

# same_rows MODEL PLATFORM NODES BATCH SOFTWARE AXIS...
same_rows()
{
    local axis axes=()
    cat >space.yaml <<end
model: {preset: $1}
cluster: {platform: $2, nodes: $3}
batch: {global: $4}
software: $5
end
    for axis in "${@:6}"; do
        axes+=(--set "$axis")
    done
    rm -rf some every
    "$dtsim" plan space.yaml "${axes[@]}" --verify 0 --json -o some >some.json || fail "$*: some: $?"
    "$dtsim" plan space.yaml "${axes[@]}" --verify 0 --json -o every --exhaustive >every.json || fail "$*: all: $?"
    for plan in some every; do
        sed 's/.*"rows"://' $plan.json >$plan.rows
    done
    [ "$(wc -c <some.rows)" -gt 1000 ] || fail "$*: found no rows"
    cmp some.rows every.rows || fail "$*: other rows are shown"
    echo "$*: $(grep -o '"replayed":[0-9]*' some.json), all: $(grep -o '"replayed":[0-9]*' every.json)"
}

bounds()
{
    local all=strategy.schedule=1f1b,gpipe,interleaved,zb-h1,zb-v,chimera,dualpipe-v
    same_rows gpt2-355m dgx-a100 1 32 none strategy.tensor=1,2 strategy.pipeline=2,4 $all batch.micro=1,4
    same_rows llama2-7b dgx-h100 2 64 megatron-core strategy.tensor=auto strategy.pipeline=1,2 strategy.zero=auto \
        strategy.context=1,2 strategy.sequence_parallel=auto memory.recompute=selective,full
    same_rows mixtral-8x7b dgx-h100 8 256 megatron-core strategy.tensor=1,2,4,8 strategy.pipeline=1,2,4 strategy.expert=1,2,4,8 \
        strategy.zero=1 strategy.sequence_parallel=auto memory.recompute=selective,full
    [ "${1-}" = all ] || return 0
    all=strategy.schedule=$("$dtsim" list strategies | cut -d' ' -f1 | paste -sd,)
    same_rows gpt2-355m dgx-a100 1 64 none strategy.tensor=auto strategy.pipeline=auto $all strategy.chunks=auto \
        batch.micro=1,4 memory.recompute=auto strategy.zero=0,1,2,3
    same_rows llama2-7b dgx-h100 4 128 megatron-core strategy.tensor=auto strategy.pipeline=auto \
        strategy.schedule=1f1b,interleaved,zb-v strategy.chunks=auto batch.micro=1,2 memory.recompute=auto \
        strategy.zero=auto strategy.context=1,2 strategy.sequence_parallel=auto
    same_rows mixtral-8x7b dgx-a100 8 128 megatron-core strategy.tensor=1,2,4 strategy.pipeline=1,2,4,8 strategy.expert=1,4,8 \
        strategy.schedule=auto strategy.chunks=auto batch.micro=1,2 strategy.zero=auto strategy.context=1,2
    same_rows llama2-7b pcie-25gbe 16 128 deepspeed strategy.zero=0,1,2,3 strategy.tensor=1,2 strategy.pipeline=1,2,4 \
        batch.micro=1,2 memory.recompute=none,full
    same_rows llama3-8b gb200-nvl72 1 144 torchtitan strategy.tensor=auto strategy.pipeline=auto strategy.zero=1,2,3 \
        batch.micro=1,2 strategy.schedule=auto strategy.context=1,2 memory.recompute=auto
}

if [ "$what" = bounds ]; then
    bounds "${3-}"
    exit
fi
begun=$(date +%s%N)
whole
micros=$((($(date +%s%N) - begun) / 2000))       # half of its time: most kills meet it
case $what in
same) same ;;
kill)
    kills plan
    # While a row is lost, the one behind it is verified in its stead, and stays so.
    options=(--verify 0)
    rm -rf whole cut
    whole
    kills worker ;;
*)
    echo "unknown: $what"
    exit 2 ;;
esac
