/* ledger: the kernels of a virtual stage one by one, each with its shape, how often it runs and what its time stands on:
 * what a profiler's list of kernels is held against. */
#ifndef DTSIM_LEDGER_H
#define DTSIM_LEDGER_H

#include "workload/workload.h"

/* What kernels are listed for. A backward is the two parts; UPDATE is once an iteration, all others are a micro-batch's. */
enum ledger_work {
    LEDGER_FORWARD, LEDGER_BACKWARD_INPUT, LEDGER_BACKWARD_WEIGHT, LEDGER_RECOMPUTE, LEDGER_UPDATE, LEDGER_WORK_COUNT
};
extern const char *const ledger_work_names[];    /* "forward", ...; NULL-terminated */

/* Equal kernels of a work. */
struct ledger_row {
    enum ledger_work work;
    struct kernel kernel;        /* of one layer: `launches` of it are equal */
    double count;                /* kernels that the host launches in one such work of the stage */
    double seconds;              /* s, all of them */
    enum cost_basis basis;
};
struct ledger {
    struct ledger_row *items;    /* by work, in the order of layers and kernels */
    size_t count, capacity;
    double waits[LEDGER_WORK_COUNT];     /* s of the stage's works in which no kernel runs: waits for launches */
    double planned;              /* s of kernels that the plan of a stage computes again in each backward */
};
/* The kernels of virtual stage `s` on an ordinary GPU; none where the model's times are given. The kernels of a work and
 * its waits are the stage's work (stage_times). */
void ledger_init(struct ledger *ledger, const struct workload *workload, int s);
void ledger_release(struct ledger *ledger);

#endif
