#include "collective/placed_group.h"

#include "hardware/cluster.h"

#include <math.h>
#include <stdlib.h>

#include "base/base.h"

/* Adds the members of a node and the NICs that they use. Quadratic in the number of these members. */
static void add_node(struct placed_group *group, const int *members, int count)
{
    const struct cluster *cluster = group->cluster;
    struct group_topology *topology = &group->topology;
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

static struct node_links node_links_of(const struct cluster *cluster, int node)
{
    return (struct node_links){
        .inside_latency = cluster_latency(cluster, node, true),
        .network_latency = cluster_latency(cluster, node, false),
        .inside_sheet = cluster_bandwidth(cluster, node, true),
        .network_sheet = cluster_nic_sheet(cluster, node),
        .nic_rate = cluster_nic_rate(cluster, node), .sockets = cluster_sockets(cluster, node),
        .inside = cluster_node_bandwidth(cluster, node, LINK_PORT_UP),
        .network = cluster_node_bandwidth(cluster, node, LINK_NIC_UP),
        .switch_nics = cluster_switch_nics(cluster, node), .across = cluster_across(cluster, node),
    };
}

/* fmin and fmax ignore NaN: a node without such a link holds nobody up. */
static struct node_links slower(struct node_links a, struct node_links b)
{
    return (struct node_links){
        .inside_latency = fmax(a.inside_latency, b.inside_latency),
        .network_latency = fmax(a.network_latency, b.network_latency),
        .inside_sheet = fmin(a.inside_sheet, b.inside_sheet), .network_sheet = fmin(a.network_sheet, b.network_sheet),
        .nic_rate = fmin(a.nic_rate, b.nic_rate), .sockets = fmin(a.sockets, b.sockets),
        .inside = fmin(a.inside, b.inside), .network = fmin(a.network, b.network),
        .switch_nics = fmax(a.switch_nics, b.switch_nics), .across = fmin(a.across, b.across),
    };
}

/* Nodes are numbered from the group's lowest one. */
static void find_topology(struct placed_group *group)
{
    const struct cluster *cluster = group->cluster;
    struct group_topology *topology = &group->topology;
    int home = cluster_node_of(cluster, group->gpus[0]), low = home, high = home;
    int *node = xcalloc((size_t)group->n, sizeof *node), *next = xcalloc((size_t)group->n, sizeof *next);

    for (int i = 0; i < group->n; i++) {
        node[i] = cluster_node_of(cluster, group->gpus[i]);
        low = node[i] < low ? node[i] : low;
        high = node[i] > high ? node[i] : high;
        topology->crowding = fmax(topology->crowding, cluster_crowding(cluster, group->gpus[0], group->gpus[i]));
        if (cluster_leaf_of(cluster, node[i]) != cluster_leaf_of(cluster, node[i ? i - 1 : 0]))
            topology->narrowing = fmax(topology->narrowing,
                                       cluster_narrowing(cluster, group->gpus[i - 1], group->gpus[i]));
    }
    topology->nodes = low != high;
    group->slowest = node_links_of(cluster, low);
    group->kinds = 1u << cluster_kind_of(cluster, low);
    /* lists of the members of each node, numbered from 1 */
    size_t span = (size_t)(high - low) + 1;
    int *first = xcalloc(span, sizeof *first), *last = xcalloc(span, sizeof *last);
    int *members = xcalloc((size_t)group->n, sizeof *members);

    for (int i = 0; i < group->n; i++) {
        int *end = &last[node[i] - low];

        *(*end ? &next[*end - 1] : &first[node[i] - low]) = i + 1;
        *end = i + 1;
    }
    for (int i = 0; i <= high - low; i++) {
        int count = 0;

        for (int member = first[i]; member; member = next[member - 1])
            members[count++] = member - 1;
        if (count)
            add_node(group, members, count);
        if (count && i) {
            group->slowest = slower(group->slowest, node_links_of(cluster, low + i));
            group->kinds |= 1u << cluster_kind_of(cluster, low + i);
        }
    }
    free(node);
    free(next);
    free(members);
    free(last);
    free(first);
}

int placed_group_run(const struct placed_group *group, int start)
{
    int node = cluster_node_of(group->cluster, group->gpus[start]), end = start + 1;

    while (end < group->n && cluster_node_of(group->cluster, group->gpus[end]) == node)
        end++;
    return end - start;
}

static int find_per_node(const struct placed_group *group)
{
    int length = placed_group_run(group, 0);

    for (int start = length; start < group->n; start += length)
        if (placed_group_run(group, start) != length)
            return 1;
    return length;
}

struct placed_group placed_group_of(const struct cluster *cluster, const int *gpus, int n)
{
    struct placed_group group = {.cluster = cluster, .n = n, .gpus = gpus, .topology = {.share = 1, .crowding = 1, .narrowing = 1}, .mesh_share = 1};

    group.per_node = find_per_node(&group);
    group.is_torus = cluster_torus(cluster, gpus, n, &group.torus);
    if (cluster->ideal)
        return group;
    find_topology(&group);
    group.communication = cluster_communication(cluster, group.kinds);
    for (int kind = 0; group.kinds >> kind; kind++)
        if (group.kinds >> kind & 1)
            group.mesh_share = fmin(group.mesh_share, cluster_mesh_share(cluster, kind, group.topology.most));
    return group;
}

/* The number of NICs that the members of a run use. */
static int run_nics(const struct placed_group *group, int start, int length)
{
    const struct cluster *cluster = group->cluster;
    int nics = 0;

    for (int i = start; i < start + length; i++) {
        int nic = cluster_nic_of(cluster, group->gpus[i]), seen = start;

        while (seen < i && cluster_nic_of(cluster, group->gpus[seen]) != nic)
            seen++;
        nics += seen == i;
    }
    return nics;
}

/* Whether a run from `start` on is on the node of a run before it. */
static bool comes_again(const struct placed_group *group, int start)
{
    int node = cluster_node_of(group->cluster, group->gpus[start]);

    for (int before = 0; before < start; before += placed_group_run(group, before))
        if (cluster_node_of(group->cluster, group->gpus[before]) == node)
            return true;
    return false;
}

int placed_group_channels(const struct placed_group *group)
{
    int length = placed_group_run(group, 0), first = length, nics = run_nics(group, 0, length);
    bool unequal = false;

    if (length == group->n)
        return 1;
    for (int start = 0; start < group->n; start += length) {
        int own;

        length = placed_group_run(group, start);
        unequal |= length != first;
        own = run_nics(group, start, length);
        nics = own < nics ? own : nics;
    }
    for (int start = 0; unequal && start < group->n; start += placed_group_run(group, start))
        if (comes_again(group, start))
            return 1;                                /* its NICs would serve twice */
    return nics;
}

/* A group with two GPUs below a switch enters a node through one of them and leaves it through the other, by a NIC that
 * no other such group uses. Any other group shares links with the groups of the GPUs next to its own: the NIC, if all
 * groups use the first one; the route through the host, back to the NIC through which the data came. */
double placed_group_nic_bandwidth(const struct placed_group *group, double bandwidth)
{
    const struct communication *communication = group->communication;
    int choice = communication ? communication->nics : NICS_OWN;
    double nics = group->slowest.switch_nics;

    if (choice == NICS_OWN || group->topology.together)
        return bandwidth;
    if (choice == NICS_FIRST)
        bandwidth /= nics;
    if (group->topology.most > 1)
        bandwidth = fmin(bandwidth, group->slowest.across / nics);       /* fmin ignores NaN */
    return bandwidth;
}
