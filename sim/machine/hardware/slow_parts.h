/* slow_parts: GPUs and NICs of a cluster that are slower than the others, as a scenario says. */
#ifndef DTSIM_SLOW_PARTS_H
#define DTSIM_SLOW_PARTS_H

#include "hardware/cluster.h"

/* A GPU whose computations take `slower` times as long. */
struct straggler {
    const struct node *node;
    int gpu;
    double slower;
};
extern const struct table straggler_table;

/* A NIC that has a share of its bandwidth, in both directions. */
struct slow_link {
    const struct node *node;
    int of_node, nic;                /* the node's number, and the NIC's within the node */
    double share;
};
extern const struct table slow_link_table;

/* Lists of these. Sets the cluster's gpu_slower and nic_shares, in the arena; leaves them NULL where no part is slower.
 * The cluster has its size. Errors: a part that it does not have, or one that is named twice, at its place. */
int slow_parts_set(struct arena *arena, const struct list *stragglers, const struct list *slow_links,
                   struct cluster *cluster, struct error *err);

#endif
