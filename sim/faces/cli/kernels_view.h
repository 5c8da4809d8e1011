/* kernels_view: the kernels of every stage, for `dtsim show --kernels`. */
#ifndef DTSIM_KERNELS_VIEW_H
#define DTSIM_KERNELS_VIEW_H

#include "workload/workload.h"

/* A table for each stage; stages with the same kernels have one. JSON has all stages. */
void kernels_show(const struct workload *workload, bool json);
#endif
