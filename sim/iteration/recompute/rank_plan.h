/* rank_plan: how the chunks of a rank share its memory for activations; for stage_plan.c. */
#ifndef DTSIM_RANK_PLAN_H
#define DTSIM_RANK_PLAN_H

#include "recompute/chain.h"
#include "stage/stage.h"

/* What plans of ranks are made from. */
struct planning {
    struct arena *arena;             /* holds the plans */
    const struct scenario *scenario;
    const struct stage *stages;      /* one a virtual stage */
    struct chain_layer **chains;     /* a virtual stage: its layers */
    const struct row *rows;          /* a pipeline rank */
};
/* Plans the rank's chunks, with as many micro-batches in flight as its row has. Their memory is the rank's limit
 * without memory_states and fragmentation. A single chunk gets the fastest plan that fits. Several chunks choose among
 * plans for different shares of the memory, until no change of two choices is faster.
 * Error: no plan fits (EXIT_INFEASIBLE, with about the least memory that suffices). */
int rank_plan(const struct planning *planning, int rank, struct chain_plan *plans, struct error *err);

/* The most micro-batches of a chunk in flight: forwards without their backwards. chunk -1: of all chunks together. */
int row_in_flight(const struct row *row, int chunk);

#endif
