/* idle: why a rank does not compute: for whom or what it waits, and how long. Made from the account of seconds
 * (run/account.h), so that a rank's waits add up to what its breakdown calls bubble and exposed. */
#ifndef DTSIM_IDLE_H
#define DTSIM_IDLE_H

#include "run/run.h"

enum idle_cause {
    IDLE_ACTIVATION,         /* of the rank before */
    IDLE_GRADIENT,           /* of the rank after */
    IDLE_TURN,               /* to recompute: a neighbour's backward has not come far enough */
    IDLE_SUM,                /* of gradients over replicas */
    IDLE_TIED,               /* of the gradients of tied embeddings */
    IDLE_WEIGHTS,            /* gathered, or handed out */
    IDLE_REPLICAS,           /* that have to begin a work together, or whose share of it is handed on */
    IDLE_HOST,               /* a copy to or from host memory, or an update there */
    IDLE_TENSOR, IDLE_CONTEXT, IDLE_EXPERT,      /* exchanges within works */
    IDLE_OVERLAPPED,         /* what kernels lose to collectives beside them */
    IDLE_END,                /* of the iteration: the rank is done before others */
    IDLE_CAUSE_COUNT
};
extern const char *const idle_cause_names[];     /* "activation", ...; NULL-terminated */

/* A reason of a pipeline rank. Means over replicas, within metrics.window, an update. */
struct idle_wait {
    int rank, on;            /* on: the pipeline rank that it waits for, -1: no one alone */
    enum idle_cause cause;
    double bubble;           /* s in which those that it waits for compute: breakdown_s.bubble */
    double exposed;          /* s of communication or offload that nothing hides */
};
struct idle {
    struct idle_wait *items;         /* by rank, the longest first */
    size_t count, capacity;
};

/* idle_release when done. */
void idle_init(struct idle *idle, const struct run *run);
void idle_release(struct idle *idle);

#endif
