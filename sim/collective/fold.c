/* Which collectives can be folded to two nodes, and which to fewer channels. collective.h says why this is exact. */
#include "collective/collective.h"

#include "hardware/cluster.h"

#include <stdlib.h>

/* Groups of GPUs that each run the collective at the same time, and where their members stand on the cluster. */
struct groups {
    const struct cluster *cluster;
    const int *gpus;         /* GPU numbers: member i of group g is gpus[g * n + i] */
    int ngroups, n;          /* groups, and members of each group */
    int per_node;            /* so many members that follow each other in a group are on one node; it divides n */
    int most;                /* nodes and leaves have smaller numbers than this: the length of tables by number */
};

static int member_node(const struct groups *groups, int i)
{
    return cluster_node_of(groups->cluster, groups->gpus[i]);
}

static int member_kind(const struct groups *groups, int i)
{
    return cluster_kind_of(groups->cluster, member_node(groups, i));
}

/* Whether every node of every group is of one kind and has its members in the same places, with NICs as fast, and the
 * first group visits each node once. */
static bool nodes_are_alike(const struct groups *groups)
{
    bool *seen = xcalloc((size_t)groups->most, sizeof *seen), alike = true;
    int kind = member_kind(groups, 0);

    for (int i = 0; i < groups->ngroups * groups->n && alike; i++) {
        int member = i % groups->n, place = member % groups->per_node;
        int like = groups->gpus[i - member + place];       /* on the group's first node */

        alike = member_node(groups, i) == member_node(groups, member - place) &&
                cluster_place_of(groups->cluster, groups->gpus[i]) == cluster_place_of(groups->cluster, like) &&
                member_kind(groups, i) == kind &&
                cluster_nic_share(groups->cluster, groups->gpus[i]) == cluster_nic_share(groups->cluster, like);
    }
    for (int i = 0; i < groups->n && alike; i += groups->per_node) {
        alike = !seen[member_node(groups, i)];
        seen[member_node(groups, i)] = true;
    }
    free(seen);
    return alike;
}

/* Some nodes of a leaf send to other leaves, some do not. This makes no difference if the leaf's uplinks carry all that
 * the NICs of the former can send. The number of nodes that receive from other leaves is the same. In a ring a node
 * sends to the next one; in other collectives any node may send to any other. */
static bool uplinks_are_wide(const struct groups *groups, bool ring)
{
    const struct cluster *cluster = groups->cluster;
    int node = member_node(groups, 0);               /* all nodes are of its kind */
    double nics = cluster_node_nics(cluster, node) * cluster_node_bandwidth(cluster, node, LINK_NIC_UP);
    double uplink = cluster_node_bandwidth(cluster, node, LINK_LEAF_UP);
    bool wide = true, one_leaf = cluster_within_leaf(cluster, groups->gpus, groups->n);
    int *leaving = xcalloc((size_t)groups->most, sizeof *leaving);

    for (int i = 0; i < groups->n && !one_leaf; i += groups->per_node) {
        int leaf = cluster_leaf_of(cluster, member_node(groups, i));
        int next = cluster_leaf_of(cluster, member_node(groups, (i + groups->per_node) % groups->n));

        if (!ring || leaf != next)
            wide = wide && ++leaving[leaf] * nics <= uplink;
    }
    free(leaving);
    return wide;
}

/* Whether the first `first` members of a node may stand for the next `first` ones, and so on: each such set of members
 * has NICs that no other member uses, shared in the same way and as fast. */
static bool places_are_alike(const struct groups *groups, int first)
{
    for (int i = 0; i < groups->per_node; i++)
        for (int k = 0; k < groups->per_node; k++) {
            const int *gpus = groups->gpus;
            bool same = cluster_nic_of(groups->cluster, gpus[i]) == cluster_nic_of(groups->cluster, gpus[k]);
            bool like = cluster_nic_of(groups->cluster, gpus[i % first]) ==
                        cluster_nic_of(groups->cluster, gpus[k % first]);

            if (same != (like && i / first == k / first))
                return false;
            if (cluster_nic_share(groups->cluster, gpus[i]) != cluster_nic_share(groups->cluster, gpus[i % first]))
                return false;
        }
    return true;
}

/* The fewest channels that load each link of their GPUs as all channels do: channel c is channel 0, c shares of a node
 * further on. Only for a single group. */
static int fewest_channels(const struct groups *groups, int channels)
{
    int share = groups->per_node / channels;

    if (groups->ngroups > 1 || groups->per_node % channels)
        return channels;
    for (int few = 1; few < channels; few++)
        if (channels % few == 0 && places_are_alike(groups, few * share))
            return few;
    return channels;
}

static bool nodes_do_the_same(const struct collective *used, int n)
{
    return used->nodes == NODES_ALIKE_OF_TWO ? (n & (n - 1)) == 0 : used->nodes != NODES_DIFFER;
}

/* Why nothing of the collective can be folded; FOLDED: nothing speaks against it. */
static enum unfolded obstacle(const struct groups *groups, const struct collective *used)
{
    if (used->op == COLLECTIVE_BROADCAST || used->op == COLLECTIVE_REDUCE)
        return UNFOLDED_ROOT;
    if (groups->n == groups->per_node)
        return UNFOLDED_WITHIN;
    if (!nodes_are_alike(groups))
        return UNFOLDED_PLACES;
    return uplinks_are_wide(groups, used->nodes == NODES_IN_RING) ? FOLDED : UNFOLDED_UPLINKS;
}

/* The nodes of the first group. */
static int count_nodes(const struct groups *groups)
{
    bool *seen = xcalloc((size_t)groups->most, sizeof *seen);
    int count = 0;

    for (int i = 0; i < groups->n; i++) {
        count += !seen[member_node(groups, i)];
        seen[member_node(groups, i)] = true;
    }
    free(seen);
    return count;
}

/* Settles members and channels, and why they are all there. */
static void choose(struct folded *folded, const struct groups *groups, const struct collective *used, int channels)
{
    enum unfolded why = obstacle(groups, used);
    int nodes = count_nodes(groups);

    *folded = (struct folded){.of_nodes = {nodes, nodes, FOLDED}, .of_channels = {channels, channels, FOLDED},
                              .n = groups->n, .channels = channels};
    if (!why && nodes_do_the_same(used, groups->n))
        folded->n = 2 * groups->per_node;
    if (!why)
        folded->channels = fewest_channels(groups, channels);
    if (folded->n < groups->n)
        folded->of_nodes.simulated = 2;
    else if (nodes > 2)
        folded->of_nodes.why = why ? why : UNFOLDED_ALGORITHM;
    folded->of_channels.simulated = folded->channels;
    if (channels > 1 && folded->channels == channels)
        folded->of_channels.why = why ? why : groups->ngroups > 1 ? UNFOLDED_SEVERAL : UNFOLDED_NICS;
}

bool collective_fold(struct folded *folded, const struct collective_call *chosen, int ngroups)
{
    const struct collective *used = chosen->collective;
    const int *gpus = chosen->group->gpus;
    int n = chosen->group->n, channels = chosen->channels;
    struct groups groups = {.cluster = chosen->group->cluster, .gpus = gpus, .ngroups = ngroups, .n = n,
                            .per_node = chosen->group->per_node};

    for (int i = 0; i < ngroups * n; i++)
        groups.most = member_node(&groups, i) >= groups.most ? member_node(&groups, i) + 1 : groups.most;
    choose(folded, &groups, used, channels);
    if (folded->n == n && folded->channels == channels)
        return false;
    int places = folded->channels < channels ? folded->channels * (groups.per_node / channels) : groups.per_node;
    folded->gpus = xcalloc((size_t)ngroups * (size_t)folded->n, sizeof *folded->gpus);
    for (int i = 0; i < ngroups * folded->n; i++) {
        int group = i / folded->n, member = i % folded->n, place = member % groups.per_node;

        folded->gpus[i] = gpus[group * n + member - place + place % places];
    }
    return true;
}
