#!/bin/sh
# dtsim-bench where there is no GPU: says so in one line and exits 6; lists shapes all the same. bench.sh DTSIM_BENCH
set -u
bench=$1
export CUDA_VISIBLE_DEVICES=
error=$("$bench" 2>&1 >/dev/null)
code=$?
if [ $code != 6 ] || [ "$(printf '%s\n' "$error" | wc -l)" != 1 ]; then
    printf 'expected one line and exit 6, found exit %s and:\n%s\n' $code "$error"
    exit 1
fi
case $error in
"dtsim-bench: no GPU can be used here: "*) ;;
*) printf 'unexpected: %s\n' "$error"; exit 1 ;;
esac
"$bench" --help | grep -q '^built with: cuBLASLt ' || exit 1
lines=$("$bench" --list --only matmul,adam | cut -d, -f1 | sort -u | tr '\n' ' ')
[ "$lines" = "adam matmul matmul-grouped matmul-quantized matmul-sustained " ] || { echo "listed: $lines"; exit 1; }
"$bench" --only matmull >/dev/null 2>&1
[ $? = 2 ]
