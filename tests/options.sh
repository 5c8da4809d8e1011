#!/bin/sh
# Every row of an option that has a number is read, and every number has a row: options.sh SOURCES
set -eu
cd "$1/sim/faces/cli"
failed=0
for file in cmd_*.c; do
    files=$file
    [ "$file" != cmd_calibrate.c ] || files="cmd_calibrate.c cmd_calibrate_check.c cmd_calibrate.h"
    # shellcheck disable=SC2086
    for number in $(cat $files | grep -o '\bOPT_[A-Z_]*\b' | sort -u); do
        rows=$(cat $files | grep -c "^ *\[$number\] = " || true)
        [ "$file" != cmd_calibrate_check.c ] || continue
        reads=$(cat $files | grep -v "^ *\[$number\] = \|^enum {\|^       OPT_" | grep -c "\b$number\b" || true)
        [ "$rows" = 1 ] && [ "$reads" -ge 1 ] || { echo "$file: $number has $rows rows and is read $reads times"; failed=1; }
    done
done
exit $failed
