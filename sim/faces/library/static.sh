#!/bin/sh
# libdtsim.a: what the functions of a list need, as one object whose other names are local:
# static.sh CC OBJCOPY AR LIST OUTPUT ARCHIVE...
set -eu
cc=$1 objcopy=$2 ar=$3 output=$5
sed -n 's/^ *\(dtsim_[a-z_]*\);$/\1/p' "$4" >"$output.list"
shift 5
# shellcheck disable=SC2046
"$cc" -r -nostdlib -o "$output.o" $(sed 's/^/-Wl,-u,/' "$output.list") -Wl,--start-group "$@" -Wl,--end-group
"$objcopy" --keep-global-symbols="$output.list" "$output.o"
rm -f "$output"
"$ar" rcsD "$output" "$output.o"
rm "$output.o" "$output.list"
