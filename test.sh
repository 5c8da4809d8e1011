#!/bin/sh
# The tests: ./test.sh installs what it needs, builds with gcc and with clang and its sanitizers (warnings are errors), and
# runs every test; the release build, gcc's, comes last, so that its summary closes the output. ./test.sh --quick: that one alone;
# ./test.sh --all: all cases of tests that else try a sample, the long tests under the sanitizers too, and leaks of all
# commands, which takes an hour. ./test.sh --wing machine: builds and runs the tests of a wing of sim/ alone, for work on it.
# Random cases are others each week; DTSIM_SEED=202648 gives those of a week again, DTSIM_SEED=0 the known ones, as --all does.
# DTSIM_BASE=COMMIT: also whether commits after it say why they change numbers (.ci/commits); left out: after the upstream branch.
# ./test.sh --web: builds dtsim.html, compares its answers with the program's and tries it in Chromium and Firefox.
set -eu
cd "$(dirname "$0")"
. ./packages.sh
packages $build_packages $module_packages $plot_packages clang lld diffutils binutils shellcheck protobuf-compiler
# The sanitizers of clang, where they are a package of their own.
! apt-cache show libclang-rt-dev >/dev/null 2>&1 || packages libclang-rt-dev
if apt-cache show $web_packages >/dev/null 2>&1; then
    packages $web_packages
else
    echo "== apt has no $web_packages: tests in a browser are skipped"
fi
jobs=$(nproc)
tests=$((jobs + 1))               # at once: some wait for servers and for processes that they kill

# build PRESET SUFFIX [TARGET]: in the folder build and the suffix
build() {
    echo "== building $1${3+: $3}"
    cmake --preset "$1" -DDTSIM_WERROR=ON >/dev/null
    cmake --build "build$2" --target "${3-all}" -j "$jobs" | grep -v '^\[.*Building\|^\[.*Linking' || true
    cmake --build "build$2" --target "${3-all}" -j "$jobs" >/dev/null
}

# Some tests under the sanitizers; leaks are searched for (1) or not (0). A large quarantine costs page faults.
sanitized() {
    leaks_searched=$1
    shift
    (cd build-sanitize && ASAN_OPTIONS=quarantine_size_mb=16:detect_leaks=$leaks_searched \
        ctest -j "$tests" --timeout 1200 --output-on-failure "$@")
}

if [ "${1-}" = --wing ]; then
    build release "" "wing_$2"
    cd build
    exec ctest -j "$tests" --output-on-failure -L "^$2\$"
fi
if [ "${1-}" = --web ]; then
    packages emscripten firefox-esr
    build release "" dtsim
    build release "" web_answers
    web/build.sh "$jobs"
    echo "== answers of WebAssembly and of the program"
    tests/web/same.py build/tests/web_answers build/dtsim build-web . 500
    echo "== dtsim.html in browsers"
    PYTHONDONTWRITEBYTECODE=1 exec python3 tests/web/one.py build/dtsim build-web/dtsim.html
fi
echo "== commits that change golden files or published tables without a reason"
.ci/commits
if [ "${1-}" != --quick ]; then
    skipped='validation|long' leaks=0 target=short_tests
    if [ "${1-}" = --all ]; then
        skipped=validation leaks=1 target=all
        export DTSIM_TESTS=all
    fi
    build sanitize -sanitize "$target"
    echo "== tests under the address and undefined-behaviour sanitizers"
    # A golden case or a script is many short commands, and half of the time of each is the search for leaks at its end.
    sanitized 1 -R '^unit[.]' -LE "$skipped"
    sanitized "$leaks" -E '^unit[.]' -LE "$skipped"
fi
build release ""
echo "== tests"
cd build
ctest -j "$tests" --timeout 900 --output-on-failure
