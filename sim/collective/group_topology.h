/* group_topology: how the members of a group are spread over nodes, PCIe switches and NICs, and the group's share of a
 * NIC. */
#ifndef DTSIM_GROUP_TOPOLOGY_H
#define DTSIM_GROUP_TOPOLOGY_H

#include "hardware/cluster.h"
#include "collective/collective.h"

struct group_topology {
    int most;                /* the most members of a node */
    int fewest_nics;         /* the fewest NICs that the members of a node use */
    double share;            /* share of a NIC that a member has while all send; the least of all nodes */
    bool scattered;          /* the members of a node are not next to one another */
    bool together;           /* two members of a node are below one PCIe switch */
    bool nodes, leaves;      /* the group spans several */
};
struct group_topology group_topology_of(const struct cluster *cluster, const struct group *group);

/* B/s that a group gets of a NIC of `bandwidth` B/s while the groups of the other GPUs below its PCIe switch do the
 * same. The library's choice of NICs (communication.h, enum nic_choice) and routes through the host reduce it. */
double group_topology_nic_bandwidth(const struct group_topology *topology, const struct cluster *cluster,
                                    double bandwidth);

#endif
