#!/bin/bash
# Lines and branches that the tests run, by gcov: by wing, and the least covered files first. It builds the preset coverage
# anew, without the compiler's cache, whose objects know no lines, and runs the tests, all but the published measurements;
# arguments go to ctest instead. build-coverage/not_run.txt lists the lines that no test runs, by wing.
#   coverage.sh -R 'unit[.]'
set -eu
export CCACHE_DISABLE=1
cd "$(dirname "$0")/.."
rm -rf build-coverage
cmake --preset coverage >/dev/null
cmake --build build-coverage -j "$(nproc)" >/dev/null
find build-coverage -name '*.gcda' -delete
[ $# -gt 0 ] || set -- -LE validation
(cd build-coverage && ctest -j "$(nproc)" "$@") | tail -3
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
root=$PWD
find "$PWD/build-coverage" -name '*.gcda' -path '*/CMakeFiles/dtsim_*' >"$scratch/counts"
(cd "$scratch" && xargs -r gcov -b -s "$root" -r <counts) >"$scratch/said" 2>/dev/null
awk -F: '/^ *-: *0:Source:/ { file = $4 } /^ *#####:/ { print file ":" $2 + 0 }' "$scratch"/*.gcov | grep -E '^(sim|plots|strategies)/' |
    sort -t: -k1,1 -k2,2n >build-coverage/not_run.txt
awk -F"'" 'function share(part, of) { return of ? 100 * part / of : 100 }
    function row(at) {
        return sprintf("%5.1f %% of %5d lines  %5.1f %% of %5d branches  %s", share(run[at], lines[at]), lines[at],
                       share(taken[at], branches[at]), branches[at], at)
    }
    /^File/ {
        split($2, part, "/")
        names[1] = $2; names[2] = part[1] == "sim" ? "wing " part[2] : "wing " part[1]; names[3] = "all"
        counts = $2 ~ /^(sim|plots|strategies)\/.*[.]c$/
    }
    counts && /^(Lines executed|Branches executed)/ {
        split($0, part, /[:% ]+/)
        for (i in names)
            if ($0 ~ /^Lines/) { lines[names[i]] += part[length(part)]; run[names[i]] += part[length(part)] * part[3] / 100 }
            else { branches[names[i]] += part[length(part)]; taken[names[i]] += part[length(part)] * part[3] / 100 }
    }
    END { for (at in lines) print (at ~ /[.]c$/ ? 1 : at == "all" ? 3 : 2), row(at) }' "$scratch/said" | sort -k1,1n -k2,2n >"$scratch/rows"
{ grep '^1' "$scratch/rows" | head -20; grep '^[23]' "$scratch/rows"; } | cut -c3-
