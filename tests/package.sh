#!/bin/sh
# The Debian package names the libraries that it needs, can be installed here, and holds a hardened program:
# package.sh CPACK BUILD_FOLDER EXPORTS
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

# A release: stack protector, fortified calls, and nothing left to resolve or to write once it runs. It exports what is
# listed for its modules, and of libraries only what it copies.
program=there/usr/bin/dtsim
if grep -q '^CMAKE_BUILD_TYPE:.*=Release$' "$2/CMakeCache.txt"; then
    for module in $(find there -name "dtsim-*.so") "$program"; do
        readelf -dW "$module" | grep -q 'BIND_NOW\|NOW' || { echo "$module is not linked with -z now" && exit 1; }
        readelf -lW "$module" | grep -q GNU_RELRO || { echo "$module is not linked with -z relro" && exit 1; }
    done
    for symbol in __stack_chk_fail __memcpy_chk; do
        readelf --dyn-syms -W "$program" | grep -q "$symbol" || { echo "the program never calls $symbol" && exit 1; }
    done
fi
sed -n 's/^ *\([a-z_]*\);$/\1/p' "$3" | sort >listed
nm -D --defined-only "$program" | awk '$2 == "T" { print $3 }' | sort >exported
comm -13 listed exported >exports_more
[ ! -s exports_more ] || { echo 'the program exports what exports.list does not have:' && cat exports_more && exit 1; }
