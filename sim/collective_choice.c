/* What collectives are estimated to cost on a cluster, by their own formulas, and which of them is the cheapest. */
#include "collective.h"

#include "cluster.h"

#include <math.h>
#include <stdlib.h>

/* How the members of a group sit on nodes and NICs. */
struct seating {
    int most;                /* members of a node, at most */
    int fewest_nics;         /* that the members of a node use; those of the node with the fewest */
    double share;            /* of a NIC that a member has where all send; that of the node with the least */
    bool scattered;          /* the members of a node are not next to one another */
    bool nodes, leaves;      /* the group spans several */
};

/* Members from the first on a node: how many are on it, and how many NICs they use. Quadratic in what a node holds. */
static void seat_node(const struct cluster *cluster, const struct group *group, const int *seats, int count,
                      struct seating *seating)
{
    int nics = 0;

    for (int i = 0; i < count; i++) {
        int nic = cluster_nic_of(cluster, group->gpus[seats[i]]), seen = 0;

        while (seen < i && cluster_nic_of(cluster, group->gpus[seats[seen]]) != nic)
            seen++;
        nics += seen == i;
        seating->scattered |= seats[i] != seats[0] + i;
    }
    seating->most = count > seating->most ? count : seating->most;
    if (!seating->fewest_nics || nics < seating->fewest_nics)
        seating->fewest_nics = nics;
    seating->share = fmin(seating->share, (double)nics / count);
}

static struct seating seat(const struct cluster *cluster, const struct group *group)
{
    struct seating seating = {.share = 1};
    int *next = xcalloc((size_t)group->n, sizeof *next), *seats = xcalloc((size_t)group->n, sizeof *seats);
    int *last = xcalloc((size_t)cluster->nodes, sizeof *last), *first = xcalloc((size_t)cluster->nodes, sizeof *first);
    int home = cluster_node_of(cluster, group->gpus[0]);

    /* lists of the members of each node, numbered from 1 */
    for (int i = 0; i < group->n; i++) {
        int node = cluster_node_of(cluster, group->gpus[i]);

        *(last[node] ? &next[last[node] - 1] : &first[node]) = i + 1;
        last[node] = i + 1;
        seating.nodes |= node != home;
        seating.leaves |= cluster_leaf_of(cluster, node) != cluster_leaf_of(cluster, home);
    }
    for (int node = 0; node < cluster->nodes; node++) {
        int count = 0;

        for (int i = first[node]; i; i = next[i - 1])
            seats[count++] = i - 1;
        if (count)
            seat_node(cluster, group, seats, count, &seating);
    }
    free(next);
    free(seats);
    free(last);
    free(first);
    return seating;
}

static struct fabric fabric_of(const struct cluster *cluster, const struct group *group, int channels)
{
    struct hop inside = {0, INFINITY}, between = inside, crowded = inside;
    struct seating seating;

    if (cluster->ideal)
        return (struct fabric){inside, between, crowded};
    seating = seat(cluster, group);
    if (seating.most > 1)
        inside = (struct hop){cluster->inside.latency, cluster_link_bandwidth(cluster, LINK_PORT_UP) / channels};
    if (!seating.nodes)
        return (struct fabric){inside, inside, inside};
    double nic = cluster_link_bandwidth(cluster, LINK_NIC_UP);
    between = crowded = (struct hop){cluster->network.latency, nic * fmin(1, (double)seating.fewest_nics / channels)};
    crowded.bandwidth = nic * seating.share / channels;
    if (seating.leaves)
        crowded.bandwidth /= cluster->network.topology.oversubscription;
    if (seating.scattered)
        between = crowded;
    return (struct fabric){seating.most > 1 ? inside : between, between, crowded};
}

static int channels_of(const struct collective *collective, int channels)
{
    return collective->every_nic ? 1 : channels;
}

double collective_cost(const struct collective *collective, const struct cluster *cluster, const struct group *group,
                       double bytes, int channels)
{
    int used = channels_of(collective, channels);
    struct task task = {group->n, collective_per_node(cluster, group), bytes / used};
    struct fabric fabric = fabric_of(cluster, group, used);
    struct hop far = collective->crowds ? fabric.crowded : fabric.between;

    if (collective->cost)
        return collective->cost(&task, &fabric);
    return collective->ideal(&task, fmax(fabric.inside.latency, far.latency),
                             fmin(fabric.inside.bandwidth, far.bandwidth));
}

const struct collective *collective_choose(const struct collective *collective, const struct cluster *cluster,
                                           const struct group *group, double bytes, int *channels)
{
    const struct collective *best = NULL, *candidate;
    double least = INFINITY;

    if (collective->draw)
        best = collective;
    for (size_t i = 0; !collective->draw && (candidate = collective_of(collective->op, i)); i++) {
        double cost = candidate->draw ? collective_cost(candidate, cluster, group, bytes, *channels) : INFINITY;

        if (cost < least || (!best && candidate->draw)) {
            best = candidate;
            least = cost;
        }
    }
    *channels = channels_of(best, *channels);
    return best;
}
