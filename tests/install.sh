#!/bin/sh
# An installation is whole: it finds its data and its modules wherever it has been put, when the sources are gone, and has
# a manual page and completions: install.sh BUILD_FOLDER SOURCE_FOLDER
set -eu
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
unset DTSIM_DATA

cmake --install "$1" --prefix "$scratch/first place" >/dev/null
mv "$scratch/first place" "$scratch/second place"
cd "$scratch/second place"
# The only place of the sources that the program knows becomes one that does not exist, of the same length. Only its
# first letter changes: the linker may let other texts share the tail of the path, as "speed" where a folder has that
# name.
nowhere=x${2#/}
grep -q "$2" bin/dtsim
LC_ALL=C sed -i "s|$2|$nowhere|g" bin/dtsim
[ ! -e "$nowhere" ]
share=$PWD/share/dtsim
dtsim=$PWD/bin/dtsim

mv share/dtsim/platforms/dgx-a100.yaml share/dtsim/platforms/installed.yaml
mv share/dtsim/scenarios/models/gpt2-355m.yaml share/dtsim/scenarios/models/installed.yaml
mkdir "$scratch/elsewhere"
cd "$scratch/elsewhere"
for list in gpus profiles platforms communication models; do
    [ "$("$dtsim" list $list | wc -l)" -gt 3 ]
done
"$dtsim" run "$share/scenarios/tour/01-data-parallel.yaml" --set model.preset=installed \
    --set cluster.platform=installed -o out >printed 2>&1
"$dtsim" explain out >printed
"$dtsim" check "$share/scenarios/first.yaml" >printed
"$dtsim" collective dgx-h100 --ranks 8 --bytes 1M >printed
"$dtsim" validate "$share/scenarios/paper/nanotron-h100.yaml" --rows= >printed
"$dtsim" sweep "$share/scenarios/first.yaml" --set strategy.tensor=2,4 --engine ideal -o sweep >printed 2>&1
"$dtsim" results sweep >printed
"$dtsim" help dgx-h100 >printed

# Manual page and completions stand where Debian's programs look for them.
installed="$scratch/second place/share"
zcat "$installed/man/man1/dtsim.1.gz" >manual && "$dtsim" help --man | cmp - manual
[ -s "$installed/bash-completion/completions/dtsim" ]
[ -s "$installed/zsh/site-functions/_dtsim" ]
[ -s "$installed/fish/vendor_completions.d/dtsim.fish" ]
[ -s "$installed/doc/dtsim/copyright" ]

# The Python module finds the program that is installed with it.
if command -v python3 >/dev/null; then
    cd "$scratch/second place/lib/python3/dist-packages"
    env -u DTSIM python3 -B -c "import dtsim, sys
assert dtsim.run('$share/scenarios/first.yaml', engine='ideal')['gpus'] == 32
assert dtsim.program() == '$dtsim', dtsim.program()"
fi
