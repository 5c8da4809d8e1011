#!/bin/sh
# The Debian package names the libraries that it needs, has no error that lintian finds, and can be installed here: package.sh CPACK BUILD_FOLDER EXPORTS
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
! grep -q mpi depends || { echo "MPI is needed by those alone who start mpirun:" && cat depends && exit 1; }
[ ! -e "$2/dtsim-mpi.so" ] || dpkg-deb -f "$package" Recommends | grep -q 'mpi.*openmpi-bin' || { echo "no MPI is recommended" && exit 1; }
dpkg-deb -c "$package" >files
for file in bin/dtsim lib/.*dtsim/dtsim-simgrid.so share/man/man1/dtsim.1.gz share/doc/dtsim/changelog.gz share/bash-completion/completions/dtsim \
    share/zsh/vendor-completions/_dtsim share/fish/vendor_completions.d/dtsim.fish share/doc/dtsim/copyright share/dtsim/platforms/dgx-h100.yaml \
    lib/python3/dist-packages/dtsim.py include/dtsim.h lib/.*libdtsim.so.1 lib/.*libdtsim.a lib/.*pkgconfig/dtsim.pc; do
    grep -q "/usr/$file" files || { echo "no $file in the package" && exit 1; }
done
if command -v lintian >/dev/null; then
    lintian --allow-root --fail-on error "$package" >log 2>&1 || { cat log; exit 1; }
else
    echo "lintian is not installed: its part is skipped"
fi
apt-get --simulate install "$package" >log 2>&1 || { cat log; exit 1; }
dpkg-deb -x "$package" there

# Flags of the program and its modules, and what the program exports: what modules call and no more.
for file in there/usr/bin/dtsim $(find there -name 'dtsim-*.so'); do
    readelf -dW "$file" >dynamic && readelf -lW "$file" >segments && readelf -sW --dyn-syms "$file" >symbols
    grep -q 'BIND_NOW\|FLAGS.*NOW' dynamic || { echo "$file: not -z now" && exit 1; }
    grep -q GNU_RELRO segments || { echo "$file: not -z relro" && exit 1; }
    grep 'GNU_STACK' segments | grep -q 'RW ' || { echo "$file: an executable stack" && exit 1; }
    ! grep -q TEXTREL dynamic || { echo "$file: relocations in its text" && exit 1; }
    case $file in
    *.so) sed -n 's/.* UND \([a-z_0-9]*\)$/\1/p' symbols >>lacks ;;
    *)
        grep -q '__stack_chk_fail' symbols && grep -q '__[a-z]*_chk' symbols || { echo "$file: not hardened" && exit 1; }
        awk '$4 == "FUNC" && $7 != "UND" { sub(/@.*/, "", $8); print $8 }' symbols | sort -u >exported
        ;;
    esac
done
sed -n 's/^ *\([a-z_0-9]*\);$/\1/p' "$3" | sort -u >listed
if [ "$(find there -name 'dtsim-*.so' | wc -l)" = 4 ]; then      # all that this program can have
    sort -u lacks | comm -12 - listed | cmp - listed || { echo "the list of exports has what no module calls" && exit 1; }
fi
grep -v '^_\(init\|fini\|start\)$' exported | comm -23 - listed >surplus
[ ! -s surplus ] || { echo "exported, but not listed:" && cat surplus && exit 1; }
env -u DTSIM_DATA there/usr/bin/dtsim run there/usr/share/dtsim/scenarios/demo.yaml --json | grep -q iteration_time_s
