/* stage_chain: the layers of a stage as a chain to plan (chain.h): their kernels, bytes and exchanges. The times of
 * exchanges are estimates by the collectives' formulas, because stages are planned before anything is measured. Gathers
 * that overlap with pieces of products do not count, nor do keys and values passed once more for recomputed
 * attention. */
#ifndef DTSIM_STAGE_CHAIN_H
#define DTSIM_STAGE_CHAIN_H

#include "recompute/chain.h"
#include "stage/stage.h"

/* The stage->nslices layers, in the order of the forward; `rank` is a pipeline rank that holds the stage. */
struct chain_layer *stage_chain(struct arena *arena, const struct scenario *scenario, const struct stage *stage,
                                const struct stage_times *times, int rank);

/* Layer number `layer` in the order of the forward. */
static inline const struct slice *stage_layer(const struct stage *stage, size_t layer)
{
    return &stage->slices[stage->nslices - 1 - layer];
}

#endif
