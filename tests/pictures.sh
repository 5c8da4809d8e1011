#!/bin/sh
# The pictures of README.md say what is drawn now: the same texts, numbers and names, in the same order. Where something
# lies in a picture is left to gnuplot's version.   tests/pictures.sh DTSIM
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin" "$work/drawn"
ln -s "$(realpath "$1")" "$work/bin/dtsim"
PATH=$work/bin:$PATH "$here/plots/example/draw.sh" "$work/drawn"

texts() { grep -o '>[^<>]*<' "$1" | grep -v 'GNUPLOT\|^>[[:space:]]*<$'; }

rc=0
for picture in "$here"/plots/example/*.svg; do
    name=$(basename "$picture")
    texts "$picture" >"$work/old"
    texts "$work/drawn/$name" >"$work/new"
    [ "$(wc -l <"$work/new")" -gt 20 ] || { echo "$name: hardly a text"; rc=1; }
    diff "$work/old" "$work/new" >"$work/difference" && continue
    echo "$name is not what is drawn now; plots/example/draw.sh draws it anew:"
    head -n 20 "$work/difference"
    rc=1
done
exit $rc
