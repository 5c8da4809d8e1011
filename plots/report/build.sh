#!/bin/sh
# Builds the pages of 'dtsim report' anew, of src/ and the libraries of package-lock.json; needs Node.js and the npm registry.
#   plots/report/build.sh [--check]      --check: says whether the files that stand here are those that it would build
set -eu
cd "$(dirname "$0")"
npm ci --ignore-scripts --no-audit --no-fund >/dev/null
node build.mjs
if [ "${1-}" = --check ]; then
    git diff --exit-code --stat -- *.html LIBRARIES.txt
fi
