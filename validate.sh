#!/bin/sh
# Holds dtsim against published measurements: builds a release, simulates every row of scenarios/paper and prints what was
# measured, what is predicted and the error, then a line a table; then the collectives. ./validate.sh [--summary] [further
# options of 'dtsim validate'], for example ./validate.sh --summary --strict
set -eu
cd "$(dirname "$0")"
. ./packages.sh
packages $build_packages

cmake --preset release >/dev/null
cmake --build build --target dtsim -j "$(nproc)" >build/build.log || { cat build/build.log; exit 1; }
status=0
build/dtsim validate "$@" scenarios/paper/*.yaml || status=$?
lines=1000 # of each table; its last two are the summary
case " $* " in
*" --json "*) exit $status ;;
*" --summary "*) lines=2 ;;
esac
for table in scenarios/paper/collectives/*.yaml; do
    printf '\n== %s\n' "$table"
    engine=simgrid
    case $table in
    *nvls-tree*) engine=ideal ;; # minutes on simgrid, and nothing contends there
    esac
    build/dtsim collective "$table" --table --engine $engine | tail -n $lines
done
exit $status
