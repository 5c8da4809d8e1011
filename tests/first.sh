#!/bin/sh
# first.tsv: what is written in it stays, it has each table and no other, and errors.tsv has its errors and no other.
set -u
LC_ALL=C
export LC_ALL
cd "$(dirname "$0")/../scenarios/paper" || exit 2
status=0
fail()
{
    echo "first.tsv: $*"
    status=1
}
# Nothing computes these rows again. New ones go behind them.
[ "$(head -n 877 first.tsv | cksum)" = "4062589380 52671" ] || fail "the rows of 2026 have changed; expected new rows behind them, and no other change"
scratch=$(mktemp -d) || exit 2
trap 'rm -rf "$scratch"' EXIT
ls ./*.yaml | sed 's|^./||; s/[.]yaml$//' | sort >"$scratch/tables"
sed 1d first.tsv | cut -f 1 | sort -u | diff "$scratch/tables" - || fail "expected rows of each table (>: of no table)"
sed 1d first.tsv | awk -F '\t' '$2 != "" {print $1 "\t" $2 "\t" $3 "\t" $4}' | sort >"$scratch/first"
sed 1d errors.tsv | awk -F '\t' '$20 != "" {print $1 "\t" $2 "\t" $20 "\t" ($21 != "" ? $21 : $5)}' | sort |
    diff "$scratch/first" - || fail "expected its errors in errors.tsv (>: of errors.tsv)"
exit $status
