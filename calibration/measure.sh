#!/bin/sh
# Measures this machine's GPU: builds dtsim-bench (CUDA and CMake are all that it needs), checks every kernel against
# the CPU, and measures what is right. Takes SECONDS in all (default 900); started again with the same FILE it goes on
# where it stopped. measure.sh FILE [SECONDS [further options of dtsim-bench]]
set -eu
[ $# -ge 1 ] || { sed -n '2,4s/^# //p' "$0" >&2; exit 2; }
file=$1
seconds=${2:-900}
shift $(($# < 2 ? 1 : 2))
started=$(date +%s)
root=$(cd "$(dirname "$0")/.." && pwd)
build=$root/build-bench
bench=$build/calibration/dtsim-bench
PATH=$PATH:/usr/local/cuda/bin
command -v make >/dev/null || export CMAKE_GENERATOR=Ninja
architecture=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -n 1 | tr -d .)
# From Blackwell on the instructions of one chip alone convert to 4 bits.
case $architecture in 1??) architecture=${architecture}a ;; esac
# PyTorch's cuDNN is the one that jobs run with
wheels=$(python3 -c 'import nvidia; print(list(nvidia.__path__)[0])' 2>/dev/null || true)

mkdir -p "$build"
{ cmake -S "$root" -B "$build" -DDTSIM_BENCH_ONLY=ON -DCMAKE_BUILD_TYPE=Release \
        -DCMAKE_CUDA_ARCHITECTURES="${architecture:-native}" -DDTSIM_WHEELS="$wheels" &&
  cmake --build "$build" -j "$(nproc)"; } >"$build/build.log" 2>&1 || { cat "$build/build.log"; exit 1; }
"$bench" --help | grep '^built with'

# What is wrong is left out; where the GPU or the program fails, the kernels are checked one by one.
if ! [ "$file.check" -nt "$bench" ]; then
    "$bench" --check >"$file.check" || true
    if grep -q 'the GPU failed: ' "$file.check" || ! tail -n 1 "$file.check" | grep -q ' kernels '; then
        for kernel in $("$bench" --help | sed '1,/^kernels:/d' | cut -c 3-32); do
            "$bench" --check --only "$kernel" || [ $? -eq 1 ] || echo "$kernel the GPU failed: or the program did"
        done | grep -v ' kernels ' >"$file.check"
    fi
fi
grep -v ' right ' "$file.check" || true
without=$(awk '/^some kernels / { next }
               / the GPU failed: / { print $1 }
               / WRONG | cannot be run: / { print $1 ":" $2 }' "$file.check" | sort -u | paste -s -d , -)

# A case in which the GPU or the program fails is named in the file, and passed over next time.
code=0
for try in 1 2 3 4 5 6 7 8 9; do
    left=$((seconds - 10 - $(date +%s) + started))
    [ $left -gt 0 ] || break
    code=0
    "$bench" --resume -o "$file" --seconds $left ${without:+--without "$without"} "$@" || code=$?
    [ $code -eq 1 ] || [ $code -gt 128 ] || break
done
exit $code
