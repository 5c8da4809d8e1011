#!/bin/bash
# kill -9 of `dtsim run -o` at random moments: a folder is one run's, whole, or its readers refuse it. Two scenarios take
# turns in one folder, so that files of both in it would be noticed.
#   kill_run.sh DTSIM [TIMES]
set -u
dtsim=$(realpath "$1") times=${2:-20}
here=$(realpath "$(dirname "$0")/..")
scratch=$(mktemp -d) || exit 2
# A child that is killed before it has become its command would run the trap too.
trap '[ $BASHPID = $$ ] && rm -rf "$scratch"' EXIT
cd "$scratch" || exit 2
RANDOM=1

run() # SCENARIO FOLDER
{
    "$dtsim" run "$here/scenarios/tour/$1" --engine ideal -o "$2" >/dev/null 2>&1
}

begun=$(date +%s%N)
run 06-3d.yaml a || exit 2
run 16-pipedream.yaml b || exit 2
micros=$((($(date +%s%N) - begun) / 2000))
cp -r a out
whole=0 refused=0
for ((i = 0; i < times; i++)); do
    scenario=06-3d.yaml
    ((i % 2)) && scenario=16-pipedream.yaml
    moment=$(((RANDOM * 32768 + RANDOM) % (micros * 5 / 4)))
    "$dtsim" run "$here/scenarios/tour/$scenario" --engine ideal -o out >/dev/null 2>&1 &
    pid=$!
    sleep "$(printf '%d.%06d' $((moment / 1000000)) $((moment % 1000000)))"
    kill -9 $pid 2>/dev/null
    wait $pid 2>/dev/null
    if "$dtsim" compare out >/dev/null 2>&1; then
        whole=$((whole + 1))
        if ! diff -q a out >/dev/null && ! diff -q b out >/dev/null; then
            diff -q a out | grep -q -v '\.new$' && diff -q b out | grep -q -v '\.new$' &&
                { echo "after $i kills: a reader takes a mixed folder for whole"; ls -la out; exit 1; }
        fi
    else
        refused=$((refused + 1))
    fi
done
run 06-3d.yaml out || { echo "the folder cannot be written any more"; exit 1; }
diff -r a out || { echo "the last run left something behind"; exit 1; }
echo "$times kills: $whole times a whole folder, $refused times a refused one"
