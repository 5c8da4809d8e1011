/* Which rings can be folded to two nodes, and to which number of channels. collective.h says why this is exact. */
#include "collective/collective.h"

#include "hardware/cluster.h"

#include <stdlib.h>
#include <string.h>

/* Groups of GPUs that each run a ring at the same time, and where their members stand on the cluster. */
struct ring {
    const struct cluster *cluster;
    const int *gpus;         /* GPU numbers: member i of group g is gpus[g * n + i]; member i sends to member i + 1 */
    int ngroups, n;          /* groups, and members of each group */
    int per_node;            /* so many members that follow each other in a group are on one node; it divides n */
    int most;                /* nodes and leaves have smaller numbers than this: the length of tables by number */
};

static int member_node(const struct ring *ring, int i)
{
    return cluster_node_of(ring->cluster, ring->gpus[i]);
}

/* Whether every node of every group has its members in the same places, with NICs as fast, and the first group visits
 * each node once. */
static bool nodes_are_alike(const struct ring *ring)
{
    bool *seen = xcalloc((size_t)ring->most, sizeof *seen), alike = true;
    int gpus_per_node = ring->cluster->gpus_per_node;

    for (int i = 0; i < ring->ngroups * ring->n && alike; i++) {
        int member = i % ring->n, place = member % ring->per_node;
        int like = ring->gpus[i - member + place];       /* on the group's first node */

        alike = member_node(ring, i) == member_node(ring, member - place) &&
                ring->gpus[i] % gpus_per_node == like % gpus_per_node &&
                cluster_nic_share(ring->cluster, ring->gpus[i]) == cluster_nic_share(ring->cluster, like);
    }
    for (int i = 0; i < ring->n && alike; i += ring->per_node) {
        alike = !seen[member_node(ring, i)];
        seen[member_node(ring, i)] = true;
    }
    free(seen);
    return alike;
}

/* Some nodes of a leaf send to other leaves, some do not. This makes no difference if the leaf's uplinks carry all that
 * the NICs of the former can send. The number of nodes that receive from other leaves is the same. */
static bool uplinks_are_wide(const struct ring *ring)
{
    const struct cluster *cluster = ring->cluster;
    double nics = cluster->network.nics * cluster_usual_bandwidth(cluster, LINK_NIC_UP);
    int *leaving = xcalloc((size_t)ring->most, sizeof *leaving);
    bool wide = true;

    for (int i = 0; i < ring->n; i += ring->per_node) {
        int leaf = cluster_leaf_of(cluster, member_node(ring, i));
        int next = cluster_leaf_of(cluster, member_node(ring, (i + ring->per_node) % ring->n));

        if (leaf != next)
            wide = wide && ++leaving[leaf] * nics <= cluster_usual_bandwidth(cluster, LINK_LEAF_UP);
    }
    free(leaving);
    return wide;
}

/* Whether the first `first` members of a node may stand for the next `first` ones, and so on: each such set of members
 * has NICs that no other member uses, shared in the same way and as fast. */
static bool places_are_alike(const struct ring *ring, int first)
{
    for (int i = 0; i < ring->per_node; i++)
        for (int k = 0; k < ring->per_node; k++) {
            const int *gpus = ring->gpus;
            bool same = cluster_nic_of(ring->cluster, gpus[i]) == cluster_nic_of(ring->cluster, gpus[k]);
            bool like = cluster_nic_of(ring->cluster, gpus[i % first]) ==
                        cluster_nic_of(ring->cluster, gpus[k % first]);

            if (same != (like && i / first == k / first))
                return false;
            if (cluster_nic_share(ring->cluster, gpus[i]) != cluster_nic_share(ring->cluster, gpus[i % first]))
                return false;
        }
    return true;
}

/* The fewest channels that load each link of their GPUs as all channels do: channel c is channel 0, c shares of a node
 * further on. Only for a single group. Neighbours in the ring must be two GPUs. */
static int fewest_channels(const struct ring *ring, int channels)
{
    int share = ring->per_node / channels;

    if (ring->ngroups > 1 || ring->per_node % channels)
        return channels;
    for (int few = 1; few < channels; few++)
        if (channels % few == 0 && few * share > 1 && places_are_alike(ring, few * share))
            return few;
    return channels;
}

bool collective_fold_ring(struct folded_ring *folded, const struct collective *used, const struct cluster *cluster,
                          const int *gpus, int ngroups, int n, int channels)
{
    struct ring ring = {.cluster = cluster, .gpus = gpus, .ngroups = ngroups, .n = n};
    int nodes;

    ring.per_node = collective_per_node(cluster, &(struct group){.n = n, .gpus = gpus});
    nodes = n / ring.per_node;
    for (int i = 0; i < ngroups * n; i++)
        ring.most = member_node(&ring, i) >= ring.most ? member_node(&ring, i) + 1 : ring.most;
    if (!used->ring || nodes < 2 || !nodes_are_alike(&ring) || !uplinks_are_wide(&ring))
        return false;
    *folded = (struct folded_ring){.n = 2 * ring.per_node, .channels = fewest_channels(&ring, channels)};
    if (folded->n == n && folded->channels == channels)
        return false;
    int places = folded->channels < channels ? folded->channels * (ring.per_node / channels) : ring.per_node;
    folded->gpus = xcalloc((size_t)ngroups * (size_t)folded->n, sizeof *folded->gpus);
    for (int i = 0; i < ngroups * folded->n; i++) {
        int group = i / folded->n, member = i % folded->n, place = member % ring.per_node;

        folded->gpus[i] = gpus[group * n + member - place + place % places];
    }
    return true;
}
