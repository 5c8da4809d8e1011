/* child: runs a function in a process of its own, because it calls a library that can run only once per process
 * (SimGrid) or that may abort. */
#ifndef DTSIM_CHILD_H
#define DTSIM_CHILD_H

#include <sys/types.h>

#include "base/base.h"

/* Forks, runs body(context) in the child and waits for it. The child writes its results into shared memory
 * (child_share). Its output is discarded; output that the parent has buffered is not written twice. Returns 0 if body
 * returned or called child_done; else -1 and one EXIT_UNEXPECTED message: `what`, how the child ended, and its standard
 * error. */
int child_run(void (*body)(void *context), void *context, const char *what, struct error *err);
/* The same; about ten times a second it calls `stop`, in this process, which may end the child: then -1, and no
 * message. */
int child_run_until(void (*body)(void *context), bool (*stop)(void *context), void *context, const char *what,
                    struct error *err);
/* Runs body for every index below `count`, each in a process of its own, at most `jobs` of them at once. When a child
 * ends, `ended` is called in this process, in the order in which the children end; err is empty or holds the message.
 * No other child of this process may run meanwhile. */
void child_each(void (*body)(void *context, size_t index),
                void (*ended)(void *context, size_t index, const struct error *err), void *context, size_t count,
                size_t jobs, const char *what);
/* The two halves of child_run, for callers that wait for the child in another way. A running child; pid 0: no child. */
struct child {
    pid_t pid;
    int words;           /* the memory file that its standard error goes to */
    size_t index;        /* the index that it got from child_each */
};
int child_start(struct child *child, void (*body)(void *context), void *context, const char *what, struct error *err);
/* `status`: as waitpid gave it for this child. Returns and reports like child_run. */
int child_end(struct child *child, int status, const char *what, struct error *err);
/* Ends the child at once and successfully. May be called only inside body, from any function. */
_Noreturn void child_done(void);
/* Whether there are processes. Without them (web/system.c) body is called in this one, which cannot stop it. */
bool child_there(void);
/* A file in memory; -1: none. */
int child_file(const char *name);
/* Zeroed memory that children started later write and this process reads; NULL if none is left. child_unshare frees
 * it. */
void *child_share(size_t size);
void child_unshare(void *memory, size_t size);

#endif
