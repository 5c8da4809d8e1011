#!/bin/sh
# The installed library: an example is compiled with its .pc by C and C++, against the shared and the static library, and
# Python calls it; it gives the numbers of the program: library.sh BUILD SOURCES CC CXX
set -eu
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
unset DTSIM_DATA
build=$(realpath "$1") sources=$(realpath "$2")
cmake --install "$build" --prefix "$scratch/place" >/dev/null
cd "$scratch/place"
package=$(dirname "$(find . -name dtsim.pc)")
libraries=$PWD/$(dirname "$package")
export PKG_CONFIG_PATH="$PWD/$package" LD_LIBRARY_PATH="$libraries"
# The sources are out of reach: the library finds the data that were installed with it.
LC_ALL=C sed -i "s|$sources|x${sources#/}|g" "$libraries"/libdtsim.so.*.*

cd "$scratch"
cp "$sources/tests/library/example.c" .
# shellcheck disable=SC2046
"$3" -std=c99 -Wall -Wextra -pedantic -Werror example.c -o c $(pkg-config --cflags --libs dtsim)
# shellcheck disable=SC2046
"$4" -x c++ -Wall -Wextra -pedantic -Werror example.c -x none -o cxx $(pkg-config --cflags --libs dtsim)
./c >told && ./cxx | cmp - told
[ "$(grep -c '^tensor [1248]: [0-9.]* s, bubble' told)" = 4 ]
grep -q '^tensor 16: .*error: ' told
# The static library holds what the shared one does; it stands in a folder of its own for the linker.
mkdir static && cp "$libraries/libdtsim.a" static
# shellcheck disable=SC2046
"$3" example.c -o alone $(pkg-config --cflags dtsim) -Lstatic $(pkg-config --static --libs-only-l dtsim)
ldd alone | grep -q libdtsim && { echo "the static library is not used" && exit 1; }
mkdir -p bin && mv alone bin && ln -s "$scratch/place/share" share && bin/alone | cmp - told

# Exports: the functions of the header, no more and no less. No variable is left that simulations would share.
sed -n 's/^.*[ *]\(dtsim_[a-z_]*\)(.*;$/\1/p' "$sources/sim/faces/library/dtsim.h" | grep -v '^ *\*' | sort -u >header
nm -D --defined-only "$libraries/libdtsim.so" | sed -n 's/.* [TDBR] \([^@]*\).*/\1/p' | sort >shared
nm --defined-only "$libraries/libdtsim.a" | sed -n 's/.* [A-Z] \([a-z_]*\)$/\1/p' | sort >static.list
sed -n 's/^ *\(dtsim_[a-z_]*\);$/\1/p' "$sources/sim/faces/library/exports.map" | sort >listed
cmp listed header && cmp listed shared && cmp listed static.list
abi=$(sed -n 's/^#define DTSIM_ABI \([0-9]*\).*/\1/p' "$sources/sim/faces/library/dtsim.h")
readelf -d "$libraries/libdtsim.so" | grep -q "SONAME.*\[libdtsim.so.$abi\]"

# The same numbers as the program; in another locale too; nothing is printed.
if command -v python3 >/dev/null; then
    "place/bin/dtsim" run "$sources/scenarios/first.yaml" --engine fast --json >run.json
    # A language whose numbers have a comma.
    mkdir locales && localedef -i de_DE -f UTF-8 locales/de_DE.UTF-8 2>/dev/null || echo "skipped: no locale with a comma here"
    LOCPATH=$PWD/locales python3 -B - "$libraries/libdtsim.so" "$sources/scenarios/first.yaml" run.json >out 2>&1 <<'end' || { cat out && exit 1; }
import ctypes, json, locale, sys
library = ctypes.CDLL(sys.argv[1])
library.dtsim_open.restype = ctypes.c_void_p
for name in ('metrics', 'timeline', 'errors', 'errors_json', 'version'):
    getattr(library, 'dtsim_' + name).restype = ctypes.c_char_p
library.dtsim_metric.restype = ctypes.c_double
try:
    locale.setlocale(locale.LC_ALL, 'de_DE.UTF-8')
    strtod = ctypes.CDLL(None).strtod
    strtod.restype = ctypes.c_double
    assert strtod(b'0,5', None) == 0.5
except locale.Error:
    pass
context = ctypes.c_void_p(library.dtsim_open(None))
text = open(sys.argv[2], 'rb').read()
library.dtsim_scenario(context, sys.argv[2].encode(), text)
assert library.dtsim_simulate(context, None) == 0, library.dtsim_errors(context)
found, run = json.loads(library.dtsim_metrics(context)), json.load(open(sys.argv[3]))
run.pop('scenario')
assert found == run, (found, run)
assert library.dtsim_metric(context, b'iteration_time_s') == run['iteration_time_s']
assert library.dtsim_metric(context, b'breakdown_s.bubble') == run['breakdown_s']['bubble']
lines = library.dtsim_timeline(context).decode().splitlines()
assert len({len(line.split('\t')) for line in lines}) == 1 and len(lines) > 100
library.dtsim_set(context, b'strategy.tensor=7')
assert library.dtsim_simulate(context, None) == 5
assert json.loads(library.dtsim_errors_json(context))['exit_code'] == 5 and b'error: ' in library.dtsim_errors(context)
library.dtsim_scenario(context, sys.argv[2].encode(), text)
library.dtsim_set(context, b'cluster.gpu.memory=1.5 GiB')
assert library.dtsim_simulate(context, None) == 5
assert b'has 1.5 GiB' in library.dtsim_errors(context), library.dtsim_errors(context)
library.dtsim_close(context)
end
    [ ! -s out ] || { cat out && exit 1; }
fi
