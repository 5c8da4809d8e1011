#!/bin/bash
# kill -9 at random moments of run, sweep, plan (kill_run.sh, sweep_rows.sh, plan_rows.sh), and here of plot, trace, calibrate
# and train, which SIGTERM and SIGINT end too:
#   kill.sh DTSIM [TIMES each [COMMAND...]]    only these: rows plot trace calibrate train
# Two inputs take turns in one place. After each end the place has nothing, or the whole of one; after SIGTERM or SIGINT
# nothing else lies there, and after kill -9 the next one that ends removes what is left.
set -u
dtsim=$(realpath "$1") times=${2:-20}
here=$(realpath "$(dirname "$0")/..")
scratch=$(mktemp -d) || exit 2
# A child that is killed before it has become its command would run the trap too.
trap '[ $BASHPID = $$ ] && rm -rf "$scratch"' EXIT
shift $(($# > 2 ? 2 : $#))
[ $# -gt 0 ] || set -- rows plot trace calibrate train
cd "$scratch" || exit 2
RANDOM=1

# The words of a command with one of both inputs that writes to a path.
words_of() # COMMAND a|b PATH
{
    case $1 in
    plot) words=(plot breakdown "$2" -o "$3.svg") ;;
    trace) words=(trace "$2" --all -o "$3.json") ;;
    calibrate) words=(calibrate fit "$2.csv" -o "$3.yaml") ;;
    train) words=(train "$here/torture/samples/train.yaml" --trials "$([ "$2" = a ] && echo 2000 || echo 3000)" --engine ideal
        -o "$3") ;;
    esac
}

# Whether the place holds nothing, or the whole of a or b; hidden files next to it do not count. A folder without
# result.json counts as nothing: its readers refuse it. So does a chart without its picture, which is removed first and
# written last.
whole_or_none()
{
    [ -d place/c ] && [ ! -e place/c/result.json ] && return 0
    [ -e place/c.gp ] && [ ! -e place/c.svg ] && return 0
    for other in none whole-a whole-b; do
        diff -r -q -x '.*' -x '*.gp' place $other >/dev/null && return 0
    done
    return 1
}

kill_command() # COMMAND
{
    local command=$1 i begun micros moment pid signal words hidden killed=0 whole=0
    rm -rf place none whole-?
    mkdir place none whole-a whole-b
    for input in a b; do
        words_of "$command" $input whole-$input/c
        begun=$(date +%s%N)
        "$dtsim" "${words[@]}" >said 2>&1 || { echo "$command: $(cat said)"; return 1; }
        micros=$((($(date +%s%N) - begun) / 1000))
    done
    for ((i = 0; i < times; i++)); do
        case $((i % 4)) in 1) signal=TERM ;; 3) signal=INT ;; *) signal=KILL ;; esac
        words_of "$command" "$( ((i / 2 % 2)) && echo a || echo b)" place/c
        moment=$(((RANDOM * 32768 + RANDOM) % (micros * 5 / 4)))
        env --default-signal=INT "$dtsim" "${words[@]}" >said 2>&1 &
        pid=$!
        sleep "$(printf '%d.%06d' $((moment / 1000000)) $((moment % 1000000)))"
        hidden=$(find place -name '.*' -mindepth 1 | wc -l)
        kill -$signal $pid 2>/dev/null
        wait $pid 2>/dev/null
        [ $? -gt 128 ] && killed=$((killed + 1))
        whole_or_none || { echo "$command, SIG$signal, after $i: half of an output"; ls -laR place; return 1; }
        [ $signal != KILL ] && [ "$hidden" = 0 ] && [ "$(find place -name '.*' -mindepth 1)" ] &&
            { echo "$command, SIG$signal, after $i: something is left behind"; ls -laR place; return 1; }
        diff -r -q -x '.*' place none >/dev/null || whole=$((whole + 1))
    done
    words_of "$command" a place/c
    "$dtsim" "${words[@]}" >said 2>&1 || { echo "$command: $(cat said)"; return 1; }
    diff -r -x '*.gp' place whole-a >said || { echo "$command: after all something is left behind: $(cat said)"; return 1; }
    echo "$times signals to $command, $killed met it: $whole times a whole output was there, else none"
}

for run in a b; do
    global=$([ $run = a ] && echo 1024 || echo 2048)
    "$dtsim" run "$here/../scenarios/first.yaml" --engine ideal --set "batch.global=$global" -o $run >/dev/null 2>&1 || exit 2
    awk -v rate="$([ $run = a ] && echo 100 || echo 200)" 'BEGIN {
        print "# gpu: none\n# sms: 108\nkernel,dtype,batch,m,n,k,layout,bytes,median_us"
        for (m = 128; m <= 8192; m *= 2) for (n = 128; n <= 8192; n *= 2) for (k = 512; k <= 8192; k *= 4)
            printf "matmul,bf16,1,%d,%d,%d,nt,,%.3f\n", m, n, k, 5 + 2e-6 * m * n * k / rate }' >$run.csv
done
failed=0
for command in "$@"; do
    case $command in
    rows)
        "$here/kill_run.sh" "$dtsim" "$times" && "$here/sweep_rows.sh" "$dtsim" kill "$times" &&
            "$here/plan_rows.sh" "$dtsim" kill "$times" || failed=1 ;;
    plot)
        if command -v gnuplot >/dev/null; then kill_command plot || failed=1; else echo "no gnuplot: charts were not killed"; fi ;;
    *) kill_command "$command" || failed=1 ;;
    esac
done
exit $failed
