/* simgrid_platform: a cluster as SimGrid reads it. */
#ifndef DTSIM_SIMGRID_PLATFORM_H
#define DTSIM_SIMGRID_PLATFORM_H

#include "hardware/cluster.h"

/* Two GPUs that send to each other, in one direction; `most`: as struct op_transfer's. */
struct platform_pair { int src, dst; double most; };
/* What a simulation needs of the platform: the GPUs (cluster_gpus() flags; NULL: all), and each pair that sends once, by
 * src, `most`, dst. */
struct platform_use { const bool *gpus; const struct platform_pair *pairs; size_t count; };
/* Whether the platform has a host, "gpu3", for each GPU and a route for each pair, as the topology is no star of stars,
 * or pairs take no more than a part of their links; else "gpu3" and "nic0" are hosts. */
bool platform_is_paired(const struct cluster *cluster, const struct platform_use *use);
/* The name of the host that sends for a GPU: "gpu3", or of a pair that takes `most` another. */
enum { PLATFORM_HOST_SIZE = 48 };
void platform_sender(int gpu, double most, char name[PLATFORM_HOST_SIZE]);
void platform_print(const struct cluster *cluster, struct platform_use use, FILE *out);

#endif
