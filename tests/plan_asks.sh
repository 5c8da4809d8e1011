#!/bin/bash
# What a person asks of a plan, and what he gets: random spaces with fixed seeds, against what the question means.
#   plan_asks.sh DTSIM fixed    one value of a key holds it, and switches no usual axis off
#   plan_asks.sh DTSIM gpus     numbers of GPUs are numbers of nodes of each platform
#   plan_asks.sh DTSIM order    the order of a list changes nothing that is found
#   plan_asks.sh DTSIM limit    where each point is a search of its own, a plan still ends when it is told to
#   plan_asks.sh DTSIM verify   --verify K verifies K rows, whatever ties with them
#   plan_asks.sh DTSIM halved   of the rows that are shown the one that 'run' finds fastest on half the network is named
#   plan_asks.sh DTSIM fewest   where nothing fits, so many GPUs do, and half of them do not
#   plan_asks.sh DTSIM axes     'emit' can write each value of the axes that a software file lists, with their arguments
#   plan_asks.sh DTSIM hardware of platforms and networks that are compared the best of each is what a plan of it alone finds
#   plan_asks.sh DTSIM prices   a price by any name of a machine is found, and what has none is told of and proves nothing; a PUE stands alone
#   plan_asks.sh DTSIM kept     a worse plan in the same folder leaves the better one
set -u
dtsim=$(realpath "$1") what=$2 root=$(realpath "$(dirname "$0")/..")
scratch=$(mktemp -d) || exit 2
trap '[ $BASHPID = $$ ] && rm -rf "$scratch"' EXIT
cd "$scratch" || exit 2
RANDOM=7

fail()
{
    echo "$*"
    exit 1
}

scenario() # PLATFORM NODES [LINE...]
{
    printf '%s\n' "model: {transformer: {layers: 12, hidden: 1024, heads: 16, sequence: 1024, vocabulary: 32000}}" \
        "cluster: {platform: $1, nodes: $2}" 'batch: {global: 288}' 'memory: {precision: mixed-bf16}' \
        'software: megatron-core-2025' "${@:3}" >scenario.yaml
}

plan() # OPTION...
{
    [ "${kept:-}" ] || rm -rf out.plan
    "$dtsim" plan scenario.yaml -j 2 -o out.plan "$@" --json >plan.json 2>err
}

# The axes by their paths, one a line.
axes()
{
    python3 -c 'import json
for axis in json.load(open("plan.json"))["axes"]: print(axis)'
}

fixed()
{
    local set
    scenario dgx-a100 2
    plan --verify 0 || fail "$(cat err)"
    axes | sort >usual
    grep -q strategy.pipeline usual || fail "no usual axes: $(cat usual)"
    for set in memory.precision=mixed-fp16 cluster.nodes=1 cluster.nodes=1,2 cluster.platform=dgx-h100 batch.global=144 \
        strategy.tensor=2 batch.micro=2 software=megatron-core-2026 strategy.zero=1 cluster.platform=dgx-h100,dgx-a100; do
        plan --verify 0 --set "$set" || fail "$set: $(cat err)"
        { grep -v "^${set%%=*}[.]" usual; echo "${set%%=*}"; } | sort -u >expected
        axes | sort | diff expected - || fail "$set: other axes are searched"
    done
    # replicas that follow from the nodes are said by imports, and hold no degree
    scenario dgx-a100 2 'strategy: {tensor: 2, data: 8}'
    plan --verify 0 --set strategy.tensor=1,2,4 --set strategy.pipeline=1,2 || fail "$(cat err)"
    axes >searched
    grep -o '"iteration_time_s":[^,]*' plan.json >./times
    scenario dgx-a100 2
    plan --verify 0 --set strategy.tensor=1,2,4 --set strategy.pipeline=1,2 || fail "$(cat err)"
    { axes | cmp - searched && grep -o '"iteration_time_s":[^,]*' plan.json | cmp - times; } || fail "a number of replicas that follows is held"
    plan --verify 0 --set strategy.tensor=1,2 || fail "$(cat err)"
    [ "$(axes)" = strategy.tensor ] || fail "a choice that is named is searched alone: $(axes)"
    for set in strategy.split strategy.stages_on batch.shares strategy.all_reduce; do
        plan --verify 0 --time-limit "0.2 s" --set "$set=auto"
        grep -q 'has no auto' err && fail "$set=auto, which run takes: $(cat err)"
    done
    plan --gpus 8 --set cluster.nodes=2
    [ $? = 2 ] || fail "numbers of GPUs and of nodes were both taken"
}

# The GPUs of a node, by platform.
gpus_of()
{
    case $1 in
    dgx-*) echo 8 ;;
    hgx-h100-4) echo 4 ;;
    gb200-nvl72) echo 72 ;;
    esac
}

gpus()
{
    local all=(dgx-a100 dgx-h100 hgx-h100-4 gb200-nvl72) i count base one two form number
    for ((i = 0; i < 12; i++)); do
        base=${all[RANDOM % 4]} one=${all[RANDOM % 4]} two=${all[RANDOM % 4]} count=$((72 * (1 + RANDOM % 2)))
        [ $one = $two ] && continue
        form=cluster$( ((RANDOM % 2)) && echo .platform)
        scenario $base 3
        plan --verify 0 --gpus $count --set "$form=$one,$two" --set strategy.tensor=1,2 --set strategy.pipeline=1 --top 100 ||
            fail "$form=$one,$two: $(cat err)"
        "$dtsim" results out.plan --json | python3 -c '
import json, sys
for line in sys.stdin:
    row = json.loads(line)
    print(row["metrics"]["gpus"], row["point"]["cluster.nodes"], row["point"]["cluster.platform"])' | sort -u >found
        for number in $one $two; do echo "$count $((count / $(gpus_of $number))) $number"; done | sort -u | diff - found ||
            fail "$base, $form=$one,$two, $count GPUs"
    done
}

shuffled() # VALUE...
{
    local values=("$@") i j kept
    for ((i = $# - 1; i > 0; i--)); do
        j=$((RANDOM % (i + 1)))
        kept=${values[i]} values[i]=${values[j]} values[j]=$kept
    done
    (IFS=, && echo "${values[*]}")
}

order()
{
    local i nodes
    for nodes in 1 2; do
        for ((i = 0; i < 8; i++)); do
            scenario dgx-a100 $nodes
            plan --verify 0 --top 7 --set "strategy.schedule=$(shuffled 1f1b gpipe interleaved zb-h1)" \
                --set "strategy.tensor=$(shuffled 1 2 4)" --set "strategy.pipeline=$(shuffled 1 2 3)" \
                --set "batch.micro=$(shuffled 1 2 3)" --set "strategy.context=$(shuffled 1 2)" || fail "$(cat err)"
            python3 -c 'import json
plan = json.load(open("plan.json"))
for row in plan["rows"]: print(row["id"], row["rank"])
print(plan["status"])' >found
            [ $i = 0 ] && cp found first
            cmp first found || fail "another order finds other rows: $(cat first found)"
        done
    done
    # what is held depends on the micro-batch: gradients of a step with one are divided; stages are divided by their times
    orders 1,8 1,4 'software: {like: torchtitan, sums_once: true}' 'memory: {context: 0 GB, recompute: full, precision: mixed-bf16, limit: 20 GiB}' \
        'strategy: {tensor: 1, pipeline: 1, zero: 3}' 'batch: {global: 64}' \
        'model: {transformer: {layers: 32, hidden: 4096, heads: 32, ffn: 16384, sequence: 64, vocabulary: 8000, dropout: 0}}'
    orders 1,64 2 'software: {like: megatron-core, balance: times, fragmentation: 0}' 'memory: {context: 0 GB, recompute: full, limit: 1.4 GiB}' \
        'strategy: {tensor: 2, pipeline: 2}' 'batch: {global: 512}' \
        'model: {transformer: {layers: 16, hidden: 1024, heads: 16, ffn: 4096, sequence: 256, vocabulary: 64000, dropout: 0}}'
}

# Both orders of two sizes of micro-batches have one optimum.
orders() # MICRO TENSOR SCENARIO...
{
    local micro
    printf '%s\n' 'cluster: {platform: dgx-h100, nodes: 1}' "${@:3}" >scenario.yaml
    for micro in "$1" "${1#*,},${1%,*}"; do
        plan --verify 0 --set "batch.micro=$micro" --set "strategy.tensor=$2" || fail "$(cat err)"
        python3 -c 'import json; print(json.load(open("plan.json"))["rows"][0]["metrics"]["iteration_time_s"])' >"best$micro"
    done
    cmp "best$1" "best${1#*,},${1%,*}" || fail "batch.micro=$1: $(cat best*)"
}

ends_within() # SECONDS COMMAND...
{
    local begun seconds
    begun=$(date +%s%N)
    "${@:2}" >out 2>err
    seconds=$((($(date +%s%N) - begun) / 1000000))
    [ $seconds -le $(($1 * 1000)) ] || fail "${*:2}: $seconds ms"
}

limit()
{
    printf '%s\n' 'model: {preset: llama3-70b}' 'cluster: {platform: dgx-h100, nodes: 16}' 'batch: {global: 512}' \
        'strategy: {split: auto, zero: 1}' 'memory: {precision: mixed-bf16}' 'software: megatron-core-2025' >scenario.yaml
    ends_within 40 "$dtsim" plan scenario.yaml -j 2 --time-limit '2 s' -o limited
    grep -q '^not proven' out || fail "$(cat out err)"
    ends_within 40 timeout -s INT 2 "$dtsim" plan scenario.yaml -j 2 -o interrupted
    grep -q '^not proven' out || fail "$(cat out err)"
    command -v script >/dev/null || return 0
    script -qec "$dtsim plan scenario.yaml -j 2 --time-limit '3 s' -o told" /dev/null >out
    grep -q 'of [0-9]* configurations read' out || fail "no progress on a terminal: $(cat out)"
}

verify()
{
    local count
    scenario dgx-a100 1
    for count in 0 1 2 5; do
        plan --verify $count --top 6 || fail "$(cat err)"
        python3 -c 'import json
plan = json.load(open("plan.json"))
assert plan["tied"]["at_least"] > 5, plan["tied"]
print(*["verified_iteration_time_s" in row["metrics"] for row in plan["rows"]])' >found
        [ "$(grep -o True found | wc -l)" = $count ] || fail "--verify $count: $(cat found)"
        [ $count = 0 ] || grep -q "^\(True \)\{$count\}False" found || fail "--verify $count: $(cat found)"
    done
    "$dtsim" results out.plan --json | grep -c verified_engine | grep -qx 5 || fail "other rows are verified too"
}

kept()
{
    scenario dgx-a100 2
    "$dtsim" plan scenario.yaml -j 2 --verify 0 -o both >out || fail "$(cat out)"
    cp both/rank-01.yaml both/plan.json .
    "$dtsim" plan scenario.yaml -j 2 --verify 0 -o both --set strategy.tensor=8 >out || fail "$(cat out)"
    cmp rank-01.yaml both/rank-01.yaml && cmp plan.json both/plan.json || fail "a worse plan wrote over a better one"
    grep -q 'tensor: 8' both/2/rank-01.yaml || fail "the worse plan is not beside it"
    "$dtsim" plan scenario.yaml -j 2 --verify 0 -o both --subject-to iteration_time_s=1us >out
    cmp plan.json both/plan.json || fail "a plan without a result wrote over one with a result"
    "$dtsim" plan scenario.yaml -j 2 --verify 0 -o other --set strategy.tensor=8 >out || fail "$(cat out)"
    "$dtsim" plan scenario.yaml -j 2 --verify 0 -o other >out || fail "$(cat out)"
    cmp rank-01.yaml other/rank-01.yaml || fail "a better plan did not take the place of a worse one"
    "$dtsim" plan scenario.yaml -j 2 --verify 0 -o both --set batch.global=144 >out || fail "$(cat out)"
    cmp -s rank-01.yaml both/rank-01.yaml && fail "another batch is other work, which is not compared"
    return 0
}

# The scenario's axes with their values, a line each.
list_axes()
{
    plan --verify 0 --time-limit '0.01 s'
    python3 -c '
import json
for axis, values in json.load(open("plan.json"))["axes"].items():
    print(axis, *values.strip("[]").split(", "))' >listed
}

# Each value of each axis is launched by other words, some of which are the argument that the file names.
axes_of() # SOFTWARE LAYERS...
{
    local software=$1 base axis values value argument one
    cat >scenario.yaml <<end
model: {transformer: {layers: 16, hidden: 1024, heads: 16, sequence: 16384, vocabulary: 32000, experts: 16, experts_per_token: 2, bias: false, mlp: swiglu}}
cluster: {platform: dgx-h100, nodes: 8}
batch: {global: 512}
memory: {precision: mixed-bf16}
software: $software
end
    list_axes
    grep -q strategy.zero listed && grep -q strategy.expert listed || fail "$software: no axes: $(cat listed err)"
    base=(strategy.tensor=1 strategy.pipeline=4 strategy.schedule=interleaved strategy.expert=8 strategy.zero=1
        strategy.data_parallel=ddp)
    while read -r axis values; do
        argument=$(grep -h "^  ${axis//./[.]}: .*--" "$root"/platforms/software/{"$software",megatron-core-2025,megatron-core}.yaml |
            head -1 | grep -o -e '--[a-z-]*' | paste -sd'|')
        [ "$argument" ] || fail "$software: $axis has no argument"
        : >written
        for value in $values; do
            local sets=() set=("${base[@]}" "$axis=$value")
            case $axis=$value in
            strategy.tensor=* | strategy.expert_tensor=*) set+=("strategy.tensor=$value" strategy.pipeline=1
                strategy.schedule=1f1b "strategy.sequence_parallel=$([ "$value" = 1 ] && echo false || echo true)") ;;
            strategy.sequence_parallel=true | memory.recompute=*) set+=(strategy.tensor=2 strategy.sequence_parallel=true) ;;
            strategy.pipeline=1) set+=(strategy.schedule=1f1b) ;;
            strategy.pipeline=*) set+=(strategy.expert=2 strategy.schedule=1f1b) ;;
            strategy.chunks=1) set+=(strategy.schedule=1f1b) ;;
            strategy.chunks=*) set+=(strategy.pipeline=2 strategy.expert=2) ;;
            strategy.expert=* | strategy.context=*) set+=(strategy.pipeline=1 strategy.schedule=1f1b) ;;
            strategy.data_parallel=synchronous) set+=(software.overlap_gathers=false) ;;
            strategy.overlap_dispatch=shared-experts) set+=(model.transformer.shared_experts=1) ;;
            esac
            for one in "${set[@]}"; do sets+=(--set "$one"); done
            "$dtsim" emit megatron scenario.yaml "${sets[@]}" >launch 2>err || fail "$software: $axis=$value: $(cat err)"
            grep -E -e "$argument" launch | tr -d '\n' >>written
            echo " " >>written
        done
        grep -q -E -e "$argument" written || fail "$software: $axis: no value is written by $argument: $(cat written launch)"
        [ "$(sort -u written | wc -l)" = "$(wc -w <<<"$values")" ] || [ "$axis" = strategy.schedule ] ||
            fail "$software: $axis=$values: the same words for several: $(cat written)"
    done <listed
}

# Each value of each axis gives other words, the settings of the axis among them.
axes_of_file() # FRAMEWORK SOFTWARE SETTING...
{
    local framework=$1 software=$2 axis values value argument one count=0
    cat >scenario.yaml <<end
model: {transformer: {layers: 16, hidden: 1024, heads: 16, sequence: 16384, vocabulary: 32000, bias: false, mlp: swiglu, norm: rmsnorm}}
cluster: {platform: dgx-h100, nodes: 8}
batch: {global: 512}
memory: {precision: mixed-bf16}
software: $software
end
    list_axes
    while read -r axis values; do
        argument=$(sed -n "s/^  ${axis//./[.]}: *\({argument: \)\?\([^ ,]*\).*/\2/p" "$root"/platforms/software/"${software%-2025}".yaml)
        [ "$argument" ] || fail "$software: $axis has no argument"
        : >written
        : >all
        for value in $values; do
            local sets=() set=("${@:3}" "$axis=$value")
            case $axis=$value in
            strategy.tensor=1 | strategy.sequence_parallel=false) set+=(strategy.tensor=1) ;;
            strategy.tensor=* | strategy.sequence_parallel=true) set+=("strategy.tensor=${value/true/2}" strategy.sequence_parallel=true) ;;
            strategy.schedule=interleaved) set+=(strategy.chunks=4) ;;
            strategy.chunks=1) ;;
            strategy.chunks=*) set+=(strategy.pipeline=2 strategy.schedule=interleaved) ;;
            strategy.zero=[23]) set+=(strategy.pipeline=1) ;;
            esac
            for one in "${set[@]}"; do sets+=(--set "$one"); done
            "$dtsim" emit "$framework" scenario.yaml "${sets[@]}" >launch 2>err || fail "$software: $axis=$value: $(cat err)"
            grep -v '^#' launch | tr -d '\n' >>all
            echo >>all
            grep "${argument##*.}" launch >>written
        done
        [ -s written ] || fail "$software: $axis: no value is written by $argument"
        [ "$(sort -u all | wc -l)" = "$(wc -w <<<"$values")" ] || fail "$software: $axis=$values: the same words for several: $(cat all)"
        count=$((count + 1))
    done <listed
    [ $count -gt 2 ] || fail "$software: $count axes: $(cat listed err)"
}

axes_are_written()
{
    axes_of_file torchtitan torchtitan strategy.pipeline=4 strategy.schedule=1f1b strategy.zero=3
    axes_of_file torchtitan torchtitan-2025 strategy.pipeline=4 strategy.schedule=1f1b strategy.zero=3
    axes_of_file deepspeed deepspeed strategy.pipeline=4
    axes_of megatron-core
    axes_of megatron-core-2025
}

fewest()
{
    local limit found
    for limit in 7 9; do
        scenario dgx-a100 1
        sed -i "s/layers: 12, hidden: 1024/layers: 24, hidden: 4096/; s/heads: 16/heads: 32/
            s/precision: mixed-bf16/&, limit: $limit GB/" scenario.yaml
        "$dtsim" plan scenario.yaml -j 2 --verify 0 -o few >out
        [ $? = 5 ] || fail "$limit GB: 8 GPUs do: $(cat out)"
        found=$(sed -n 's/^\([0-9]*\) GPUs do, .*/\1/p' out)
        [ "$found" ] || fail "$limit GB: no number of GPUs: $(cat out)"
        "$dtsim" plan scenario.yaml -j 2 --verify 0 -o more --gpus "$found" >out || fail "$limit GB: $found GPUs do not: $(cat out)"
        "$dtsim" plan scenario.yaml -j 2 --verify 0 -o less --gpus $((found / 2)) >out && fail "$limit GB: half of $found do"
    done
    return 0
}

halved()
{
    local bandwidth said named moved=0 row
    for bandwidth in 100 20; do
        scenario dgx-a100 2
        sed -i "s/nodes: 2/&, network: {bandwidth: $bandwidth GB\/s}/; s/hidden: 1024/hidden: 4096/; s/global: 288/global: 32/" scenario.yaml
        rm -rf out.plan
        "$dtsim" plan scenario.yaml -j 2 --verify 0 -o out.plan --set strategy.tensor=1,2,4 --set strategy.pipeline=1,2 \
            --set batch.micro=1,2 --top 12 >out 2>err || fail "$(cat err)"
        said=$(sed -n 's/^with a network half as fast: //p' out)
        for row in out.plan/rank-*.yaml; do
            "$dtsim" run "$row" --json --set "cluster.network.bandwidth=$(python3 -c "print($bandwidth / 2)") GB/s" -o run.out >run.json 2>err ||
                fail "$row: $(cat err)"
            python3 -c 'import json; print(repr(json.load(open("run.json"))["iteration_time_s"]))'
        done >seconds
        named=$(python3 -c 'times = [float(line) for line in open("seconds")]
best = min(range(len(times)), key=times.__getitem__)
print("the same" if times[best] >= times[0] * 0.99 else "row %d of those above" % (best + 1))')
        [ "${said%%, *}" = "$named" ] || fail "$bandwidth GB/s: '$said', not '$named': $(cat seconds)"
        [ "$named" = 'the same' ] || moved=$((moved + 1))
    done
    [ $moved -gt 0 ] || fail "no choice changes"
}

# A table of hardware against a plan of each piece alone; $ and kWh a million tokens from what else the rows say.
hardware()
{
    local platforms=(dgx-a100 dgx-h100 dgx-b200 hgx-h20) prices='{dgx-a100: 1.5 $/h, dgx-h100: 3 $/h, dgx-b200: 5 $/h}' a b rates i
    for i in 1 2 3; do
        a=${platforms[RANDOM % 2]} b=${platforms[2 + RANDOM % 2]} rates="$((RANDOM % 9 + 1)) GB/s,$((RANDOM % 50 + 20)) GB/s"
        scenario "$a" 2
        sed -i "s/hidden: 1024/hidden: $((1024 << i))/" scenario.yaml
        plan --verify 0 --set strategy.tensor=1,2,4 --set strategy.pipeline=1,2 --set batch.micro=1,2 --set "cluster.platform=$a,$b" \
            --set "cluster.network.bandwidth=$rates" --set "price=$prices" || fail "$(cat err)"
        kept=1 plan --verify 0 --set strategy.tensor=1,2,4 --set strategy.pipeline=1,2 --set batch.micro=1,2 \
            --set "cluster.network.bandwidth=$rates" || fail "$(cat err)"
        python3 -c 'import json
assert len(json.load(open("plan.json"))["rows"]) == 2' || fail "rows of an earlier plan in the same folder are taken for others"
        plan --verify 0 --set strategy.tensor=1,2,4 --set strategy.pipeline=1,2 --set batch.micro=1,2 --set "cluster.platform=$a,$b" \
            --set "cluster.network.bandwidth=$rates" --set "price=$prices" || fail "$(cat err)"
        cp plan.json table.json
        for platform in "$a" "$b"; do
            for rate in "${rates%,*}" "${rates#*,}"; do
                plan --verify 0 --set strategy.tensor=1,2,4 --set strategy.pipeline=1,2 --set batch.micro=1,2 \
                    --set "cluster.platform=$platform" --set "cluster.network.bandwidth=$rate" || fail "$(cat err)"
                platform=$platform rate=$rate prices=$prices python3 -c 'import json, os, re
table, alone = json.load(open("table.json"))["rows"], json.load(open("plan.json"))["rows"][0]
named, rate = os.environ["platform"], os.environ["rate"]
rows = [row for row in table if row["point"]["cluster.platform"] == named and row["point"]["cluster.network.bandwidth"] == rate]
assert len(table) == 4 and len(rows) == 1, (len(table), len(rows))
own, other = rows[0]["metrics"], alone["metrics"]
assert own["iteration_time_s"] == other["iteration_time_s"], (named, rate, own["iteration_time_s"], other["iteration_time_s"])
tokens = own["tokens_per_s"] * own["iteration_time_s"] / 1e6
price = re.search(named + ": ([0-9.]+)", os.environ["prices"])
assert (own["cost"] is None) == (not price), own["cost"]
if price:
    dollars = float(price[1]) * 16 * own["iteration_time_s"] / 3600 / tokens
    assert abs(own["cost_per_million_tokens"] / dollars - 1) < 1e-9
assert abs(own["kwh_per_million_tokens"] * 3.6e6 * tokens / own["energy_j"] - 1) < 1e-9' || fail "$platform at $rate differs"
            done
        done
    done
    "$dtsim" plan scenario.yaml --set 'price={dgx-a1000: 2 $/h}' >out 2>&1 && fail "an unknown name has a price"
    grep -q "no platform or GPU 'dgx-a1000'" out || fail "$(cat out)"
}

# priced EXPECTED PRICES SET...: $ an hour of a GPU that the cost of a run stands on; none: it has no cost
priced()
{
    local sets=() set
    for set in "price=$2" "${@:3}"; do sets+=(--set "$set"); done
    "$dtsim" run scenario.yaml "${sets[@]}" --set simulation.engine=fast --set memory.enforce=false -o run.out --json >run.json 2>err ||
        fail "$*: $(cat err)"
    python3 -c 'import json, sys
d = json.load(open("run.json"))
price = d["cost"] and d["cost"] * 3600 / d["gpus"] / d["iteration_time_s"]
assert (price is None) if sys.argv[1] == "none" else abs(price / float(sys.argv[1]) - 1) < 1e-9, price' "$1" ||
        fail "$*: another price"
}

prices()
{
    local h100=cluster.platform=dgx-h100 axes=(--verify 0 --set "strategy.tensor=2,4" --set strategy.pipeline=1) i sets
    scenario dgx-a100 2
    "$dtsim" list platforms >/dev/null || fail "no platforms"
    printf 'platform: dgx-h100\ntitle: mine\n' >mine.yaml
    priced 1.5 '{dgx-a100: 1 $/h, DGX H100: 1.5 $/h}' $h100
    priced 1 '{dgx-a100: 1 $/h, DGX H100: 1.5 $/h}'
    priced 2 '{dgx-h100: 2 $/h}' 'cluster.platform=DGX H100'
    priced 2 '{DGX H100: 2 $/h}' 'cluster.platform=dgx_h100'
    priced 3 '{h100-80gb: 3 $/h}' $h100
    priced 3 '{H100 SXM: 3 $/h, a100-80gb: 1 $/h}' $h100
    priced 2 '{H100 SXM: 3 $/h, dgx-h100: 2 $/h}' $h100
    priced 3 '{h200-141gb: 3 $/h, dgx-h100: 2 $/h}' $h100 cluster.gpu=h200-141gb
    priced 3 '{h200-141gb: 3 $/h, dgx-h100: 2 $/h}' $h100 'cluster.gpu={name: h200-141gb, memory: 100 GiB}'
    priced none '{dgx-h100: 2 $/h}' $h100 cluster.gpu=h200-141gb
    priced 2 '{dgx-h100: 2 $/h}' $h100 'cluster.gpu={memory: 70 GiB}'
    priced 4 '{mine.yaml: 4 $/h, dgx-h100: 2 $/h}' cluster.platform=mine.yaml
    priced 5 '{h100-80gb: 5 $/h}' cluster.platform=mine.yaml
    priced none '{dgx-a100: 5 $/h}' cluster.platform=p5
    cp scenario.yaml whole.yaml
    sed -i 's/^cluster:.*/cluster: {parts: [{name: old, platform: dgx-a100, nodes: 1}, {name: new, platform: dgx-h100, nodes: 2}]}/' scenario.yaml
    priced 3 '{dgx-a100: 1 $/h, h100-80gb: 4 $/h}'
    priced none '{dgx-a100: 1 $/h}'
    mv whole.yaml scenario.yaml
    for i in 'dgx-h100: rubbish' 'dgx-a100: 1 $/h, dgx-h100: -1 $/h' 'H100: 1 $/h' 'dgx-h100: 1 $/h, DGX H100: 2 $/h' 'nothing.yaml: 1 $/h'; do
        "$dtsim" check scenario.yaml --set "price={$i}" >/dev/null 2>&1 && fail "a price of {$i} is taken"
    done
    for sets in cluster.platform=dgx-a100,dgx-h100 cluster.platform=dgx-a100,dgx-h100,hgx-h20; do
        "$dtsim" plan scenario.yaml "${axes[@]}" --set $sets --set 'price={dgx-a100: 1 $/h, hgx-h20: 2 $/h}' --objective cost -o cost >out 2>err ||
            fail "$(cat err)"
        grep -q '^not compared: 2 configurations without cost: cluster.platform dgx-h100$' out || fail "$sets: what has no price is dropped: $(cat out)"
        grep -q '^proven:.*that have these numbers' out || fail "$sets: proven of what has no price: $(cat out)"
        grep -q 'every other value is.*cannot be$' out && fail "$sets: what has no price is worse: $(cat out)"
        grep -q '^the best of each$' out && [ $sets = cluster.platform=dgx-a100,dgx-h100 ] && fail "$sets: the best of one"
    done
    grep -q '^proven: each is the best of its hardware' out || fail "another machine is bettered: $(cat out)"
    "$dtsim" plan scenario.yaml "${axes[@]}" --set cluster.platform=dgx-a100,dgx-h100 --objective mfu -o mfu >out 2>err || fail "$(cat err)"
    grep -q '^proven: each is the best of its hardware' out || fail "another machine is bettered: $(cat out)"
    "$dtsim" plan scenario.yaml "${axes[@]}" --set 'cluster.network.topology={leaf_nodes: 1, oversubscription: 2}' -o one >out 2>err ||
        fail "$(cat err)"
    grep -q '^the best of each$' out && fail "one network is compared: $(cat out)"
    for i in 1 1.3; do                      # a facility's share stands alone for iterations, and says nothing of a training
        "$dtsim" plan scenario.yaml "${axes[@]}" --set "train={energy: {pue: $i}}" -o pue --json >pue$i.json 2>err || fail "$(cat err)"
        "$dtsim" train scenario.yaml --set "train={energy: {pue: $i}}" >out 2>&1 && fail "a training of no length"
    done
    python3 -c 'import json
one, more = (json.load(open(f"pue{i}.json"))["rows"][0]["metrics"] for i in ("1", "1.3"))
assert abs(more["energy_j"] / one["energy_j"] / 1.3 - 1) < 1e-9 and "training_cost" not in one' || fail "the facility is not counted"
    "$dtsim" plan scenario.yaml "${axes[@]}" --set cluster.platform=dgx-a100,dgx-h100,p5,hgx-h20 --top 2 -o few >out 2>err || fail "$(cat err)"
    grep -q '^not shown: 2 more; --top 4 shows them: cluster.platform [^,]*, cluster.platform [^,]*$' out || fail "rows are missing: $(cat out)"
}

case $what in
axes) axes_are_written ;;
fewest | fixed | gpus | halved | hardware | order | limit | prices | verify | kept) $what ;;
*)
    echo "unknown: $what"
    exit 2 ;;
esac
