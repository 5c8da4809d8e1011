/* cluster_idle: keys that a scenario changes and that change nothing. */
#ifndef DTSIM_CLUSTER_IDLE_H
#define DTSIM_CLUSTER_IDLE_H

#include "hardware/cluster.h"

/* Refuses keys that have no effect on this cluster, whatever runs on it, if they differ from the platform's. The
 * platform's own are no mistake: another communication library may use them. -1 after an error. */
int cluster_check_idle(struct arena *arena, const struct cluster *cluster, struct error *err);

#endif
