#!/bin/bash
# The n-th call of the system of each kind fails, for every n (faults.sh).   syscall.sh DTSIM LIBRARY [TRIES]
. "$(dirname "$0")/faults.sh"
torture open read write fsync rename fork mmap
