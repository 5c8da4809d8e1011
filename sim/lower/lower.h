/* lower: rows and messages become a program. This folder alone says which work waits for which: a forward for the
 * activations of the stage before, a backward for the gradients of the stage after, an update for the gradients of all
 * replicas.
 *
 * Passes over the workload, each of which reads what those before it have found:
 *   rows          lower.c        the entries of each row, and which of them complete gradients
 *   exchanges     exchange/      what replicas exchange, and whether as messages or as durations; what works exchange
 *                 within, and how long that takes
 *   script        script.c       steps of all rows, with the labels that they wait for and give
 *   order         schedule/resolve.h
 *   operations    each step's, with their durations: works (lower_work.c and, layer by layer, lower_layers.c), boundaries
 *                 (lower_send.c), sums (lower_sync.c), updates, hosts and weights (lower_update.c). By then all that a step
 *                 waits for is written. */
#ifndef DTSIM_LOWER_H
#define DTSIM_LOWER_H

#include "exchange/exchange.h"

enum lower_what {
    LOWER_ITERATION,         /* the whole iteration: compute, boundary transfers, gradient all-reduce, update */
    LOWER_COMPUTE,           /* one replica's rows and boundary transfers, for figures and grids */
};

struct lowered {
    struct program program;  /* rank = replica * pipeline + pipeline rank */
    struct alike alike;      /* who stands for whom in it */
    struct exchanges_used used;
};

/* The purpose of the operations that a work becomes. */
enum op_what work_what(enum work_kind kind);
/* Builds the program. `measure` serves the tensor-parallel (and measured) collectives. Release in either case. */
int lower(const struct workload *workload, enum lower_what what, struct measure *measure, struct lowered *lowered,
          struct error *err);
void lowered_release(struct lowered *lowered);

/* The passes before operations are written, in their order. */
enum lower_pass {
    PASS_ROWS,                       /* entries: works of every local step, updates, gathers; who completes gradients */
    PASS_EXCHANGES,                  /* what replicas exchange, as messages or durations; what works exchange within */
    PASS_SCRIPT,                     /* steps of all rows, with the labels that they wait for and give */
    PASS_ORDER,                      /* the order of these */
    PASS_COUNT
};
extern const char *const lower_pass_names[];     /* "rows", "exchanges", ...; NULL-terminated */
/* Prints what a pass of an iteration's lowering has found, a line each. Fails as lower() does. */
int lower_print(const struct workload *workload, enum lower_pass after, struct measure *measure, FILE *out,
                struct error *err);

#endif
