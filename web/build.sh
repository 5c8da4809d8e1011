#!/bin/sh
# Builds build-web/dtsim.html, the simulator in a page of one file, with Debian's emscripten and Node.js, from the sources of the
# four libraries, which it takes from Debian: web/build.sh [JOBS]. Exit code 77: there is no emscripten.
set -eu
cd "$(dirname "$0")/.."
if ! command -v emcc >/dev/null || ! command -v node >/dev/null; then
    echo "skipped: there is no emcc with node (Debian: emscripten nodejs; 1.3 GB with LLVM); dtsim.html is not built"
    exit 77
fi
export NODE_PATH="${NODE_PATH-/usr/share/nodejs}"        # where Debian has what emcc needs, for a Node that is not Debian's
build=build-web libraries=$PWD/build-web/libraries
mkdir -p "$libraries"

# fetch NAME PACKAGE VERSION TAR: unpacks the original sources into libraries/NAME, once
fetch() {
    [ "$(cat "$libraries/$1/.version" 2>/dev/null)" = "$3" ] && return
    echo "== sources of $2 $3"
    # shellcheck disable=SC2086
    (cd "$apt" && apt-get $options -qq source --download-only "$2=$3")
    rm -rf "${libraries:?}/$1"
    mkdir "$libraries/$1"
    tar -xf "$apt/$4" -C "$libraries/$1" --strip-components=1
    echo "$3" >"$libraries/$1/.version"
}
# Debian's lists of source packages, beside those of the system, which may not have them.
apt=$libraries/apt
options="-o Dir::State=$apt -o Dir::Cache=$apt -o Dir::Etc::sourcelist=$apt/one.list -o Dir::Etc::sourceparts=$apt/parts -o APT::Sandbox::User=root"
if [ ! -d "$libraries/zlib" ]; then
    mkdir -p "$apt/lists/partial" "$apt/archives/partial" "$apt/parts"
    cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list 2>/dev/null | sed -n 's/^deb /deb-src /p' >"$apt/one.list" || true
    for file in /etc/apt/sources.list.d/*.sources; do
        [ ! -e "$file" ] || sed 's/^Types:.*/Types: deb-src/' "$file" >"$apt/parts/${file##*/}"
    done
    # shellcheck disable=SC2086
    apt-get $options -qq update
fi
fetch libyaml libyaml 0.2.5-1 libyaml_0.2.5.orig.tar.gz
fetch jansson jansson 2.14-2 jansson_2.14.orig.tar.gz
fetch xxhash xxhash 0.8.1-1 xxhash_0.8.1.orig.tar.gz
fetch zlib zlib 1:1.2.13.dfsg-1 zlib_1.2.13.dfsg.orig.tar.bz2
rm -rf "$apt"

emcmake cmake -G Ninja -B $build -DCMAKE_BUILD_TYPE=Release -DDTSIM_CUDA=OFF -DDTSIM_WERROR="${DTSIM_WERROR-ON}" \
    -DDTSIM_WEB_SOURCES="$libraries" >/dev/null 2>&1
cmake --build $build -j "${1-$(nproc)}" | grep -v '^\[.*Building\|^\[.*Linking' || true
cmake --build $build >/dev/null
node web/page.mjs $build . "$libraries" $build/dtsim.html
