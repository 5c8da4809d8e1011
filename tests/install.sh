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
bin/dtsim run share/dtsim/scenarios/tour/01-data-parallel.yaml --set model.preset=installed \
    --set cluster.platform=installed --json | grep -q iteration_time_s
