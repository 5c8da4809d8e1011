#!/bin/sh
# Every scenario of the tour has a line in the tour's index, scenarios/tour/README.md, and a golden case with its numbers.
cd "$(dirname "$0")/.." || exit 2
status=0
for scenario in scenarios/tour/*.yaml; do
    file=${scenario##*/}
    grep -q "^| \[.*\]($file) |" scenarios/tour/README.md ||
        { echo "scenarios/tour/README.md: no line for $file"; status=1; }
    [ -e "tests/golden/tour/${file%.yaml}.golden" ] ||
        { echo "no tests/golden/tour/${file%.yaml}.golden; tests/golden/update.sh writes it"; status=1; }
done
exit $status
