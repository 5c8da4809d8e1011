#!/bin/sh
# Writes what dtsim says now into the golden cases, all of them or those named. Read the difference before you commit it:
#   tests/golden/update.sh && git diff tests/golden
# DTSIM names the program, build/dtsim when unset.
here=$(dirname "$0")
dtsim=${DTSIM:-$here/../../build/dtsim}
if [ $# -eq 0 ]; then
    set -- "$here"/*/*.golden
fi
exec "$here/run.sh" --update "$dtsim" "$@"
