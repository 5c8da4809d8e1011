/* verify: the best points of a sweep, simulated once more on the reference engine (ENGINE_SIMGRID).
 *
 * The row of such a point gets "verified_engine", and under "metrics" verified_iteration_time_s and
 * verified_difference_share (that over iteration_time_s, less 1). The row takes the place of the one before, in the
 * same file, as rows of one id do (store.h): so a verification that is killed loses no row, and one that goes on
 * repeats no point. */
#ifndef DTSIM_VERIFY_H
#define DTSIM_VERIFY_H

#include "sweep/row.h"
#include "sweep/sweep.h"

struct verification {
    const struct sweep *sweep;
    const struct sweep_options *options;
    const struct row_maker *maker;
    struct locations *points;    /* of the sweep; it is put in another order */
    struct sweep_state *state;
    void (*progress)(void *context, const struct sweep_state *state);
    void *context;
};

/* Verifies the best `options->verify` points by the sweep's first objective, else by throughput, and those that tie
 * with them (tie.h), but for those that are verified already or ran on that engine. -1: the store cannot be read or
 * written, or workers cannot be had; a point that fails is counted, with the reason of the first, and its row stays as it
 * is. */
int verify_best(const struct verification *verification, struct error *err);

#endif
