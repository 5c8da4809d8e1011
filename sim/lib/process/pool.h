/* pool: processes that do many pieces of work each. A piece that kills its process, or that takes too long, costs that
 * piece alone. */
#ifndef DTSIM_POOL_H
#define DTSIM_POOL_H

#include "base/base.h"

enum { POOL_NOTE = 64,           /* bytes */
       POOL_FILES = 2 };

/* Why a piece has no reply. */
enum pool_loss { POOL_CRASH, POOL_TIMEOUT, POOL_UNWANTED, POOL_LATE };

/* What a pool needs beyond that where its pieces come while it runs, from files, and are texts. */
struct pollfd;
struct pool_inlet {
    /* In this process: the files to wait for (POOL_FILES of them; fd -1: none), and for what. */
    void (*watch)(void *context, struct pollfd *files);
    /* In this process, after each wait: reads and writes the files. 1: more pieces may come; 0: none, so the pool ends
     * once all have ended; -1 stops the pool, with an error. */
    int (*attend)(void *context, const struct pollfd *files, struct error *err);
    /* In this process: the text of a piece, which stays until the piece has ended. */
    const char *(*text)(void *context, uint64_t piece, size_t *length);
    /* In a worker: does a piece, given that text and a zero byte, and writes the reply. */
    void (*answer)(void *context, uint64_t piece, const char *text, size_t length, FILE *reply);
    /* In this process, about once a second and after every wait: whether to give up a piece that has run for that many
     * seconds (POOL_UNWANTED). */
    bool (*unwanted)(void *context, uint64_t piece, double seconds);
};

struct pool {
    size_t jobs;                 /* processes at once */
    bool ranks;                  /* where mpirun started several of this program, these are the processes (ranks.h) */
    double timeout;              /* s that a piece may take; 0: any time */
    double until, grace;         /* s of pool_now, and s after that or after the first SIGINT, when pieces that still run are
                                    given up (POOL_LATE); 0: they may go on. `next` sees to it that none begin */
    const char *what;            /* what does the work, for messages: "the simulation" */
    void *context;
    const struct pool_inlet *inlet;      /* NULL: `next` knows all pieces; not with `ranks` */
    /* In a worker, once, before its first piece; or NULL. */
    void (*begin)(void *context);
    /* In a worker: does the piece and writes the reply; not with an inlet. `note` is what the caller hears if the worker
     * dies: text that was written there, at most POOL_NOTE - 1 bytes; empty when the piece begins. */
    void (*work)(void *context, uint64_t piece, char *note, FILE *reply);
    /* In this process: the next piece, any number but UINT64_MAX; false where there is none (now, with an inlet). */
    bool (*next)(void *context, uint64_t *piece);
    /* In this process, in the order in which pieces end. -1 stops the pool, with an error. */
    int (*done)(void *context, uint64_t piece, const char *reply, size_t length, struct error *err);
    int (*lost)(void *context, uint64_t piece, enum pool_loss why, const char *note, const struct error *how,
                struct error *err);
    /* In this process, about once a second and after every piece; or NULL. */
    void (*tick)(void *context);
};

/* s of a clock that nobody sets. */
double pool_now(void);

enum pool_end {
    POOL_ALL,                    /* every piece has ended */
    POOL_INTERRUPTED,            /* after the first SIGINT the pieces that ran have ended or were late, and no others began; a
                                    second one, or SIGTERM, killed what ran */
    POOL_FAILED,                 /* an error */
};
/* Runs pieces until there are none. Error messages come from `done` and `lost`, or are EXIT_UNEXPECTED where no process
 * can be started. No worker is left behind, however this process ends. */
enum pool_end pool_run(const struct pool *pool, struct error *err);
/* The same in processes of this machine alone, whoever started this one. */
enum pool_end pool_run_here(const struct pool *pool, struct error *err);
/* Whether pool_run works for the first process that mpirun started. Pieces and replies are then that process's; here
 * only begin and work are called. */
bool pool_serves(const struct pool *pool);

#endif
