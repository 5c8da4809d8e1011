/* replay_simgrid: a route of the platform as SimGrid understood it; for tests. */
#ifndef DTSIM_REPLAY_SIMGRID_H
#define DTSIM_REPLAY_SIMGRID_H

#include "hardware/cluster.h"

struct simgrid_route {
    int src, dst;
    int count;                       /* may exceed ROUTE_MAX, if SimGrid disagrees */
    char links[ROUTE_MAX][32];
    double latency, bandwidth;
};

/* Loads the cluster's platform in a child and asks SimGrid for the route of a transfer. */
int simgrid_route(const struct cluster *cluster, int src, int dst, struct simgrid_route *route, struct error *err);

#endif
