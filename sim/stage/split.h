/* split: how many of the model's layers each stage holds. */
#ifndef DTSIM_SPLIT_H
#define DTSIM_SPLIT_H

#include "scenario/scenario.h"

/* As strategy.split says; else evenly, the last stage and then the first ones getting the smaller share where the
 * blocks do not divide, which may be none beside the embedding or the output layer.
 * begins: the first block of every stage, and past the last stage how many there are, in the arena. Errors:
 * more stages than layers, a split that is not of this model (EXIT_INFEASIBLE). */
int split_blocks(struct arena *arena, const struct parallelism *spec, const struct plan *plan,
                 const struct layer *layers, size_t count, size_t **begins, struct error *err);

#endif
