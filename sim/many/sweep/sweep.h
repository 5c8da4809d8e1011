/* sweep: a sweep file lists the scenarios of a sweep, and each of its points is simulated once. `dtsim help sweep-file`
 * shows its keys. */
#ifndef DTSIM_SWEEP_H
#define DTSIM_SWEEP_H

#include "sweep/points.h"
#include "store/store.h"

struct sweep {
    const struct node *node;
    struct arena arena;
    const char *file, *stem;     /* stem: the file's name without folder and ".yaml" */
    const char *name;            /* of scenarios without one */
    const struct node *base, *sweep;     /* as written */
    struct sweep_report {
        const struct node *node;
        const struct node *objectives;   /* METRIC: min or max; NULL: none */
        int top;                 /* rows of the table at the end */
    } report;
    int verify;                  /* the best points that are verified; 0: none */
    struct points points;
};
extern const struct table sweep_table;

/* Reads a sweep file, or a scenario, which is a sweep of one point. `sets` ("PATH=1,2,4", nsets of them) give paths
 * their values: in place of the grid's values, or as further paths behind it. The path "-" is standard input. Checked
 * are the sweep itself and every value of an axis by itself, not yet the scenarios. Release in either case. */
int sweep_load(const char *path, const char *const *sets, size_t nsets, struct progress *progress, struct sweep *sweep,
               struct error *err);
void sweep_release(struct sweep *sweep);
/* Whether the file is a sweep's; of standard input, which cannot be read twice, it is not known and said to be none. */
int sweep_is(const char *path, struct progress *progress, bool *is, struct error *err);

/* A point and the id of its row. */
struct located { char id[ID_DIGITS + 1]; uint64_t number; };
struct locations { struct located *items; size_t count, capacity; };

struct sweep_options {
    const char *folder;          /* of the store */
    int shard, shards;           /* from 1; of the points the shard-th, the (shard + shards)-th, ... */
    size_t jobs;                 /* worker processes */
    double timeout;              /* s that a point may take; 0: any time */
    double until;                /* s of pool_now, after which no point begins and none is verified; 0: any time */
    double grace;                /* s after that, or after an interruption, that what runs may go on; 0: any time */
    double bytes;                /* of memory that the process of a point may need; 0: any */
    const char *engine;          /* NULL: the scenario's */
    const struct anchors *anchors;       /* that correct the times of points alike; NULL: none */
    bool retry_failed;           /* points that ended with error, timeout or crash run again */
    bool force;                  /* all run again */
    bool fail_fast;              /* the first failure ends the sweep */
    size_t verify;               /* of all points the best ones that are verified (verify.h); 0: none. Not by one of
                                  * several shards, which does not know the best */
    struct locations *located;   /* gets the points that have a row, with the ids of these; or NULL */
    bool ranks;                  /* the processes that mpirun started share the points */
};

/* The verification of a sweep's best points (verify.h). Points of `chosen` that are not `done` were not reached. */
struct sweep_verified {
    size_t best;                 /* points, counting points that ran on the reference engine before */
    size_t chosen, done, failed; /* to be verified now; of these have ended; of these could not be */
    char why[240];               /* the first of them could not */
};

/* How far a sweep is. */
struct sweep_state {
    size_t points;               /* of this shard */
    size_t done;                 /* points that have their row, whoever wrote it */
    size_t before;               /* of these: the store had it already */
    size_t alike;                /* of these: another point of this run has the same scenario, and so the row */
    size_t rows[OUTCOME_COUNT];       /* of these, by the status of their row */
    size_t failed;               /* of these: error, timeout or crash */
    struct sweep_best { double tokens, samples; } best;  /* per second, of rows of this run; 0: none yet */
    struct sweep_verified verify;
    bool interrupted;
    bool serves;                 /* this process worked for another one, whose state counts */
};

/* Runs the selected points and appends their rows. `progress` is called about once a second and after every row. -1:
 * the store cannot be written or workers cannot be had; rows that are written stay. */
int sweep_run(const struct sweep *sweep, const struct selection *selection, const struct sweep_options *options,
              void (*progress)(void *context, const struct sweep_state *state), void *context,
              struct sweep_state *state, struct error *err);

#endif
