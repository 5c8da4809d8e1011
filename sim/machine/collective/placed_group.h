/* placed_group: the GPUs that run a collective together, with their places on the cluster: how they are spread over
 * nodes, PCIe switches and NICs, and the bandwidth and latency that the slowest of them has of each link. */
#ifndef DTSIM_PLACED_GROUP_H
#define DTSIM_PLACED_GROUP_H

#include <stdbool.h>

#include "topology/torus.h"

struct cluster;
struct communication;

struct group_topology {
    int most;                /* the most members of a node */
    int fewest_nics;         /* the fewest NICs that the members of a node use */
    double share;            /* share of a NIC that a member has while all send; the least of all nodes */
    bool scattered;          /* the members of a node are not next to one another */
    bool together;           /* two members of a node are below one PCIe switch */
    bool nodes;              /* the group spans several */
    double crowding;         /* how many times narrower than a NIC the topology is while all members send, */
    double narrowing;        /* and while one sends to the next; at least 1 */
};

/* The links of a node, but for the shares that stragglers' NICs have (slow_parts.h). NaN: there is no such link. */
struct node_links {
    double inside_latency, network_latency;      /* s */
    double inside_sheet, network_sheet;          /* B/s of a port, of a NIC: the data sheet's */
    double nic_rate;                 /* B/s of a NIC: its bandwidth, or the rate to which it is limited */
    double sockets;                  /* B/s that the threads of a GPU's process move to another node; INFINITY: no bound */
    double inside, network;          /* B/s of a port, of a NIC, that transfers can use: efficiency is applied */
    double switch_nics;              /* NICs of a PCIe switch, at least 1 */
    double across;                   /* B/s from one PCIe switch through host memory to another; NaN: unlimited */
};

struct placed_group {
    const struct cluster *cluster;
    int n;                           /* members */
    const int *gpus;                 /* a member: its GPU; the caller's, and not copied */
    int per_node;                    /* as in struct task */
    bool is_torus;                   /* the members are a torus of the cluster's, one a node (cluster_torus): */
    struct torus torus;
    struct group_topology topology;
    struct node_links slowest;       /* the slowest of the members' links, each for itself; 0 on the ideal cluster */
    unsigned kinds;                  /* of its nodes, bit k: kind k; 0 on the ideal cluster */
    const struct communication *communication;   /* how the library uses their links; NULL: no library */
    double mesh_share;               /* of the bandwidth inside a node, for a ring over its members
                                        (cluster_mesh_share) */
};
/* Places a group of n >= 1 members. It takes time: what runs on the same group again keeps its value. */
struct placed_group placed_group_of(const struct cluster *cluster, const int *gpus, int n);
/* The number of consecutive members from `start` on that are on one node. */
int placed_group_run(const struct placed_group *group, int start);
/* The default number of channels: the NICs that the members of a node use, of the node that uses the fewest, if the
 * members of a node are next to each other; else, and in one node, 1. */
int placed_group_channels(const struct placed_group *group);
/* B/s that the group gets of a NIC of `bandwidth` B/s while the groups of the other GPUs below its PCIe switch do the
 * same. The library's choice of NICs (communication.h, enum nic_choice) and routes through the host reduce it. */
double placed_group_nic_bandwidth(const struct placed_group *group, double bandwidth);

#endif
