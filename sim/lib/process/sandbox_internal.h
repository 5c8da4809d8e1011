/* sandbox_internal: what holds the child, for sandbox*.c only. */
#ifndef DTSIM_SANDBOX_INTERNAL_H
#define DTSIM_SANDBOX_INTERNAL_H

#include "process/sandbox.h"

/* In the child: no way to other files than the sandbox's. -1: errno says why. */
int sandbox_landlock(const struct sandbox *sandbox);
/* In the child: no other system calls. Returns the descriptor by which forks and starts are asked, or -1. */
int sandbox_seccomp(void);

#endif
