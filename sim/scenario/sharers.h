/* sharers: stages that several ranks of a pipeline hold, taking turns at the micro-batches (PipeDream's 1F1B-RR). */
#ifndef DTSIM_SHARERS_H
#define DTSIM_SHARERS_H

#include "scenario/scenario.h"

/* The ranks of all stages add up to the pipeline's: sets it where it was not given. */
int sharers_resolve(struct scenario *scenario, struct error *err);
/* Places the plan's stages, where any is shared: rank by rank, the sharers of a stage in a row. */
void sharers_place(struct scenario *scenario);
/* Every rank that shares a stage does as many micro-batches, as all of them sum their gradients at every update. */
int sharers_check(const struct scenario *scenario, struct error *err);

#endif
