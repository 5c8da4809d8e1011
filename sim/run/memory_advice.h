/* memory_advice: a scenario that does not fit, and what would help. */
#ifndef DTSIM_MEMORY_ADVICE_H
#define DTSIM_MEMORY_ADVICE_H

#include "run/metrics.h"

/* Infeasible (EXIT_INFEASIBLE) when a rank needs more than memory_limit: by how much, where, the largest parts, and the
 * change that fits and costs the least GPU time a sample: the changes of a short list are simulated on the free engine,
 * alone, and where none of them fits in pairs and in threes. Changes keep the model, its formats and its optimizer. */
int memory_check(const struct metrics *metrics, const struct scenario *scenario, struct error *err);
/* The same advice behind an error of kind ERROR_MEMORY, for a scenario for whose layers no plan was found
 * (stages_build). */
void memory_advise(const struct scenario *scenario, struct error *err);
/* Whether twice the micro-batch, in twice the batch, would fit into the GPU's memory too. -1 where such a scenario is
 * none, with the reason. */
int memory_fits_twice(const struct scenario *scenario, bool *fits, struct error *err);

#endif
