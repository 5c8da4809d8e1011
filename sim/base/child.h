/* child: a function that runs in a process of its own, because what it calls can run once a process (SimGrid) or may
 * abort. */
#ifndef DTSIM_CHILD_H
#define DTSIM_CHILD_H

#include "base/base.h"

/* Forks, runs body(context) in the child and waits for it. What the child has to tell, it writes into shared memory
 * (child_share). Its output is swallowed; nothing that the parent has buffered is written twice. 0 when body returned
 * or called child_done; otherwise -1 and one EXIT_UNEXPECTED message: "WHAT", how it died, its last words. */
int child_run(void (*body)(void *context), void *context, const char *what, struct error *err);
/* The same for every index below `count`, each in a process of its own, at most `jobs` of them at once. `ended` hears,
 * in this process, how each did, in the order in which they end: err is empty, or holds the message. No other child of
 * this process may run meanwhile. */
void child_each(void (*body)(void *context, size_t index),
                void (*ended)(void *context, size_t index, const struct error *err), void *context, size_t count,
                size_t jobs, const char *what);
/* Ends the child at once, successfully, from wherever it is. Only inside body. */
_Noreturn void child_done(void);
/* Zeroed memory that a later child writes and this process reads; NULL when there is none. child_unshare frees it. */
void *child_share(size_t size);
void child_unshare(void *memory, size_t size);

#endif
