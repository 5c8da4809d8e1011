#!/bin/sh
# Builds and runs the benchmark of the engines: ./bench.sh [REPEATS]
set -eu
cd "$(dirname "$0")"
cmake --preset release >/dev/null
cmake --build build --target bench >/dev/null
exec build/tests/bench "$@"
