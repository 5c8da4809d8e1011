#!/bin/bash
# kill -9 at random moments of run, sweep, plan and plot (kill_run.sh, sweep_rows.sh, plan_rows.sh, and charts here):
#   kill.sh DTSIM [TIMES each]
# After each kill a chart's picture is missing or is the whole one of its data, and the next chart leaves nothing behind.
set -u
dtsim=$(realpath "$1") times=${2:-20}
here=$(realpath "$(dirname "$0")/..")
scratch=$(mktemp -d) || exit 2
trap 'rm -rf "$scratch"' EXIT
"$here/kill_run.sh" "$dtsim" "$times" || exit 1
"$here/sweep_rows.sh" "$dtsim" kill "$times" || exit 1
"$here/plan_rows.sh" "$dtsim" kill "$times" || exit 1
command -v gnuplot >/dev/null || { echo "no gnuplot: charts were not killed"; exit 0; }
cd "$scratch" || exit 2
RANDOM=1
for run in a b; do
    scenario=06-3d
    [ $run = b ] && scenario=16-pipedream
    "$dtsim" run "$here/../scenarios/tour/$scenario.yaml" --engine ideal -o $run >/dev/null 2>&1 || exit 2
    begun=$(date +%s%N)
    "$dtsim" plot breakdown $run -o $run.svg >/dev/null || exit 2
    micros=$((($(date +%s%N) - begun) / 1000))
done
mkdir out
whole=0 none=0
for ((i = 0; i < times; i++)); do
    run=a
    ((i % 2)) && run=b
    moment=$(((RANDOM * 32768 + RANDOM) % (micros * 5 / 4)))
    "$dtsim" plot breakdown $run -o out/c.svg >/dev/null 2>&1 &
    pid=$!
    sleep "$(printf '%d.%06d' $((moment / 1000000)) $((moment % 1000000)))"
    kill -9 $pid 2>/dev/null
    wait $pid 2>/dev/null
    if [ ! -e out/c.svg ]; then
        none=$((none + 1))
    elif { cmp -s out/c.svg a.svg && cmp -s out/c.tsv a.tsv; } || { cmp -s out/c.svg b.svg && cmp -s out/c.tsv b.tsv; }; then
        whole=$((whole + 1))
    else
        echo "after $i kills: a picture that is not of its data"
        exit 1
    fi
done
"$dtsim" plot breakdown a -o out/c.svg >/dev/null || exit 1
[ "$(find out -mindepth 1 | wc -l)" -eq 3 ] || { echo "something is left behind"; ls -la out; exit 1; }
echo "$times kills of plot: $whole times a whole picture, $none times none"
