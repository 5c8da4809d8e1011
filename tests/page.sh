#!/bin/sh
# Pages whose tables the program prints. Such a table stands between two comments, the first of which is the command:
#     <!-- $ dtsim compare scenarios/methods/*.yaml --methods --markdown -->
#     ...
#     <!-- end -->
# Commands run in the root of the repository; `dtsim` is the program under test.
#   page.sh DTSIM PAGE...                 prints where pages and commands differ; exit 1 where they do
#   page.sh --update DTSIM PAGE...        writes into the pages what the commands print now
#   page.sh --lines DTSIM PAGES COMMAND   exit 1 where all pages lack a line that COMMAND prints, or where COMMAND fails
set -u
mode=check
case ${1-} in
--update | --lines) mode=${1#--} && shift ;;
esac
if [ $# -lt 2 ]; then
    sed -n 's/^#   page/usage: page/p' "$0" >&2
    exit 2
fi
dtsim=$(realpath "$1") || exit 2
shift
scratch=$(mktemp -d) || exit 2
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/bin" && ln -s "$dtsim" "$scratch/bin/dtsim"
LC_ALL=C PATH=$scratch/bin:$PATH
export LC_ALL PATH
unset DTSIM_DATA NO_COLOR COLUMNS
cd "$(dirname "$0")/.." || exit 2

# What a command prints; where it fails, why.
play_command()
{
    sh -c "$1" 2>"$scratch/err" </dev/null && return
    echo "exit $?"
    cat "$scratch/err"
}

# The page as it should be.
play_page()
{
    inside=
    while IFS= read -r line || [ -n "$line" ]; do
        case $line in
        '<!-- $ '*' -->')
            inside=yes
            printf '%s\n' "$line"
            command=${line#<!-- \$ }
            play_command "${command% -->}" ;;
        '<!-- end -->') inside= ;;
        esac
        if [ -z "$inside" ]; then
            printf '%s\n' "$line"
        fi
    done <"$1"
}

if [ $mode = lines ]; then
    page=$1
    shift
    "$@" >"$scratch/lines"
    status=$?
    while IFS= read -r line; do
        grep -Fqx -e "$line" $page && continue   # several pages are words of one argument
        printf '%s lacks this line; tests/page.sh --update writes it:\n%s\n' "$page" "$line"
        status=1
    done <"$scratch/lines"
    exit $status
fi

status=0
for page in "$@"; do
    play_page "$page" >"$scratch/page"
    if cmp -s "$page" "$scratch/page"; then
        continue
    elif [ $mode = update ]; then
        cp "$scratch/page" "$page"
        echo "changed: $page"
    else
        diff -u "$page" "$scratch/page"
        status=1
    fi
done
exit $status
