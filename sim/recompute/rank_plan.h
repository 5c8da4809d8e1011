/* rank_plan: how the chunks of a rank share the memory that it has for activations; for stage_plan.c. */
#ifndef DTSIM_RANK_PLAN_H
#define DTSIM_RANK_PLAN_H

#include "recompute/chain.h"
#include "stage/stage.h"

/* Plans the rank's chunks (whose stages' `chain` is known) for what it may hold beside all that memory_states says and
 * fragmentation, with as many micro-batches in flight as its row has. A chunk alone gets the fastest plan that fits.
 * Several choose among plans for different shares of the memory: no change of two of the choices is faster. Error: no
 * plan fits (EXIT_INFEASIBLE, with about the least that does). */
int rank_plan(struct arena *arena, const struct scenario *scenario, const struct stage *stages, int rank,
              const struct row *row, struct chain_plan *plans, struct error *err);

/* Forwards of a chunk without their backward, at most; of all chunks of the row: -1. */
int row_in_flight(const struct row *row, int chunk);

#endif
