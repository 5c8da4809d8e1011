#!/bin/sh
# The main job on real input: GPT-2 1.5B (its Hugging Face config.json) on two DGX A100 nodes, trained four ways. Installs
# the packages it needs, builds a release, prints the comparison and draws the charts. ./demo.sh [FOLDER]
set -eu
cd "$(dirname "$0")"
. ./packages.sh
packages $build_packages $plot_packages
out=${1:-out/demo}

echo "== building"
cmake --preset release >/dev/null
cmake --build build --target dtsim -j "$(nproc)" >build/build.log || { cat build/build.log; exit 1; }
dtsim=build/dtsim

value() { awk -v key="\"$2\":" '$1 == key { sub(/,$/, "", $2); print $2; exit }' "$1/result.json"; }

echo "== simulating scenarios/demo.yaml four ways"
printf '\n%-16s %12s %12s %9s %12s %12s\n' 'GPT-2 1.5B' 'iteration' 'tokens/s' 'bubble' 'utilization' 'memory'
for way in data-parallel naive gpipe 1f1b; do
    case $way in
    data-parallel) set -- --set strategy.pipeline=1 ;;
    *) set -- --set strategy.schedule=$way ;;
    esac
    "$dtsim" run scenarios/demo.yaml --set name="$way" "$@" -o "$out/$way" >/dev/null 2>&1 ||
        "$dtsim" run scenarios/demo.yaml --set name="$way" "$@" -o "$out/$way"
    awk -v way="$way" -v t="$(value "$out/$way" iteration_time_s)" -v tokens="$(value "$out/$way" tokens_per_s)" \
        -v bubble="$(value "$out/$way" bubble_fraction)" -v use="$(value "$out/$way" utilization)" \
        -v memory="$(value "$out/$way" peak_memory_bytes)" \
        'BEGIN { printf "%-16s %10.3f s %12.0f %7.1f %% %10.1f %% %8.1f GiB\n", way, t, tokens, 100 * bubble, 100 * use,
                 memory / 1073741824 }'
done

echo
echo "== drawing"
for way in data-parallel naive gpipe 1f1b; do
    "$dtsim" plot gantt "$out/$way" | head -n 1
    "$dtsim" plot utilization "$out/$way" | head -n 1
done
echo
echo "Results are in $out/*/result.json, what ran when in spans.tsv beside it; the pictures are named above."
