#!/bin/bash
# Every value of every committed file and of every key replaced by another (mutate.c), with a line of figures:
#   mutate.sh PROGRAM [EVERY [LOG [PART]]]    PROGRAM: build/tests/torture_mutate; 1: every mutant, which takes hours
set -u
"$1" "${2:-1}" "${@:3}"
