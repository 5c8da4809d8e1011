/* sandbox_internal: what holds the child, for sandbox*.c only. */
#ifndef DTSIM_SANDBOX_INTERNAL_H
#define DTSIM_SANDBOX_INTERNAL_H

#include "process/sandbox.h"

/* In the child: no way to other files than the sandbox's. -1: errno says why. */
int sandbox_landlock(const struct sandbox *sandbox);
/* In the child: no other system calls. Returns the descriptor by which forks and starts are asked, or -1. */
int sandbox_seccomp(void);

/* Tells the keeper of the folder which process group it is to end if this process is killed; 0: none. */
void sandbox_tell(const struct sandbox *sandbox, pid_t group);
/* B of memory that all processes of the group hold, as far as this process has started them; 0: nobody knows. */
size_t sandbox_memory(pid_t group);

#endif
