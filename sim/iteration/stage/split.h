/* split: how many of the model's layers each stage holds, and the stages that hold them. */
#ifndef DTSIM_SPLIT_H
#define DTSIM_SPLIT_H

#include "stage/layer_cost.h"

/* What a layer adds to its stage, for each micro-batch. */
struct split_cost {
    double seconds;              /* of its forward and backward */
    double sending;              /* s in which a rank sends its gradients once; 0: they do not count */
};

/* Splits as strategy.split says; else, where there are `costs` of each layer, so that the longest stage is as short as
 * it can be; else by their weights, where software does so; else evenly. If the blocks do not divide, the last stage
 * and then the first ones get one block less; a stage with the embedding or the output layer may get none. Blocks of
 * multi-token prediction, which are on the last stage, count there as others do.
 * begins: the first block of every stage, then the number of blocks; in the arena. Errors: more stages than layers, a
 * split that does not fit this model (EXIT_INFEASIBLE). */
int split_blocks(struct arena *arena, const struct scenario *scenario, const struct layer *layers,
                 const struct split_cost *costs, size_t count, size_t **begins, struct error *err);

/* Whether replicas divide some parameters of layers, which are PARAMETERS_APART then. */
bool stage_divides_parameters(const struct scenario *scenario);
/* Fills the stages, and their times by `costs`, with the layers: those before the blocks go to the first stage, those after
 * them to the last. begins: the first block of every stage, then the number of blocks. Stages of the same blocks share
 * their slices, which nobody may change. -1: the budget is spent. */
int stages_fill(struct arena *arena, struct layer_costs *costs, const struct layer *layers, size_t count,
                 const size_t *begins, struct stage *stages, struct stage_times *times, struct error *err);
/* Whether virtual stage s and its predecessor hold the same, on equally many ranks. */
bool stages_repeat(const struct plan *plan, const struct stage *stages, int s);

#endif
