/* split: how many of the model's layers each stage holds. */
#ifndef DTSIM_SPLIT_H
#define DTSIM_SPLIT_H

#include "scenario/scenario.h"

/* What a layer adds to its stage, for each micro-batch. */
struct split_cost {
    double seconds;              /* of its forward and backward */
    double sending;              /* s in which a rank sends its gradients once; 0: they do not count */
};

/* Splits as strategy.split says; else, where there are `costs` of each layer, so that the longest stage is as short as
 * it can be; else by their weights, where software does so; else evenly. If the blocks do not divide, the last stage
 * and then the first ones get one block less; a stage with the embedding or the output layer may get none.
 * begins: the first block of every stage, then the number of blocks; in the arena. Errors: more stages than layers, a
 * split that does not fit this model (EXIT_INFEASIBLE). */
int split_blocks(struct arena *arena, const struct scenario *scenario, const struct layer *layers,
                 const struct split_cost *costs, size_t count, size_t **begins, struct error *err);

#endif
