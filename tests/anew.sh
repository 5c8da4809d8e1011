#!/bin/sh
# Runs a command of a program for which no error of a published time or peak is known yet: errors.tsv and memory.tsv are
# empty. What it prints is also kept in a file, where that is named.
#   anew.sh [-o FILE] DTSIM ARGUMENT...
set -u
kept=
if [ "$1" = -o ]; then
    kept=$2
    shift 2
fi
data=$(mktemp -d) || exit 2
trap 'rm -rf "$data"' EXIT
mkdir -p "$data/scenarios/paper"
for file in errors.tsv memory.tsv; do
    found=$(dirname "$0")/../scenarios/paper/$file
    [ ! -e "$found" ] || head -n 1 "$found" >"$data/scenarios/paper/$file" || exit 2
done
DTSIM_DATA=$data "$@" >"$data/printed"
status=$?
cat "$data/printed"
if [ -n "$kept" ] && [ $status = 0 ]; then
    cp "$data/printed" "$kept" || exit 2
fi
exit $status
