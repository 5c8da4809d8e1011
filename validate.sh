#!/bin/sh
# Holds dtsim against published measurements: builds a release, simulates every row of scenarios/paper and prints what was
# measured, what is predicted and the error, then a line a table; then the collectives.
#   ./validate.sh [OPTION...]     options of 'dtsim validate', for example --summary --strict
#   ./validate.sh --check         says nothing where the tables of all pages (README.md of this folder, of scenarios/paper,
#                                 of its collectives, of scenarios/methods and of scenarios/training) are what the
#                                 program prints, else prints the differences and exits with 1; so with scenarios/paper/errors.tsv and
#                                 memory.tsv, from which expected errors are, made from nothing but the tables and
#                                 scenarios/paper/first.tsv, and with the texts in README.md's pictures
#   ./validate.sh --update        writes these tables and those files anew, and draws these pictures
set -eu
LC_ALL=C                                # the order of tables
export LC_ALL
cd "$(dirname "$0")"
. ./packages.sh
packages $build_packages $plot_packages

cmake --preset release >/dev/null
cmake --build build --target dtsim -j "$(nproc)" >build/build.log || { cat build/build.log; exit 1; }
pages="README.md scenarios/methods/README.md scenarios/training/README.md scenarios/paper/README.md"
pages="$pages scenarios/paper/collectives/README.md"
errors=scenarios/paper/errors.tsv
memory=scenarios/paper/memory.tsv
status=0
case ${1-} in
--check)
    tests/first.sh || status=1
    tests/anew.sh build/dtsim validate --errors scenarios/paper/*.yaml | diff -u $errors - || status=1
    tests/anew.sh build/dtsim validate --memory-errors scenarios/paper/*.yaml | diff -u $memory - || status=1
    tests/page.sh build/dtsim $pages || status=1
    tests/pictures.sh build/dtsim || status=1
    exit $status ;;
--update)
    tests/anew.sh -o $errors build/dtsim validate --errors scenarios/paper/*.yaml >/dev/null
    tests/anew.sh -o $memory build/dtsim validate --memory-errors scenarios/paper/*.yaml >/dev/null
    tests/page.sh --update build/dtsim $pages
    PATH=$PWD/build:$PATH exec plots/example/draw.sh ;;
esac
build/dtsim validate "$@" scenarios/paper/*.yaml || status=$?
lines=1000 # of each table; its last two are the summary
case " $* " in
*" --json "* | *" --markdown "*) exit $status ;;
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
