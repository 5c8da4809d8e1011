/* stages_view: the memory and the cost of each virtual stage of a workload, a line each (`dtsim show`). */
#ifndef DTSIM_CLI_STAGES_VIEW_H
#define DTSIM_CLI_STAGES_VIEW_H

#include <stdio.h>

#include "workload/workload.h"

/* Layers, parameters, s of a forward, a backward and what is recomputed, B of activations and of the boundary; per GPU and
 * micro-batch, without communication. */
void stages_show(const struct workload *workload, FILE *out);

#endif
