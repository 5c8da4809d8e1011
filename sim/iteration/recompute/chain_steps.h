/* steps: the steps of a chain's plan with the bytes that each takes and frees. */
#ifndef DTSIM_CHAIN_STEPS_H
#define DTSIM_CHAIN_STEPS_H

#include "recompute/chain.h"

/* One step of the backward phase, and the bytes that it takes when it begins and frees when it ends. A selective
 * backward recomputes the core of its layer's attention. */
struct plan_step { bool backward, selective; size_t layer; double takes, frees; };

/* The plan's nsteps steps; they live in the arena. */
struct plan_step *chain_steps(struct arena *arena, const struct chain_layer *layers, size_t count,
                              const struct chain_plan *plan);
/* Every layer keeps everything. */
struct chain_plan whole_plan(struct arena *arena, const struct chain_layer *layers, size_t count);
/* Every block's input is kept or offloaded, and the block is recomputed right before its backward. */
struct chain_plan full_plan(struct arena *arena, const struct chain_layer *layers, size_t count, bool offload);

/* All plans of recomputation of a short chain, one after another: of each layer its forward saves all, all but what a
 * selective backward computes again, or nothing, and comes back to as many layers later, in any nesting. Begin with
 * {.more = true}. */
struct every_plan {
    bool more;                   /* the last plan was not the last one */
    int choice[64], of[64];      /* the choices that make a plan, and the number of alternatives of each */
    size_t made, count;
};
struct chain_plan every_plan(struct every_plan *every, struct arena *arena, const struct chain_layer *layers,
                             size_t count);

#endif
