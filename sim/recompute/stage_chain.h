/* stage_chain: the layers of a stage as a chain to plan (chain.h): their kernels and bytes, and what their GPUs
 * exchange, estimated by the collectives' own formulas, as nothing has been measured when stages are planned. Gathers
 * beside pieces of products and keys and values that are passed again for attention alone do not count. */
#ifndef DTSIM_STAGE_CHAIN_H
#define DTSIM_STAGE_CHAIN_H

#include "recompute/chain.h"
#include "stage/stage.h"

/* In the order of the forward, stage->nslices of them; `rank` is a pipeline rank that holds the stage. */
struct chain_layer *stage_chain(struct arena *arena, const struct scenario *scenario, const struct stage *stage,
                                int rank);

/* The layer with that number in the order of the forward. */
static inline const struct slice *stage_layer(const struct stage *stage, size_t layer)
{
    return &stage->slices[stage->nslices - 1 - layer];
}

#endif
