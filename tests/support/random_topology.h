/* random_topology: a topology of each kind, by a number; a cluster gets as many nodes as its topology has. */
#ifndef DTSIM_TEST_RANDOM_TOPOLOGY_H
#define DTSIM_TEST_RANDOM_TOPOLOGY_H

#include "hardware/cluster.h"

#include <math.h>

enum { RANDOM_TOPOLOGIES = 12, MOST_LINKS_BETWEEN = 512 };

/* B/s and s are of the cluster's own NICs and network. */
static inline void random_topology(struct cluster *cluster, int number)
{
    static struct level two[] = {{.leaf_nodes = 2, .oversubscription = 1.5, .bandwidth = NAN},
                                 {.units = 2, .oversubscription = 3, .bandwidth = NAN}};
    static struct level three[] = {{.leaf_nodes = 1, .oversubscription = 2, .bandwidth = NAN},
                                   {.units = 2, .oversubscription = 1, .bandwidth = NAN},
                                   {.units = 2, .oversubscription = 4, .bandwidth = NAN}};
    static struct level sites[] = {{.name = "site", .leaf_nodes = 3, .oversubscription = 1, .bandwidth = 4e7,
                                    .latency = 1e-4}};
    static int square[] = {2, 3}, cube[] = {2, 2, 2}, ring[] = {7};
    double nic = cluster->kinds[0].nics.bandwidth, efficiency = cluster->kinds[0].nics.efficiency;
    struct topology *topology = &cluster->network.topology;

    *topology = (struct topology){.oversubscription = 1 + number % 5 * 0.7, .link = NAN, .global_link = NAN};
    switch (number) {
    case 0: return;
    case 1: case 2:
        topology->kind = TOPOLOGY_LEAF_SPINE;
        topology->leaf_nodes = number;
        return;
    case 3: case 4: case 5:
        sites[0].latency = 1e-4;
        topology->kind = TOPOLOGY_LEVELS;
        topology->levels = number == 3 ? (struct list){two, 2, NULL}
                                       : number == 4 ? (struct list){three, 3, NULL} : (struct list){sites, 1, NULL};
        return;
    case 6: case 7:
        topology->kind = TOPOLOGY_RAIL;
        topology->unit_nodes = number == 6 ? 2 : 0;
        topology->across_rails = number == 6 && cluster->kinds[0].gpus > 1 ? ACROSS_NVLINK : ACROSS_SPINE;
        return;
    case 8: case 9: case 10:
        topology->kind = TOPOLOGY_TORUS;
        topology->dims = number == 8 ? (struct list){square, 2, NULL}
                                     : number == 9 ? (struct list){cube, 3, NULL} : (struct list){ring, 1, NULL};
        topology->wraps = number != 9;
        topology->link = number == 8 ? nic * 0.4 / efficiency : NAN;
        topology->hop_time = number == 9 ? 2e-5 : 0;
        cluster->nodes = number == 8 ? 6 : number == 9 ? 8 : 7;
        return;
    default:
        topology->kind = TOPOLOGY_DRAGONFLY;
        topology->groups = 3;
        topology->routers = 2;
        topology->nodes_per_router = topology->global_links = 1;
        topology->routing = cluster->kinds[0].gpus % 2 ? ROUTING_MINIMAL : ROUTING_VALIANT;
        topology->link = nic * 0.6;
        cluster->nodes = 6;
    }
}

/* Doubles the latencies of a random topology, of the last one that was drawn. */
static inline void random_topology_slower(struct cluster *cluster)
{
    struct topology *topology = &cluster->network.topology;

    topology->hop_time *= 2;
    for (size_t k = 0; k < topology->levels.count; k++)
        ((struct level *)topology->levels.items)[k].latency *= 2;
}

#endif
