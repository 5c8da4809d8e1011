#include "collective/group_topology.h"

#include <math.h>
#include <stdlib.h>

/* Adds the members of a node and the NICs that they use. Quadratic in the number of these members. */
static void add_node(const struct cluster *cluster, const struct group *group, const int *members, int count,
                     struct group_topology *topology)
{
    int nics = 0;

    for (int i = 0; i < count; i++) {
        int gpu = group->gpus[members[i]], nic = cluster_nic_of(cluster, gpu), seen = 0;

        while (seen < i && cluster_nic_of(cluster, group->gpus[members[seen]]) != nic)
            seen++;
        nics += seen == i;
        for (int k = 0; k < i && !topology->together; k++)
            topology->together = cluster_share_switch(cluster, group->gpus[members[k]], gpu);
        topology->scattered |= members[i] != members[0] + i;
    }
    topology->most = count > topology->most ? count : topology->most;
    if (!topology->fewest_nics || nics < topology->fewest_nics)
        topology->fewest_nics = nics;
    topology->share = fmin(topology->share, (double)nics / count);
}

struct group_topology group_topology_of(const struct cluster *cluster, const struct group *group)
{
    struct group_topology topology = {.share = 1};
    int *next = xcalloc((size_t)group->n, sizeof *next), *members = xcalloc((size_t)group->n, sizeof *members);
    int *last = xcalloc((size_t)cluster->nodes, sizeof *last), *first = xcalloc((size_t)cluster->nodes, sizeof *first);
    int home = cluster_node_of(cluster, group->gpus[0]);

    /* lists of the members of each node, numbered from 1 */
    for (int i = 0; i < group->n; i++) {
        int node = cluster_node_of(cluster, group->gpus[i]);

        *(last[node] ? &next[last[node] - 1] : &first[node]) = i + 1;
        last[node] = i + 1;
        topology.nodes |= node != home;
        topology.leaves |= cluster_leaf_of(cluster, node) != cluster_leaf_of(cluster, home);
    }
    for (int node = 0; node < cluster->nodes; node++) {
        int count = 0;

        for (int i = first[node]; i; i = next[i - 1])
            members[count++] = i - 1;
        if (count)
            add_node(cluster, group, members, count, &topology);
    }
    free(next);
    free(members);
    free(last);
    free(first);
    return topology;
}

/* A group with two GPUs below a switch enters a node through one of them and leaves it through the other, by a NIC that
 * no other such group uses. Any other group shares links with the groups of the GPUs next to its own: the NIC, if all
 * groups use the first one; the route through the host, back to the NIC through which the data came. */
double group_topology_nic_bandwidth(const struct group_topology *topology, const struct cluster *cluster,
                                    double bandwidth)
{
    int choice = cluster->communication ? cluster->communication->nics : NICS_OWN;
    double nics = cluster_switch_nics(cluster, 0);

    if (choice == NICS_OWN || topology->together)
        return bandwidth;
    if (choice == NICS_FIRST)
        bandwidth /= nics;
    if (topology->most > 1)
        bandwidth = fmin(bandwidth, cluster_across(cluster, 0) / nics);        /* fmin ignores NaN */
    return bandwidth;
}
