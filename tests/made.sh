#!/bin/sh
# What was made when the program was built (sim/lib/files/made.h) changes nothing but the time: made.sh BUILD_FOLDER
# Beside an installed program a number of each kind of file of the release is changed, and the next run has it, as it does
# where dtsim.made is deleted, cut or damaged.
set -eu
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
unset DTSIM_DATA

cmake --install "$1" --prefix "$scratch/it" >/dev/null
cd "$scratch/it"
share=$PWD/share/dtsim
dtsim=$PWD/bin/dtsim
made=$(find . -name dtsim.made)
mv "$made" kept
fail()
{
    echo "$*"
    exit 1
}
# Of work that published runs are like, and of work on a GPU that is known by its data sheet, which names the nearest of them.
answers()
{
    "$dtsim" run "$share/scenarios/first.yaml" --engine fast &&
        "$dtsim" run "$share/scenarios/first.yaml" --engine fast --set cluster.platform=hgx-h20
}
answer()
{
    answers >"$1" 2>&1 || [ "$2" = may-fail ] || fail "$1 fails: $(cat "$1")"
}
# Both ways the answer is the same; it is another one than before where `$2` says so.
same()
{
    rm -f "$made"
    answer computed "$3"
    cp kept "$made"
    answer found "$3"
    cmp computed found || fail "$1: dtsim.made changes the answer"
    if cmp -s computed first; then
        [ "$2" = as-before ] || fail "$1: the answer is the old one"
    else
        [ "$2" = other ] || fail "$1: the answer is another one"
    fi
}
answer first ok
same "nothing changed" as-before ok

# It is looked at: a text in it that is in no answer otherwise.
LC_ALL=C sed 's/NVIDIA DGX H100 (8 x H100/NVIDIA DGX X100 (8 x X100/g' kept >"$made"
answer found ok
grep -q 'NVIDIA DGX X100' found || fail "dtsim.made is not used"
for words in 'error of a ratio' 'times from data sheets had' 'the nearest is'; do
    grep -q "$words" first || fail "no '$words' in the answer"
done

# $1 of the release with the change $2 of sed; then it is as it was.
changed()
{
    cp "$share/$1" before
    sed "$2" before >"$share/$1"
    ! cmp -s before "$share/$1" || fail "$1: '$2' changes nothing"
    same "$1 with $2" "$3" "${4-ok}"
    cp before "$share/$1"
}
changed platforms/dgx-h100.yaml 's/title: NVIDIA DGX H100/title: NVIDIA DGX Z100/' other
changed platforms/gpus/h100-80gb.yaml 's/81559 MiB/71559 MiB/' other
changed platforms/gpus/h100-80gb.yaml 's/memory_bandwidth: 3.35/memory_bandwidth: 3.05/' other
changed calibration/data/h100-80gb.yaml 's/rate: 791.3/rate: 691.3/' other
changed calibration/data/h100-80gb.yaml '1s/Kernel/Kernels,/' as-before             # a comment
changed platforms/software/megatron-core.yaml '1s/^/broken: [/' other may-fail
changed scenarios/paper/errors.tsv 's/	-[0-9][0-9]*	/	400	/g' other
changed scenarios/paper/memory.tsv 's/	-*[0-9][0-9]*	megatron/	900	megatron/' other
changed scenarios/paper/errors.tsv '2s/^[^	]*/broken/; 5s/	[0-9-]*$/	x	y/' other may-fail

# A damaged file is none, or is not looked at where it is damaged.
size=$(wc -c <kept)
for cut in 0 7 16 1000 20000 $((size / 2)) $((size - 1)); do
    head -c "$cut" kept >"$made"
    answer found ok
    cmp found first || fail "cut after $cut bytes"
done
{ printf other; tail -c +6 kept; } >"$made"
answer found ok
cmp found first || fail "with another magic"
