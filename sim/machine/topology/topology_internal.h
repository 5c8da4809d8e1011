/* topology_internal: the functions of topology.h, for each kind of topology. Torus, dragonfly and SimGrid's file have
 * files of their own; topology.c has the tree and the rails. */
#ifndef DTSIM_TOPOLOGY_INTERNAL_H
#define DTSIM_TOPOLOGY_INTERNAL_H

#include "topology/topology.h"

struct topology_class {
    int (*links)(struct topology_of topology);
    void (*way)(struct topology_of topology, struct topology_end src, struct topology_end dst,
                struct topology_way *way);
    struct topology_link (*link)(struct topology_of topology, int link);
    void (*name)(struct topology_of topology, int link, char *buffer, size_t size);
    int (*block)(struct topology_of topology);
    double (*crowding)(struct topology_of topology, int node, int other, double nic);
};
extern const struct topology_class topology_torus, topology_dragonfly, topology_file;

/* Adds a link to a way. */
static inline void way_through(struct topology_way *way, int link)
{
    BUG_IF(way->count == WAY_MAX);
    way->links[way->count++] = link;
}
/* Nodes of a torus, or of a dragonfly: of 64 bits, as files may say any numbers. */
long long torus_nodes(const struct topology *topology);
long long dragonfly_nodes(const struct topology *topology);
/* Global links between each pair of groups. */
int dragonfly_pair_links(const struct topology *topology);

#endif
