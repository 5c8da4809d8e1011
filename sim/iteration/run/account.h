/* account: where every second of every rank went. On its compute lane a rank always computes or waits; each of its
 * seconds is of one kind. Metrics, the breakdown, utilization.tsv and charts are made from this one account, so that
 * they cannot disagree. For every rank, and so for the mean rank, the kinds add up to the time that passed. */
#ifndef DTSIM_ACCOUNT_H
#define DTSIM_ACCOUNT_H

#include "engine/program.h"
#include "lower/window.h"
#include "workload/workload.h"

#define ACCOUNT_KINDS(X) \
    X(ACCOUNT_FORWARD, "forward") X(ACCOUNT_BACKWARD, "backward") X(ACCOUNT_BACKWARD_INPUT, "backward_input") \
    X(ACCOUNT_BACKWARD_WEIGHT, "backward_weight") X(ACCOUNT_RECOMPUTE, "recompute") X(ACCOUNT_UPDATE, "update") \
    X(ACCOUNT_PACK, "pack") \
    X(ACCOUNT_EXPOSED_TENSOR, "exposed_tensor")     /* exchanges of a work with its tensor group */ \
    X(ACCOUNT_EXPOSED_PIPELINE, "exposed_pipeline") /* a wait for another stage's boundary that is sent or queues */ \
    X(ACCOUNT_EXPOSED_DATA, "exposed_data")         /* a wait for a collective over replicas, for tied embeddings or
                                                     * weights; time that kernels lose to overlapped collectives */ \
    X(ACCOUNT_EXPOSED_CONTEXT, "exposed_context")   /* exchanges of a work with its context group */ \
    X(ACCOUNT_EXPOSED_EXPERT, "exposed_expert")     /* exchanges of a work with its expert group */ \
    X(ACCOUNT_EXPOSED_OFFLOAD, "exposed_offload")   /* a wait for a copy to or from the host, or for its update */ \
    X(ACCOUNT_BUBBLE, "bubble")     /* a wait for kernels of other ranks, or the rank has ended before the others */
enum account_kind {
    ACCOUNT_KINDS(ENUM_VALUE)
    ACCOUNT_KIND_COUNT,
    ACCOUNT_COMMUNICATION_FIRST = ACCOUNT_EXPOSED_TENSOR, ACCOUNT_COMMUNICATION_LAST = ACCOUNT_EXPOSED_EXPERT
};
extern const char *const account_names[];        /* "forward", ..., as in result.json; NULL-terminated */
/* The kind of the operation of a compute lane. */
enum account_kind account_of(enum op_what what);
/* The kind of a work's exchanges with these peers. */
static inline enum account_kind account_of_peers(enum peers peers)
{
    static const enum account_kind exposed[PEERS_COUNT] = {
        [PEERS_TENSOR] = ACCOUNT_EXPOSED_TENSOR, [PEERS_CONTEXT] = ACCOUNT_EXPOSED_CONTEXT,
        [PEERS_EXPERT] = ACCOUNT_EXPOSED_EXPERT, [PEERS_DATA] = ACCOUNT_EXPOSED_DATA,
    };

    return exposed[peers];
}

/* One operation of a compute lane and the wait before it. The lane was free at `from` and waited for the kernels of
 * others until `since`, for communication (`awaited`) until `ready`, for the host alone until `start`. */
struct account_step {
    int rank;
    const struct op *op;         /* NULL: the rank has ended; only its bubble is left */
    double from, since, ready, start, end;       /* s, ascending */
    enum account_kind awaited;
    const struct op_compute *compute;    /* of `op`; NULL without one */
    const struct op *kernel;     /* operation of another rank that ended at `since`; NULL: it is the rank's own, or not
                                    known */
    const struct op *on;         /* what it waited for last, but for the host's; NULL: nothing, or the rank has ended */
};
typedef void account_visit(void *context, const struct account_step *step);
/* Visits every operation of every compute lane in the order of time within each lane, then every rank's end; leaves
 * the rest out when the budget of `progress` (or NULL) is spent, as progress_check() tells. */
void account_walk(const struct timeline *timeline, account_visit *visit, void *context, struct progress *progress);

/* The part of [from, to] that lies in the window, an update. */
double window_part(const struct window *window, double from, double to);
/* Whether the bubble of the step, [from, since], is a wait for kernels of another replica; `stages`: pipeline ranks of
 * one. Replicas meet in collectives and in exchanges within works. Where ranks have `unequal` degrees a replica of a
 * rank also waits for replicas of other ranks that have some of its samples: that is no wait for another replica. */
bool account_awaits_replica(const struct account_step *step, const struct program *program, int stages, bool unequal);
/* Adds the seconds of the step that lie in the window, over its updates, to seconds[ACCOUNT_KIND_COUNT]. Returns the
 * exposed communication among them. */
double account_add(const struct account_step *step, const struct window *window, double *seconds);

/* s of an iteration's kernels, mean over ranks, by what their times stand on. Of these, into `extrapolated`: s of kernels
 * unlike the samples. */
struct cost_bases account_bases(const struct workload *workload, double *extrapolated);

#endif
