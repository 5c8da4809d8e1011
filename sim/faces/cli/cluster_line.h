/* cluster_line: which cluster a run is on. */
#ifndef DTSIM_CLUSTER_LINE_H
#define DTSIM_CLUSTER_LINE_H

#include "scenario/scenario.h"

/* "4 nodes of 8 NVIDIA H100-SXM5-80GB; NVIDIA DGX H100", in the arena. */
const char *cluster_line(struct arena *arena, const struct scenario *scenario);

#endif
