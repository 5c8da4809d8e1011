/* pool: processes that do many pieces of work each. A piece that kills its process, or that takes too long, costs that
 * piece alone. */
#ifndef DTSIM_POOL_H
#define DTSIM_POOL_H

#include "base/base.h"

enum { POOL_NOTE = 64 };         /* bytes */

/* Why a piece has no reply. */
enum pool_loss { POOL_CRASH, POOL_TIMEOUT };

struct pool {
    size_t jobs;                 /* processes at once */
    bool ranks;                  /* where mpirun started several of this program, these are the processes (ranks.h) */
    double timeout;              /* s that a piece may take; 0: any time */
    const char *what;            /* what does the work, for messages: "the simulation" */
    void *context;
    /* In a worker, once, before its first piece; or NULL. */
    void (*begin)(void *context);
    /* In a worker: does the piece and writes the reply. `note` is what the caller hears if the worker dies: text that
     * was written there, at most POOL_NOTE - 1 bytes; empty when the piece begins. */
    void (*work)(void *context, uint64_t piece, char *note, FILE *reply);
    /* In this process: the next piece, any number but UINT64_MAX; false where there is none. */
    bool (*next)(void *context, uint64_t *piece);
    /* In this process, in the order in which pieces end. -1 stops the pool, with an error. */
    int (*done)(void *context, uint64_t piece, const char *reply, size_t length, struct error *err);
    int (*lost)(void *context, uint64_t piece, enum pool_loss why, const char *note, const struct error *how,
                struct error *err);
    /* In this process, about once a second and after every piece; or NULL. */
    void (*tick)(void *context);
};

enum pool_end {
    POOL_ALL,                    /* every piece has ended */
    POOL_INTERRUPTED,            /* after the first SIGINT the pieces that ran have ended, and no others began; a second
                                    one, or SIGTERM, killed what ran */
    POOL_FAILED,                 /* an error */
};
/* Runs pieces until there are none. Messages, if any, are those of `done` and `lost`, or EXIT_UNEXPECTED where
 * processes cannot be had. No worker is left behind, however this process ends. */
enum pool_end pool_run(const struct pool *pool, struct error *err);
/* Whether pool_run in this process works for the first one of those that mpirun started: pieces and replies are that
 * one's, and here begin and work alone are called. */
bool pool_serves(const struct pool *pool);

#endif
