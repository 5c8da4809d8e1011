#!/bin/sh
# Draws the pictures of README.md anew, with the dtsim of PATH, into a folder: this one where none is named.
# PATH=$PWD/build:$PATH plots/example/draw.sh [FOLDER] A test compares the texts in these files, numbers and names, with
# newly drawn pictures (tests/pictures.sh).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=$(cd "${1-$here}" && pwd)
scenarios=$here/../../scenarios
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

run() { # FOLDER SCENARIO [--set ...]
    folder=$1
    shift
    dtsim run "$@" --engine fast --no-advice -o "$folder" >run.txt 2>&1 || { cat run.txt >&2; exit 1; }
}

draw() { # CHART ARGUMENT...
    dtsim plot "$@" --format svg -o . >/dev/null
    cp "$1.svg" "$out"
}

for schedule in gpipe 1f1b interleaved zb-h1 zb-v dualpipe-v; do
    chunks=
    [ $schedule != interleaved ] || chunks="--set strategy.chunks=3"
    run $schedule "$scenarios/demo.yaml" --set name=$schedule --set strategy.schedule=$schedule $chunks
done
draw breakdown gpipe 1f1b interleaved zb-h1 zb-v dualpipe-v

# the page that README.md links to; its picture, report.png, is drawn by tests/web/picture.py
run report "$scenarios/tour/25-offloading.yaml"
dtsim report report -o "$out/report.html" >/dev/null

# the same stages in several schedules; on a rank with two chunks they are halves
stages=
for schedule in 1f1b interleaved zb-v dualpipe-v; do
    chunks=
    [ $schedule != interleaved ] || chunks="--set strategy.chunks=2"
    run stages-$schedule "$scenarios/tour/14-zero-bubble.yaml" --set name=$schedule --set strategy.schedule=$schedule \
        --set model.stages.per=rank $chunks
    stages="$stages stages-$schedule"
done
draw gantt $stages --title 'Four schedules of the same stages on one time axis'

for m in 8 16 24 32 48 64; do
    for schedule in gpipe 1f1b zb-h1; do
        run $schedule-$m "$scenarios/tour/14-zero-bubble.yaml" --set strategy.schedule=$schedule --set batch.micro_batches=$m
    done
    run interleaved-$m "$scenarios/tour/14-zero-bubble.yaml" --set strategy.schedule=interleaved --set strategy.chunks=2 \
        --set batch.micro_batches=$m --set model.stages.per=rank
done
draw bubble gpipe-* 1f1b-* interleaved-* zb-h1-*

dtsim sweep "$scenarios/sweeps/llama3-70b-128-h100.yaml" -o llama3-70b-128-h100.sweep >/dev/null 2>&1
draw heat llama3-70b-128-h100.sweep --x strategy.tensor --y strategy.pipeline --by tokens_per_s
draw pareto llama3-70b-128-h100.sweep --x peak_memory_bytes --y tokens_per_s
