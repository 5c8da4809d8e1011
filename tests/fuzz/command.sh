#!/bin/bash
# fuzz_command on each kind of file that a command reads, which begins with the files of that kind in the repository and
# with those that earlier runs found: command.sh FUZZ_COMMAND SECONDS FOUND_FOLDER [ENTRANCE...]
# SECONDS each; 0: only these files. Prints a line of figures for each. Inputs that fail stay in FOUND_FOLDER/failed.
set -u
fuzz=$(realpath "$1") seconds=$2 words=$(realpath "$(dirname "$0")/command.dict") bad=0 all=()
mkdir -p "$3/failed" || exit 2
found=$(realpath "$3")
shift 3
scratch=$(mktemp -d) || exit 2
trap 'rm -rf "$scratch"' EXIT
runs=-max_total_time=$seconds
[ "$seconds" -gt 0 ] || runs=-runs=0
[ $# -gt 0 ] || mapfile -t all < <(seq 0 999)
for i in "$@" "${all[@]}"; do
    mkdir -p "$scratch/$i" "$scratch/seeds-$i" "$found/$i"
    cd "$scratch/$i" || exit 2
    DTSIM_FUZZ_ENTRANCE=$i DTSIM_FUZZ_SEEDS=$scratch/seeds-$i "$fuzz" "$runs" -timeout=30 -max_len=32768 \
        -print_final_stats=1 -dict="$words" -artifact_prefix="$found/failed/$i-" "$found/$i" "$scratch/seeds-$i" \
        >"$scratch/said" 2>&1
    code=$?
    [ $code -eq 99 ] && break
    printf '%d %s: %s inputs, exit code %d\n' "$i" "$(head -1 "$scratch/said")" \
        "$(sed -n 's/^stat::number_of_executed_units: *//p' "$scratch/said")" $code
    [ $code -eq 0 ] || { bad=1; grep -m 20 'ERROR\|SUMMARY\|#[0-9] .*dtsim\|BUG\|runtime error' "$scratch/said"; }
    cd / && rm -rf "${scratch:?}/$i"
done
exit $bad
