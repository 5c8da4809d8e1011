#!/bin/sh
# Measures this machine's GPU: builds dtsim-bench (CUDA and CMake are all that it needs), checks every kernel against the
# CPU, and measures. Started again with the same FILE it goes on where it stopped.
# measure.sh FILE [SECONDS [further options of dtsim-bench]]
set -eu
[ $# -ge 1 ] || { sed -n '2,4s/^# //p' "$0" >&2; exit 2; }
file=$1
seconds=${2:-900}
shift $(($# < 2 ? 1 : 2))
root=$(cd "$(dirname "$0")/.." && pwd)
build=$root/build-bench
# fused attention through the cuDNN of PyTorch's wheels, where the system has none
wheel=$(python3 -c 'import nvidia.cudnn; print(list(nvidia.cudnn.__path__)[0])' 2>/dev/null || true)

cmake -S "$root" -B "$build" -DDTSIM_BENCH_ONLY=ON -DCMAKE_BUILD_TYPE=Release -DCMAKE_CUDA_ARCHITECTURES=native \
      -DCMAKE_PREFIX_PATH="$wheel" >/dev/null
cmake --build "$build" -j "$(nproc)" >"$build/build.log" 2>&1 || { cat "$build/build.log"; exit 1; }
bench=$build/calibration/dtsim-bench
"$bench" --help | grep '^built with'
"$bench" --check >"$file.check" || { grep -v ' right ' "$file.check"; exit 1; }
tail -n 1 "$file.check"
"$bench" --resume -o "$file" --seconds "$seconds" "$@"
