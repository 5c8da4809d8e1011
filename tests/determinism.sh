#!/bin/sh
# The same scenario gives the same bytes: run twice, with both engines, and with every program named.
#   determinism.sh DTSIM...     programs that other compilers built are compared where they exist
set -u
here=$(dirname "$0")
scratch=$(mktemp -d) || exit 2
trap 'rm -rf "$scratch"' EXIT
export LC_ALL=C
cat >"$scratch/stages.yaml" <<'END'
model: {stages: {forward: 1.1 ms, backward: 2.3 ms, recompute: 1.1 ms, parameters: 70 M, activation: 3 MB, boundary: 1 MB}}
cluster:
  nodes: 4
  gpus_per_node: 2
  inside: {bandwidth: 300 GB/s, latency: 1.7 us}
  network: {bandwidth: 12.3 GB/s, latency: 5.1 us}
batch: {micro_batches: 8}
strategy: {schedule: 1f1b, pipeline: 4}
memory: {enforce: false}
END
cat >"$scratch/transformer.yaml" <<'END'
model: {transformer: {layers: 8, hidden: 1024, heads: 16, sequence: 512, vocabulary: 5000}}
cluster:
  nodes: 4
  gpus_per_node: 4
  gpu: a100-80gb
  inside: {bandwidth: 300 GB/s, latency: 1.7 us}
  network: {bandwidth: 12.3 GB/s, latency: 5.1 us, nics: 2}
batch: {global: 64, micro: 2}
strategy: {schedule: gpipe, tensor: 2, pipeline: 4}
memory: {recompute: full}
END

# Whether a program was built from the sources as they are: an old build differs for other reasons.
current()
{
    [ -z "$(find "$here/../sim" "$here/../strategies" -name '*.[ch]' -newer "$1" | head -n 1)" ]
}

status=0
for scenario in stages transformer; do
    for engine in simgrid ideal; do
        first=
        for dtsim in "$1" "$@"; do
            [ -x "$dtsim" ] || continue
            [ "$dtsim" = "$1" ] || current "$dtsim" || continue
            # Each run with another environment: what it holds must not matter.
            PADDING=$dtsim.$first "$dtsim" run "$scratch/$scenario.yaml" --engine $engine --json -o "$scratch/now" \
                >"$scratch/stdout" 2>/dev/null || { echo "$dtsim: $scenario, $engine: exit $?"; status=1; continue; }
            mv "$scratch/stdout" "$scratch/now/stdout"
            if [ -z "$first" ]; then
                first=$dtsim
                mv "$scratch/now" "$scratch/first"
            else
                diff -rq "$scratch/first" "$scratch/now" || { echo "^ $scenario, $engine: $first and $dtsim"; status=1; }
                rm -rf "$scratch/now"
            fi
        done
        rm -rf "$scratch/first" "$scratch/now"
    done
done
exit $status
