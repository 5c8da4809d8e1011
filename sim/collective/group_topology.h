/* group_topology: how the members of a group stand on nodes, PCIe switches and NICs, and which share of a NIC the group
 * gets. */
#ifndef DTSIM_GROUP_TOPOLOGY_H
#define DTSIM_GROUP_TOPOLOGY_H

#include "hardware/cluster.h"
#include "collective/collective.h"

struct group_topology {
    int most;                /* members of a node, at most */
    int fewest_nics;         /* that the members of a node use; those of the node with the fewest */
    double share;            /* of a NIC that a member has where all send; that of the node with the least */
    bool scattered;          /* the members of a node are not next to one another */
    bool together;           /* two members of a node are below one PCIe switch */
    bool nodes, leaves;      /* the group spans several */
};
struct group_topology group_topology_of(const struct cluster *cluster, const struct group *group);

/* B/s that a group gets of a NIC of that bandwidth while the groups of the other GPUs below its PCIe switch do the
 * same. The library's choice of NICs (communication.h, enum nic_choice) and the way through the host reduce it. */
double group_topology_nic_bandwidth(const struct group_topology *topology, const struct cluster *cluster,
                                    double bandwidth);

#endif
