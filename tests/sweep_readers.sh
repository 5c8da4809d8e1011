#!/bin/bash
# Rows of sweeps in other programs: the table of SQLite holds what --csv prints, with types; a file is replaced only when
# the new one is whole. scenarios/sweeps/README.md shows the same ways of reading, each of which runs here where its
# program is installed.
#   sweep_readers.sh DTSIM
set -u
dtsim=$(realpath "$1") here=$(realpath "$(dirname "$0")/..")
scratch=$(mktemp -d) || exit 2
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 2

fail()
{
    echo "$*"
    exit 1
}

cat >sweep.yaml <<'end'
base:
  model: {preset: llama3-8b}
  cluster: {platform: dgx-h100, nodes: 1}
  batch: {global: 64}
  memory: {precision: mixed-bf16}
  simulation: {engine: ideal}
sweep:
  grid: {strategy.tensor: [1, 2, 8, 16], strategy.pipeline: [1, 2], memory.recompute: [none, full]}
  let: {half: strategy.tensor / 4}
  include: [{strategy.tensor: 4, cluster.nodes: 2, model.sequence: 4096}]
end
"$dtsim" sweep sweep.yaml -o llama -j 2 >/dev/null 2>err || fail "$(cat err)"
command -v python3 >/dev/null || { echo "skipped: python3 is not installed"; exit 0; }

# The snippets of the page, which read the folder llama/ and the file llama.db.
snippet() # LANGUAGE MARK: the block of that language that holds the mark
{
    awk -v language="\`\`\`$1" -v mark="$2" '
        $0 == language {inside = 1; text = ""; next}
        $0 == "```" {if (inside && index(text, mark)) printf "%s", text; inside = 0}
        inside {text = text $0 "\n"}' "$here/scenarios/sweeps/README.md"
}

"$dtsim" results llama --sqlite llama.db 2>err
code=$?
if [ $code = 6 ]; then
    echo "SQLite is left out: $(cat err)"
else
    [ $code = 0 ] || fail "$(cat err)"
    "$dtsim" results llama --csv >llama.csv
    python3 - <<'end' || fail "the table differs from the CSV"
import csv, json, sqlite3
rows = list(csv.DictReader(open("llama.csv")))
table = sqlite3.connect("llama.db").execute("SELECT * FROM rows")
names = [column[0] for column in table.description]
assert names == list(rows[0]), (names, list(rows[0]))
kinds = {name: kind for _, name, kind, *_ in sqlite3.connect("llama.db").execute("PRAGMA table_info(rows)")}
assert kinds["strategy.tensor"] == "INTEGER" and kinds["mfu"] == "REAL" and kinds["status"] == "TEXT", kinds
assert kinds["half"] == "REAL", kinds
count = 0
for row, values in zip(rows, table, strict=True):
    count += 1
    for name, value in zip(names, values, strict=True):
        text = {"true": "1", "false": "0"}.get(row[name], row[name].lstrip("'"))
        assert (text == "") if value is None else (text == value) if isinstance(value, str) else \
            (float(text) == value and type(value) in (int, float)), (name, text, value)
assert count == 17, count
end
    ls llama.db.* 2>/dev/null && fail "a file is left behind"
    cp llama.db before.db
    (ulimit -f 1; trap '' XFSZ; "$dtsim" results llama --sqlite llama.db 2>err) && fail "no file was too large"
    cmp before.db llama.db || fail "the file was replaced by a part of it"
    ls llama.db.* 2>/dev/null && fail "a file is left behind"
    snippet python 'import sqlite3' >read.py
    python3 read.py >read.out || fail "SQLite cannot read it as the page says"
    grep -q ok read.out || fail "found $(cat read.out)"
fi
for reader in pandas duckdb; do
    snippet python "import $reader" >read.py
    [ -s read.py ] || fail "the page shows no way for $reader"
    python=
    for one in python3 /usr/bin/python3; do
        $one -c "import $reader" 2>/dev/null && python=$one
    done
    [ $python ] || { echo "$reader is not installed"; continue; }
    PATH=$(dirname "$dtsim"):$PATH $python read.py >read.out || fail "$reader cannot read it as the page says"
    grep -q 'mfu' read.out || fail "found $(cat read.out)"
done
