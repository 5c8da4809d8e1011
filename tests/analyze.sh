#!/bin/bash
# clang's static analyzer over every C file of the program, with the flags of a build: analyze.sh [BUILD_FOLDER [FILE...]]
# Prints what it finds and fails if that is anything.
set -eu
cd "$(dirname "$0")/.."
build=${1:-build} found=0
[ $# -gt 0 ] && shift
[ $# -gt 0 ] || set -- sim/*/*/*.c plots/*.c strategies/*.c strategies/collectives/*.c
read -r -a libraries <<<"$(pkg-config --cflags yaml-0.1 jansson gsl libxxhash ompi-c sqlite3 2>/dev/null || true)"
for file in "$@"; do
    clang --analyze --analyzer-output text -std=c11 -D_GNU_SOURCE -DDTSIM_VERSION='""' -DDTSIM_SOURCE_DIR='""' \
        -DDTSIM_DATA_FOLDER='""' -DDTSIM_MODULE_FOLDER='""' -Isim -I. "${libraries[@]}" "$file" 2>"$build/analyze.log" ||
        cat "$build/analyze.log"
    if grep -q 'warning:' "$build/analyze.log"; then
        cat "$build/analyze.log"
        found=$((found + 1))
    fi
done
rm -f "$build/analyze.log"
echo "$# files: $found with warnings"
[ $found -eq 0 ]
