/* seating: how the members of a group sit on nodes, PCIe switches and NICs, and what a group gets of a NIC. */
#ifndef DTSIM_SEATING_H
#define DTSIM_SEATING_H

#include "hardware/cluster.h"
#include "collective/collective.h"

struct seating {
    int most;                /* members of a node, at most */
    int fewest_nics;         /* that the members of a node use; those of the node with the fewest */
    double share;            /* of a NIC that a member has where all send; that of the node with the least */
    bool scattered;          /* the members of a node are not next to one another */
    bool together;           /* two members of a node are below one PCIe switch */
    bool nodes, leaves;      /* the group spans several */
};
struct seating seating_of(const struct cluster *cluster, const struct group *group);

/* B/s that a NIC of that bandwidth has for one group while the groups of the other GPUs below its switch do the same:
 * what the library's choice of NICs (communication.h, enum nic_choice) and the way through the host leave of it. */
double seating_nic_bandwidth(const struct seating *seating, const struct cluster *cluster, double bandwidth);

#endif
