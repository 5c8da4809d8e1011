#!/bin/bash
# The n-th allocation fails, for every n (faults.sh).   malloc.sh DTSIM LIBRARY [TRIES]
. "$(dirname "$0")/faults.sh"
torture malloc
