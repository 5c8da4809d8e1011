/* kernels_view: the kernels of every stage, for `dtsim show --kernels`. */
#ifndef DTSIM_KERNELS_VIEW_H
#define DTSIM_KERNELS_VIEW_H

#include "workload/workload.h"

#include <jansson.h>

/* A table for each stage; stages with the same kernels have one. */
void kernels_print(const struct workload *workload, FILE *out);
/* {stages: [{stage, kernels: [...], waits_s, planned_recomputation_s}]}: all stages. */
json_t *kernels_json(const struct workload *workload);

#endif
