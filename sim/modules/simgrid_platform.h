/* simgrid_platform: a cluster as SimGrid reads it. */
#ifndef DTSIM_SIMGRID_PLATFORM_H
#define DTSIM_SIMGRID_PLATFORM_H

#include "hardware/cluster.h"

/* XML that holds only the given GPUs (`used`, cluster_gpus() flags; NULL: all). */
void platform_print(const struct cluster *cluster, const bool *used, FILE *out);

#endif
