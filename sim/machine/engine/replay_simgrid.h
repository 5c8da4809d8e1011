/* replay_simgrid: what the program and its module "simgrid", which alone sees the library, have to do with each
 * other. */
#ifndef DTSIM_REPLAY_SIMGRID_H
#define DTSIM_REPLAY_SIMGRID_H

#include "engine/dispatcher.h"
#include "topology/simgrid_file.h"

/* A route of the platform as SimGrid understood it; for tests. */
struct simgrid_route {
    int src, dst;
    int count;                       /* may exceed ROUTE_MAX, if SimGrid disagrees */
    char links[ROUTE_MAX][48];
    double latency, bandwidth;
};

/* Loads the cluster's platform in a child and asks SimGrid for the route of a transfer. Error: as replay_simgrid. */
int simgrid_route(const struct cluster *cluster, int src, int dst, struct simgrid_route *route, struct error *err);

/* How far a replay is: operations whose end is known, and SimGrid's clock in seconds. */
struct simgrid_so_far { size_t done; double clock; };

/* What the module gives, as its symbol module_simgrid. Its functions run in a child process, once, and end it. */
struct simgrid_module {
    struct simgrid_reader reader;
    /* The dispatcher belongs to the program and has operations that are ready. `so_far` is for another process to
     * read. */
    void (*replay)(const struct cluster *cluster, struct dispatcher *dispatcher, struct simgrid_so_far *so_far);
    /* Fills what `route` does not say but its ends. */
    void (*look_up)(const struct cluster *cluster, struct simgrid_route *route);
};

#endif
