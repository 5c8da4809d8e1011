#!/bin/bash
# Lines and branches that the tests run, by gcov: the least covered files first, and all of them together. It builds the
# preset coverage and runs the tests, all but the published measurements; arguments go to ctest instead:
#   coverage.sh -R 'unit[.]'
set -eu
cd "$(dirname "$0")/.."
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
awk -F"'" '/^File/ { file = $2 }
    /^(Lines executed|Branches executed)/ {
        split($0, part, /[:% ]+/)
        share = part[3]; of = part[length(part)]
        if ($0 ~ /^Lines/) { lines[file] = of; run[file] += of * share / 100 }
        else { branches[file] = of; taken[file] += of * share / 100 }
    }
    END {
        for (file in lines) {
            if (file !~ /^(sim|plots|strategies)\/.*[.]c$/ || lines[file] == 0) continue
            printf "%5.1f %% of %4d lines  %5.1f %% of %4d branches  %s\n", 100 * run[file] / lines[file], lines[file],
                branches[file] ? 100 * taken[file] / branches[file] : 100, branches[file], file
            all += lines[file]; allrun += run[file]; b += branches[file]; t += taken[file]
        }
        if (all) printf "%5.1f %% of %4d lines  %5.1f %% of %4d branches  together\n", 100 * allrun / all, all,
            b ? 100 * t / b : 100, b > "/dev/stderr"
    }' "$scratch/said" 2>"$scratch/together" | sort -n | head -20
cat "$scratch/together"
