#!/bin/sh
# Every text of the charts lies inside its picture, and no two lie on each other: charts of scenarios of the tour, of a
# sweep, as they are and as slides, and of long names.   tests/texts_of_pictures.sh DTSIM PYTHON
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
dtsim=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
"$2" -c 'import cairo' 2>/dev/null || { echo "skipped: $2 has no cairo (package python3-cairo)"; exit 77; }

draw() { "$dtsim" plot "$@" >/dev/null; }

for tour in 03-gpipe 06-3d 10-trillion 13-interleaved 14-zero-bubble 20-long-context 21-mixture-of-experts 25-offloading; do
    "$dtsim" run "$here/scenarios/tour/$tour.yaml" --engine fast -o "$tour" >/dev/null
    for kind in gantt utilization memory breakdown bubble links; do
        [ "$kind" = links ] && [ "$(wc -l <"$tour/links.tsv")" -lt 2 ] && continue
        draw "$kind" "$tour" -o "pictures/$tour-$kind.svg"
        draw "$kind" "$tour" --style slide -o "pictures/$tour-$kind-slide.svg"
    done
done
draw gantt 10-trillion --ranks 0,5,7-20 --from '1 s' --to '1.5 s' -o pictures/part.svg \
    --title 'A title of many words that say what the picture shows, far longer than any title has room, in one line'
for schedule in gpipe interleaved zb-v; do
    "$dtsim" run "$here/scenarios/tour/06-3d.yaml" --engine fast --set "strategy.schedule=$schedule" -o "$schedule" \
        --set "name=the scenario whose name is long because it says all that it is, the schedule $schedule too" >/dev/null
done
draw breakdown gpipe interleaved zb-v -o pictures/long.svg
"$dtsim" run "$here/scenarios/tour/16-pipedream.yaml" --engine fast -o pipedream >/dev/null
"$dtsim" run "$here/scenarios/tour/06-3d.yaml" --engine fast --set 'simulation.stragglers={gpu: 5, slower: 1.25}' -o straggler \
    >/dev/null
"$dtsim" run "$here/scenarios/tour/12-your-own-order.yaml" --engine fast -o nothing >/dev/null
draw memory nothing -o pictures/nothing.svg
"$dtsim" train "$here/scenarios/training/bloom-176b.yaml" --trials 100 --engine ideal -o days >/dev/null
"$dtsim" collective dgx-h100 --ranks 8,16,64,256 --bytes 1K,1M,1G --algorithm auto,ring,tree --engine ideal --json >sizes.json
for style in paper column slide; do
    draw gantt 03-gpipe pipedream straggler 10-trillion --style $style -o "pictures/stack-$style.svg"
    draw gantt gpipe interleaved zb-v --style $style -o "pictures/stack-long-$style.svg"
    draw bubble gpipe interleaved zb-v --style $style -o "pictures/bars-$style.svg"
    draw training days --style $style -o "pictures/training-$style.svg"
    draw collective sizes.json --style $style -o "pictures/sizes-$style.svg"
done
"$dtsim" sweep "$here/scenarios/sweeps/llama3-70b-128-h100.yaml" --set simulation.engine=fast -o sweep >/dev/null
draw heat sweep --x batch.micro --y strategy.tensor -o pictures/heat-axes.svg
draw heat sweep --x strategy.pipeline --y strategy.tensor --size 600x450 -o pictures/heat-narrow.svg
for kind in heat pareto breakdown bubble; do
    draw "$kind" sweep -o "pictures/sweep-$kind.svg"
    draw "$kind" sweep --style slide -o "pictures/sweep-$kind-slide.svg"
    draw "$kind" sweep --style column -o "pictures/sweep-$kind-column.svg"
done
pictures=$(find pictures -name '*.svg' | wc -l)
[ "$pictures" -gt 100 ] || { echo "$pictures pictures: expected more than 100"; exit 1; }
"$2" "$here/tests/texts_of_pictures.py" pictures/*.svg
echo "$pictures pictures: all texts inside, none on another"
