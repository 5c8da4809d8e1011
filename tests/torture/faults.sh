# shellcheck shell=bash
# For malloc.sh and syscall.sh, which source this: every n-th call of some kinds fails, in five commands (sqlite.org/
# testing.html, "I/O error testing"). Each must end with an error and a message, or, where the call did not
# matter, with the same bytes as without a fault. Never a signal, a hang, or half a file under a final name.
#   DTSIM LIBRARY [TRIES]    tries of a command and kind at most, spread evenly; 0: every call
set -u
dtsim=$(realpath "$1") library=$(realpath "$2") most=${3:-0}
here=$(realpath "$(dirname "$0")/../..")
scratch=$(mktemp -d) || exit 2
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 2
export LC_ALL=C
tries=0 refused=0 same=0 bad=0

cat >sweep.yaml <<END
base: $here/scenarios/tour/03-gpipe.yaml
sweep: {grid: {batch.micro_batches: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20]}}
END
# GPipe's order of two ranks and two micro-batches, as PyTorch dumps it.
printf '%s\n' 0F0,0F1,,,0B0,0B1 ,1F0,1F1,1B0,1B1, >order.csv

# Each command writes into the folder out, or prints.
command_of() # NAME
{
    case $1 in
    run) set -- run "$here/scenarios/first.yaml" -o out ;;
    ideal) set -- run "$here/scenarios/first.yaml" --engine ideal -o out ;;
    sweep) set -- sweep sweep.yaml -j 2 --engine ideal -o out ;;
    plot) set -- plot breakdown whole -o out/picture.svg ;;
    import) set -- import pytorch-schedule order.csv ;;
    esac
    arguments=("$@")
}

attempt() # KIND N
{
    rm -rf out counter
    mkdir out
    timeout 60 env FAIL_KIND="$1" FAIL_AT="$2" FAIL_COUNTER="$scratch/counter" LD_PRELOAD="$library" \
        "$dtsim" "${arguments[@]}" >said 2>message
    code=$?
    calls=$(od -An -t d8 counter | tr -d ' ')
}

# What a fault must not change: the files under their final names, and where the command succeeds its words.
contents()
{
    (cd out && find . -type f ! -name '.*' ! -name '*.jsonl' -exec cat {} +; cat ../said) | sha256sum
}

fault() # NAME KIND N
{
    attempt "$2" "$3"
    tries=$((tries + 1))
    if [ $code -eq 0 ] && [ "$(contents)" = "$expected" ]; then
        same=$((same + 1))
    # 127: so the system's loader ends a process where it has no memory to open a module.
    elif { [ $code -ge 1 ] && [ $code -le 7 ] || { [ $code -eq 127 ] && grep -q 'out of memory' message; }; } && { [ -s message ] || [ $code -eq 3 ]; } && whole "$1"; then
        refused=$((refused + 1))
    else
        bad=$((bad + 1))
        echo "$1, $2 $3: exit $code: $(head -c 300 message | head -2)"
    fi
}

# A result that its readers take must be the whole one.
whole() # NAME
{
    case $1 in
    run | ideal) [ ! -e out/result.json ] || ! "$dtsim" compare out >/dev/null 2>&1 || diff -q -r -x '.*' out whole-"$1" >/dev/null ;;
    plot) [ ! -e out/picture.svg ] || cmp -s out/picture.svg whole-plot/picture.svg ;;
    esac
}

torture() # KIND...
{
    "$dtsim" run "$here/scenarios/first.yaml" -o whole >/dev/null 2>&1 || exit 2
    for name in run ideal sweep plot import; do
        command_of $name
        for kind in "$@"; do
            attempt "$kind" 0
            [ $code -eq 0 ] || { echo "$name fails without a fault: $(cat message)"; exit 2; }
            expected=$(contents) total=$calls step=1
            [ -e whole-$name ] || cp -r out whole-$name
            [ "$most" -gt 0 ] && [ "$total" -gt "$most" ] && step=$(((total + most - 1) / most))
            for ((n = 1; n <= total; n += step)); do
                fault $name "$kind" $n
            done
        done
    done
    echo "$tries faults of $*: $refused refused, $same without effect, $bad wrong"
    [ $bad -eq 0 ]
}
