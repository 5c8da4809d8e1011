#!/bin/bash
# valgrind's memcheck over the commands of the golden cases: memcheck.sh DTSIM [COMMANDS]. Modules that link SimGrid are left
# out (its stacks are not valgrind's): commands run on the ideal engine where they can.
set -u
dtsim=$(realpath "$1") most=${2:-0}
cd "$(dirname "$0")/../golden" || exit 2
command -v valgrind >/dev/null || { echo "no valgrind: skipped"; exit 77; }
scratch=$(mktemp -d) || exit 2
trap 'rm -rf "$scratch"' EXIT
tried=0 bad=0
cp -r ../../scenarios ../../platforms "$scratch"
cd "$scratch" || exit 2
while IFS= read -r line; do
    [ "$most" -gt 0 ] && [ $tried -ge "$most" ] && break
    read -r -a words < <(printf '%s\n' "$line" | xargs -n1 printf '%s ' 2>/dev/null)
    tried=$((tried + 1))
    valgrind -q --error-exitcode=99 --trace-children=no --log-file=said "$dtsim" "${words[@]}" >/dev/null 2>&1 </dev/null
    if [ $? -eq 99 ]; then
        bad=$((bad + 1))
        printf 'dtsim %s\n' "$line"
        head -5 said
    fi
done < <(grep -h '^\$ dtsim ' "$OLDPWD"/*/*.golden | sed 's/^\$ dtsim //' | grep -v '[|<>;&`]\|simgrid' | sort -u)
echo "$tried commands under memcheck: $bad with errors"
[ $bad -eq 0 ]
