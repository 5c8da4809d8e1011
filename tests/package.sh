#!/bin/sh
# The Debian package names the libraries that it needs, and can be installed here: package.sh CPACK BUILD_FOLDER
set -eu
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
"$1" -G DEB --config "$2/CPackConfig.cmake" -B "$scratch" >log 2>&1 || { cat log; exit 1; }
package=$(ls ./dtsim_*.deb)
dpkg-deb -f "$package" Depends >depends
for library in libc6 libsimgrid libyaml libjansson libgsl; do
    grep -q "$library" depends || { echo "no $library among:" && cat depends && exit 1; }
done
dpkg-deb -c "$package" >files
for file in bin/dtsim lib/.*dtsim/dtsim-simgrid.so share/man/man1/dtsim.1 share/bash-completion/completions/dtsim \
    share/zsh/vendor-completions/_dtsim share/doc/dtsim/copyright share/dtsim/platforms/dgx-h100.yaml \
    lib/python3/dist-packages/dtsim.py; do
    grep -q "/usr/$file" files || { echo "no $file in the package" && exit 1; }
done
apt-get --simulate install "$package" >log 2>&1 || { cat log; exit 1; }
dpkg-deb -x "$package" there
env -u DTSIM_DATA there/usr/bin/dtsim run there/usr/share/dtsim/scenarios/demo.yaml --json | grep -q iteration_time_s
