#!/bin/sh
# The main job on real input: GPT-2 1.5B (its Hugging Face config.json) on two DGX A100 nodes, trained in six ways.
#   ./demo.sh [FOLDER]     installs the packages it needs, builds a release, prints the comparison and draws the charts
#   ./demo.sh --table      prints the comparison alone, by the dtsim of PATH; README.md holds it
set -eu
cd "$(dirname "$0")"
ways="data-parallel naive gpipe 1f1b interleaved zb-v"

value() { awk -v key="\"$2\":" '$1 == key { sub(/,$/, "", $2); print $2; exit }' "$1/result.json"; }

simulate() { # WAY FOLDER
    way=$1
    case $way in
    data-parallel) set -- "$2" --set strategy.pipeline=1 ;;
    interleaved) set -- "$2" --set strategy.schedule=interleaved --set strategy.chunks=3 ;;
    *) set -- "$2" --set strategy.schedule="$way" ;;
    esac
    folder=$1
    shift
    "$dtsim" run scenarios/demo.yaml --set name="$way" "$@" -o "$folder" >/dev/null 2>&1 ||
        "$dtsim" run scenarios/demo.yaml --set name="$way" "$@" -o "$folder"
}

table() { # FOLDER: simulates all ways into it
    printf '%-16s %12s %12s %9s %12s %12s\n' 'GPT-2 1.5B' 'iteration' 'tokens/s' 'bubble' 'utilization' 'memory'
    for way in $ways; do
        simulate "$way" "$1/$way"
        awk -v way="$way" -v t="$(value "$1/$way" iteration_time_s)" -v tokens="$(value "$1/$way" tokens_per_s)" \
            -v bubble="$(value "$1/$way" bubble_fraction)" -v use="$(value "$1/$way" utilization)" \
            -v memory="$(value "$1/$way" peak_memory_bytes)" \
            'BEGIN { printf "%-16s %10.3f s %12.0f %7.1f %% %10.1f %% %8.1f GiB\n", way, t, tokens, 100 * bubble,
                     100 * use, memory / 1073741824 }'
    done
}

if [ "${1-}" = --table ]; then
    dtsim=dtsim
    out=$(mktemp -d)
    trap 'rm -rf "$out"' EXIT
    table "$out"
    exit
fi
. ./packages.sh
packages $build_packages $plot_packages libmicrohttpd-dev        # the last for dtsim app
out=${1:-out/demo}
dtsim=build/dtsim

echo "== building"
cmake --preset release >/dev/null
cmake --build build --target dtsim -j "$(nproc)" >build/build.log || { cat build/build.log; exit 1; }

printf '== simulating scenarios/demo.yaml in six ways\n\n'
table "$out"

printf '\n== drawing\n'
for way in $ways; do
    "$dtsim" plot gantt "$out/$way" | head -n 1
    "$dtsim" plot utilization "$out/$way" | head -n 1
done
echo
echo "Results are in $out/*/result.json, what ran when in spans.tsv beside it; the pictures are named above."
