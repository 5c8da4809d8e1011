#!/bin/sh
# The tests: ./test.sh installs what it needs, builds with gcc, clang and the sanitizers (warnings are errors), and runs
# every test; the release build comes last, so that its summary closes the output. ./test.sh --quick: that one alone;
# ./test.sh --all: the long tests under the sanitizers too, which takes half an hour.
set -eu
cd "$(dirname "$0")"
. ./packages.sh
packages $build_packages $module_packages $plot_packages clang diffutils binutils shellcheck protobuf-compiler
if apt-cache show $web_packages >/dev/null 2>&1; then
    packages $web_packages
else
    echo "== apt has no $web_packages: tests in a browser are skipped"
fi
jobs=$(nproc)

build() {
    echo "== building $1"
    cmake --preset "$1" -DDTSIM_WERROR=ON >/dev/null
    cmake --build "build$2" -j "$jobs" | grep -v '^\[.*Building\|^\[.*Linking' || true
    cmake --build "build$2" -j "$jobs" >/dev/null
}

if [ "${1-}" != --quick ]; then
    build clang -clang
    build sanitize -sanitize
    echo "== tests under the address and undefined-behaviour sanitizers"
    skipped='validation|long'
    if [ "${1-}" = --all ]; then
        skipped='validation'
    fi
    (cd build-sanitize && ASAN_OPTIONS=quarantine_size_mb=16 ctest -j "$jobs" -LE "$skipped" --timeout 1200 --output-on-failure)
fi
build release ""
echo "== tests"
cd build
ctest -j "$jobs" --timeout 300 --output-on-failure
