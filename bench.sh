#!/bin/sh
# How fast the simulator is. CPU seconds; machines differ, and so does a machine from hour to hour.
#   ./bench.sh [RUNS]                      commands (tests/bench/commands.c), engines alone (bench.c), sweeps (sweep.c),
#                                          scenarios in one process (warm.c)
#   ./bench.sh --compare COMMIT [RUNS]     commands of these sources and of that commit, in turn, and their ratios, of
#                                          instructions too; then sweeps of these sources
#   ./bench.sh --instructions COMMIT MOST  the instructions of eight commands alone; fails where these sources take more than
#                                          MOST (1.02) times those of that commit
set -eu
cd "$(dirname "$0")"
other=
how=${1-}
if [ "$how" = --compare ] || [ "$how" = --instructions ]; then
    commit=$(git rev-parse --short "${2:?which commit?}^{commit}")
    other=build/bench/$commit
    shift 2
fi
cmake --preset release >/dev/null
cmake --build build --target dtsim bench bench_commands bench_sweep bench_warm >/dev/null
if [ -z "$other" ]; then
    build/tests/bench_commands "${1-3}" build/dtsim
    build/tests/bench "${1-3}"
    build/tests/bench_sweep "${1-3}"
    exec build/tests/bench_warm "${1-3}" 100000
fi
if [ ! -x "$other/build/dtsim" ]; then
    mkdir -p "$other"
    git archive "$commit" | tar -x -C "$other"
    cmake -S "$other" -B "$other/build" -G Ninja -DCMAKE_BUILD_TYPE=Release >/dev/null
    cmake --build "$other/build" --target dtsim >/dev/null
fi
if [ "$how" = --instructions ]; then
    exec build/tests/bench_commands "${1:?how many times as many?}" build/dtsim "$other/build/dtsim"
fi
build/tests/bench_commands "${1-3}" build/dtsim "$other/build/dtsim"
exec build/tests/bench_sweep "${1-3}"
