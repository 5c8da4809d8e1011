/* stage_layers: which layers each stage holds, and their sum. */
#ifndef DTSIM_STAGE_LAYERS_H
#define DTSIM_STAGE_LAYERS_H

#include "stage/layer_cost.h"

/* Whether replicas divide some parameters of layers, which are PARAMETERS_APART then. */
bool stage_divides_parameters(const struct scenario *scenario);
/* Fills the stages, and their times by `costs`, with the layers: those before the blocks go to the first stage, those after
 * them to the last. begins: the first block of every stage, then the number of blocks. Stages of the same blocks share
 * their slices, which nobody may change. */
void stages_fill(struct arena *arena, struct layer_costs *costs, const struct layer *layers, size_t count,
                 const size_t *begins, struct stage *stages, struct stage_times *times);
/* Whether virtual stage s holds what the stage before it holds, and as many ranks hold it. */
bool stages_repeat(const struct plan *plan, const struct stage *stages, int s);

#endif
