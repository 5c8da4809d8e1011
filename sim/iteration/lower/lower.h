/* lower: rows and messages become a program. Which step waits for which is in script.h; here each step becomes operations.
 *
 * Passes over the workload, each of which reads what those before it have found:
 *   rows          lower/script_rows.c  the entries of each row, and what is known of each: which complete gradients, ...
 *   exchanges     exchange/      what replicas exchange, and whether as messages or as durations; what works exchange
 *                 within, and how long that takes
 *   works         lower/works.c    steps of all works, with the labels that they wait for and give
 *   updates       lower/updates.c  steps of sums, updates and gathers of weights, in addition
 *   hosts         lower_host.c   bytes that hosts keep for their GPUs, and parameters that they update
 *   order         lower/resolve.h  the order of all steps
 *   durations     lower_compute.c   how long works take. Each step in its turn becomes operations: works (lower_work.c and,
 *                 layer by layer, lower_layers.c), boundaries (lower_send.c), sums (lower_sync.c), updates and weights
 *                 (lower_update.c). By then all that a step waits for is written. How long a work takes depends on the
 *                 collectives that were written before it, so it is found when its operation is. */
#ifndef DTSIM_LOWER_H
#define DTSIM_LOWER_H

#include "exchange/exchange.h"

enum lower_what {
    LOWER_ITERATION,         /* the whole iteration: compute, boundary transfers, gradient all-reduce, update */
    LOWER_COMPUTE,           /* one replica's works and boundary transfers, for figures */
};

struct lowered {
    struct program program;  /* rank = replica * pipeline + pipeline rank */
    struct alike alike;      /* which members stand for others in it */
    struct exchanges_used used;
};

/* The purpose of the operations that a work becomes. */
enum op_what work_what(enum work_kind kind);
/* Builds the program. `measure`: the collectives that become durations. Fails where one cannot be measured, where
 * operations are too many or would never end, and where the budget is spent. Call lowered_release in either case. */
int lower(const struct workload *workload, enum lower_what what, struct measure *measure, struct lowered *lowered,
          struct error *err);
void lowered_release(struct lowered *lowered);
/* As memory_peaks() of the ranks of the first replica, from rows alone: what works take and free, whatever the times. The
 * caller frees the array. */
struct memory_peak *works_peaks(const struct workload *workload);

/* The passes of lowering, in their order. */
enum lower_pass {
    PASS_ROWS,                       /* entries: works of every local step, updates, gathers; who completes gradients */
    PASS_EXCHANGES,                  /* what replicas exchange, as messages or durations; what works exchange within */
    PASS_WORKS,                      /* steps of works, with the labels that they wait for and give */
    PASS_UPDATES,                    /* all steps: in addition to works sums, updates and gathers of weights */
    PASS_HOSTS,                      /* bytes that hosts keep for their GPUs, and parameters that they update */
    PASS_ORDER,                      /* the order of all steps */
    PASS_DURATIONS,                  /* how long works take while nothing slows them down */
    PASS_COUNT
};
extern const char *const lower_pass_names[];     /* "rows", "exchanges", ...; NULL-terminated */
/* Lowers an iteration up to a pass, and prints the pass's findings, one a line. Fails as lower() does. */
int lower_print(const struct workload *workload, enum lower_pass after, struct measure *measure, FILE *out,
                struct error *err);

#endif
