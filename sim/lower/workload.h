/* workload: what a scenario has to do, before any time is simulated: its stages with their costs, the plans of those
 * that are computed layer by layer, and the mean times that some schedules order their work by. */
#ifndef DTSIM_WORKLOAD_H
#define DTSIM_WORKLOAD_H

#include "stage/stage.h"

/* One struct for each global stage, as stages_cost gives them, with versions of weights and plans of layers; sets the
 * scenario's plan.times. Errors as of stages_cost and stage_plans_build. */
int stages_build(struct scenario *scenario, struct stage **stages, struct error *err);

#endif
