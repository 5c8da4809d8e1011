#!/bin/sh
# Holds dtsim against published measurements: builds a release, simulates every row of scenarios/paper and prints what was
# measured, what is predicted and the error, then a line a table. ./validate.sh [--summary] [further options of
# 'dtsim validate'], for example ./validate.sh --summary --strict
set -eu
cd "$(dirname "$0")"
. ./packages.sh
packages $build_packages

cmake --preset release >/dev/null
cmake --build build --target dtsim -j "$(nproc)" >build/build.log || { cat build/build.log; exit 1; }
exec build/dtsim validate "$@" scenarios/paper/*.yaml
