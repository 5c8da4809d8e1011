/* auto: a workload of a scenario that leaves settings open: strategy.stages_on, batch.shares and strategy.split may be
 * `auto`, and plans of layers may follow from a limit of memory. Each is found by simulating the values that it may have. */
#ifndef DTSIM_AUTO_H
#define DTSIM_AUTO_H

#include "workload/workload.h"

/* Finds the values that are left open, and builds the workload. Errors: the errors of workload_build; nothing to choose,
 * or too much. Release in either case. The scenario must outlive the workload. */
int workload_init(struct workload *workload, const struct scenario *scenario, struct error *err);
/* The same up to workload_time. */
int auto_time(struct workload *workload, const struct scenario *scenario, struct error *err);

#endif
