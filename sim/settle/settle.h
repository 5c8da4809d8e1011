/* settle: a workload of a scenario that leaves settings to be found: strategy.stages_on, batch.shares and strategy.split
 * may be `auto`. Each is settled by simulating what it may be. */
#ifndef DTSIM_SETTLE_H
#define DTSIM_SETTLE_H

#include "workload/workload.h"

/* Settles what is `auto`, and builds the workload. Errors: the errors of workload_build; nothing to choose, or too
 * much. Release in either case. The scenario must outlive the workload. */
int workload_init(struct workload *workload, const struct scenario *scenario, struct error *err);
/* The same up to workload_time. */
int settle_time(struct workload *workload, const struct scenario *scenario, struct error *err);

#endif
