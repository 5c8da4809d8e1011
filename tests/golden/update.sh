#!/bin/sh
# Writes what dtsim says now into the golden cases, all of them or those named. Read the difference before you commit it:
#   tests/golden/update.sh && git diff tests/golden
# A scenario of the tour that has no case gets one.
# DTSIM names the program, build/dtsim when unset.
here=$(dirname "$0")
dtsim=${DTSIM:-$here/../../build/dtsim}
if [ $# -eq 0 ]; then
    for scenario in "$here"/../../scenarios/tour/*.yaml; do
        case=$here/tour/$(basename "$scenario" .yaml).golden
        [ -e "$case" ] || printf '$ both-engines scenarios/tour/%s\n' "$(basename "$scenario")" >"$case"
    done
    set -- "$here"/*/*.golden
fi
exec "$here/run.sh" --update "$dtsim" "$@"
