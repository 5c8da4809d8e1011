#!/bin/sh
# Whether scenarios/paper/errors.tsv and memory.tsv are, byte for byte, what validating each table prints; and whether first.tsv is
# of these tables, its beginning as it has always been.
#   joined.sh FOLDER      of the files that the tests validation.NAME left there (anew.sh -o)
set -u
LC_ALL=C
export LC_ALL
made=$(realpath "$1") || exit 2
cd "$(dirname "$0")/../scenarios/paper" || exit 2
status=0
# Prints the lines of a kind, told by their numbers of cells, the heading once.
lines()
{
    for table in *.yaml; do
        cat "$made/${table%.yaml}" || exit 2
    done | awk -F '\t' -v cells="$1" 'NF == cells && !($1 == "table" && headed++)'
}
for file in errors.tsv memory.tsv; do
    lines "$(head -n 1 $file | awk -F '\t' '{print NF}')" | diff -u $file - || status=1
done
exit $status
