#!/bin/sh
# Builds and runs the benchmarks of engines and sweeps: ./bench.sh [REPEATS]
set -eu
cd "$(dirname "$0")"
cmake --preset release >/dev/null
cmake --build build --target bench bench_sweep >/dev/null
build/tests/bench "$@"
build/tests/bench_sweep "$@"
