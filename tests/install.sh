#!/bin/sh
# An installation finds its own platforms, models and scenarios wherever it has been put: install.sh BUILD_FOLDER
set -eu
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
unset DTSIM_DATA

cmake --install "$1" --prefix "$scratch/first place" >/dev/null
mv "$scratch/first place" "$scratch/second place"
cd "$scratch/second place"
mv share/dtsim/platforms/dgx-a100.yaml share/dtsim/platforms/installed.yaml
mv share/dtsim/scenarios/models/gpt2-355m.yaml share/dtsim/scenarios/models/installed.yaml
bin/dtsim list platforms | grep -q '^installed '
run="bin/dtsim run share/dtsim/scenarios/tour/01-data-parallel.yaml --set model.preset=installed
     --set cluster.platform=installed"
$run --json | grep -q iteration_time_s

# SimGrid is a module of its own. Without it all else works, and whoever needs it is told which file is missing.
rm -r lib*/dtsim
$run --engine ideal | grep -q 'engine ideal'
code=0
$run 2>error.txt || code=$?
[ "$code" = 6 ]
grep -q 'error: the simgrid engine needs a module that is not installed: there is neither .*bin/dtsim-simgrid.so nor ' error.txt
