#!/bin/sh
# Plays golden cases: files that hold commands and all that these must say. README.md has the format.
#   run.sh DTSIM CASE...            prints the differences; exit 1 where there are any
#   run.sh --update DTSIM CASE...   writes what the commands say now into the cases
set -u
update=
if [ "${1-}" = --update ]; then
    update=yes
    shift
fi
if [ $# -lt 2 ]; then
    echo "usage: run.sh [--update] DTSIM CASE..." >&2
    exit 2
fi
dtsim=$(realpath "$1") || exit 2
here=$(realpath "$(dirname "$0")") || exit 2
shift
scratch=$(mktemp -d) || exit 2
trap 'chmod -R u+w "$scratch"; rm -rf "$scratch"' EXIT
mkdir "$scratch/bin" && ln -s "$dtsim" "$scratch/bin/dtsim"
LC_ALL=C PATH=$scratch/bin:$here/bin:$PATH
export LC_ALL PATH
unset DTSIM_DATA NO_COLOR COLUMNS

# Text as it is, each line behind $2; a last line without its end is given one.
quote()
{
    sed "s/^/$2/" "$1"
    if [ -s "$1" ] && [ -n "$(tail -c 1 "$1")" ]; then
        echo
    fi
}

# One command, in the case's folder: what it wrote to stdout, to stderr behind "! ", and its exit code.
play_command()
{
    (cd "$scratch/work" && timeout 300 sh -c "$1" >"$scratch/out" 2>"$scratch/err" </dev/null)
    code=$?
    quote "$scratch/out" ''
    quote "$scratch/err" '! '
    echo "exit $code"
}

# The case as it should be. Lines behind a command and up to its "exit N" are written anew, all others copied.
play()
{
    in=text
    while IFS= read -r line || [ -n "$line" ]; do
        case $in:$line in
        output:'exit '[0-9]*) in=text; continue ;;
        output:'$ '*) ;;
        output:*) continue ;;
        esac
        printf '%s\n' "$line"
        case $line in
        '$ '*)
            in=output
            play_command "${line#??}" ;;
        '-- '*' --')
            in='file'
            file=${line#-- }
            file=$scratch/work/${file% --}
            mkdir -p "${file%/*}"
            : >"$file" ;;
        *)
            if [ $in = file ]; then
                printf '%s\n' "$line" >>"$file"
            fi ;;
        esac
    done <"$1"
}

# Whether this kernel can hold scripts; only cases that need it ask.
holds_scripts()
{
    echo 'torchrun pretrain_gpt.py --num-layers 8' >"$scratch/held.sh"
    ! dtsim import megatron "$scratch/held.sh" 2>&1 | grep -q 'no Landlock'
}

status=0
for case in "$@"; do
    if grep -q '^# Needs Landlock' "$case" && ! holds_scripts; then
        echo "skipped: this kernel has no Landlock: $case"
        continue
    fi
    if grep -q '^# Slow:' "$case" && [ ! "$update" ] && [ "${DTSIM_TESTS-}" != all ]; then
        echo "skipped: DTSIM_TESTS=all plays it: $case"
        continue
    fi
    chmod -R u+w "$scratch/work" 2>/dev/null
    rm -rf "$scratch/work"
    mkdir "$scratch/work" && ln -s "$here/../../scenarios" "$scratch/work/scenarios"
    play "$case" >"$scratch/case"
    if cmp -s "$case" "$scratch/case"; then
        continue
    elif [ $update ]; then
        cp "$scratch/case" "$case"
        echo "changed: $case"
    else
        diff -u "$case" "$scratch/case"
        status=1
    fi
done
exit $status
