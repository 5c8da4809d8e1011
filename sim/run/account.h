/* account: where every second of every rank went. On its compute lane a rank always computes or waits; each of its
 * seconds is of one kind. Metrics, the breakdown, utilization.tsv and charts are made from this one account, so that
 * they cannot disagree. For every rank, and so for the mean rank, the kinds add up to the time that passed. */
#ifndef DTSIM_ACCOUNT_H
#define DTSIM_ACCOUNT_H

#include "engine/program.h"

enum account_kind {
    ACCOUNT_FORWARD, ACCOUNT_BACKWARD, ACCOUNT_BACKWARD_INPUT, ACCOUNT_BACKWARD_WEIGHT, ACCOUNT_RECOMPUTE,
    ACCOUNT_UPDATE, ACCOUNT_PACK,
    ACCOUNT_EXPOSED_TENSOR,      /* the first kind that is communication: exchanges of a work with its tensor group, */
    ACCOUNT_EXPOSED_PIPELINE,    /* a wait for a boundary of another stage that is on its way, or queues, */
    ACCOUNT_EXPOSED_DATA,        /* a wait for a collective over replicas or tied embeddings, or for weights; and what
                                  * kernels lose to collectives that run beside them, */
    ACCOUNT_EXPOSED_CONTEXT,     /* exchanges of a work with its context group, */
    ACCOUNT_EXPOSED_EXPERT,      /* and with its expert group: the last kind that is communication */
    ACCOUNT_EXPOSED_OFFLOAD,     /* a wait for the host (a copy or an update there): all else is there */
    ACCOUNT_BUBBLE,              /* a wait for the kernels of other ranks; or the rank has ended before the others */
    ACCOUNT_KIND_COUNT
};
extern const char *const account_names[];        /* "forward", ..., as in result.json; NULL-terminated */
/* The kind of what an operation of a compute lane computes. */
enum account_kind account_of(enum op_what what);
/* The kind of what a work exchanges with them. */
enum account_kind account_of_peers(enum peers peers);

/* One operation of a compute lane and the wait before it. The lane was free at `from` and waited for the kernels of
 * others until `since`, for communication (`awaited`) until `ready`, for the host alone until `start`. */
struct account_step {
    int rank;
    const struct op *op;         /* NULL: the rank has ended; only its bubble is left */
    double from, since, ready, start, end;       /* s, ascending */
    enum account_kind awaited;
    const struct op *on;         /* what it waited for last, but for the host's; NULL: nothing, or the rank has ended */
};
typedef void account_visit(void *context, const struct account_step *step);
/* Visits every operation of every compute lane in the order of time within each lane, then every rank's end. */
void account_walk(const struct timeline *timeline, account_visit *visit, void *context);

/* What is measured: a part of the timeline. Of a synchronous schedule that is the whole iteration, or local steps. An
 * asynchronous one is measured in its steady state: whole iterations (updates), from the end of one update of rank 0 to
 * the end of a later one, after the fill and before its last forward. Seconds are means over its updates. Bytes and
 * FLOPs are the same in every iteration, and means over `all` of the timeline. */
struct window { double from, to; int updates, all; bool steady; };
/* The part of [from, to] that lies in the window, an update. */
double window_part(const struct window *window, double from, double to);
/* Adds the seconds of the step that lie in the window, over its updates, to seconds[ACCOUNT_KIND_COUNT]. Returns those
 * that are exposed communication. */
double account_add(const struct account_step *step, const struct window *window, double *seconds);

#endif
