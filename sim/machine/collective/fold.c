/* Which collectives can be folded to two nodes, and which to fewer channels. collective.h says why this is exact. */
#include "collective/collective.h"

#include "hardware/cluster.h"

#include <stdlib.h>

#include "base/base.h"

/* Groups of GPUs that each run the collective at the same time, and where their members stand on the cluster. */
struct groups {
    const struct cluster *cluster;
    const int *gpus;         /* GPU numbers: member i of group g is gpus[g * n + i] */
    int ngroups, n;          /* groups, and members of each group */
    int per_node;            /* this number of consecutive members of a group is on one node; it divides n */
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

/* The member whose node is the farthest from the first one. */
static int farthest(const struct groups *groups)
{
    int member = 0, most = 0;

    for (int i = groups->per_node; i < groups->n; i += groups->per_node) {
        int links = cluster_route(groups->cluster, groups->gpus[0], groups->gpus[i]).count;

        member = links > most ? i : member;
        most = links > most ? links : most;
    }
    return member;
}

/* Adds what the NICs of a node send along the route, or up the tree alone, to the topology's links. Whether they carry
 * it. */
static bool carry(const struct cluster *cluster, const struct route *route, double nics, bool up, double *sent)
{
    int last = route->count - 1;
    bool wide = true;

    for (int hop = 0; hop < (up ? route->count / 2 : last); hop++) {
        struct link link = route->links[hop];

        if (link.kind == LINK_BETWEEN)
            wide = wide && (sent[link.index] += nics) <= cluster_link_bandwidth(cluster, link);
    }
    return wide;
}

/* Some nodes send by links of the topology, some do not. This makes no difference if these links carry all that the NICs
 * of the former can send, and take no longer. In a ring a node sends to the next one; in other collectives any node may
 * send to any other, and in a tree no way leads higher than to the farthest. */
static bool uplinks_are_wide(const struct groups *groups, bool ring)
{
    const struct cluster *cluster = groups->cluster;
    const int *gpus = groups->gpus;
    int node = member_node(groups, 0), n = groups->n, far;       /* all nodes are of its kind */
    double nics = cluster_node_nics(cluster, node) * cluster_node_bandwidth(cluster, node, LINK_NIC_UP);

    if (cluster_within_leaf(cluster, gpus, n))
        return true;
    if (!ring && !cluster_is_tree(cluster))
        return false;
    far = farthest(groups);
    struct route longest = cluster_route(cluster, gpus[0], gpus[far]);
    bool wide = true;
    double *sent = xcalloc((size_t)cluster_between_links(cluster) + 1, sizeof *sent);

    for (int i = 0; i < n && wide; i += groups->per_node) {
        struct route next = cluster_route(cluster, gpus[i], gpus[(i + groups->per_node) % n]), up = next;

        wide = next.latency == longest.latency;
        if (!ring && i != far)
            up = cluster_route(cluster, gpus[i], gpus[far]);
        if (!ring && (i == far || (i && up.count < longest.count)))
            up = cluster_route(cluster, gpus[i], gpus[0]);
        wide = wide && carry(cluster, &up, nics, !ring, sent);
    }
    free(sent);
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

/* Whether the way between two nodes is the same for all of their GPUs. */
static bool ways_are_of_nodes(const struct cluster *cluster)
{
    enum topology_kind kind = cluster_topology(cluster);

    return kind != TOPOLOGY_RAIL && kind != TOPOLOGY_XML;
}

static bool nodes_do_the_same(const struct collective *used, int n)
{
    return used->nodes == NODES_ALIKE_OF_TWO ? (n & (n - 1)) == 0 :
           used->nodes == NODES_ALIKE || used->nodes == NODES_IN_RING;
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

/* The few nodes that stand for the torus of a single group. */
static void choose_torus(struct folded *folded, const struct groups *groups, const struct torus *torus)
{
    int few = 1;

    if (groups->ngroups > 1 || !nodes_are_alike(groups) || cluster_nic_share(groups->cluster, groups->gpus[0]) < 1)
        return;
    folded->torus = *torus;
    for (int k = 0; k < torus->dims; k++) {
        folded->torus.size[k] = torus->size[k] < TORUS_FEW ? torus->size[k] : TORUS_FEW;
        few *= folded->torus.size[k];
    }
    folded->n = folded->of_nodes.simulated = few;
}

/* Settles members and channels, and why they are all there. */
static void choose(struct folded *folded, const struct groups *groups, const struct collective_call *chosen)
{
    const struct collective *used = chosen->collective;
    enum unfolded why = obstacle(groups, used);
    int nodes = count_nodes(groups), channels = chosen->channels;
    bool ways = ways_are_of_nodes(groups->cluster);

    *folded = (struct folded){.of_nodes = {nodes, nodes, FOLDED}, .of_channels = {channels, channels, FOLDED},
                              .n = groups->n, .channels = channels};
    if (used->nodes == NODES_IN_TORUS)
        choose_torus(folded, groups, &chosen->group->torus);
    if (!why && nodes_do_the_same(used, groups->n))
        folded->n = 2 * groups->per_node;
    if ((!why || why == UNFOLDED_UPLINKS) && ways && !folded->torus.dims)
        folded->channels = fewest_channels(groups, channels);
    if (folded->n < groups->n && !folded->torus.dims)
        folded->of_nodes.simulated = 2;
    else if (nodes > 2 && folded->n == groups->n)
        folded->of_nodes.why = why ? why : UNFOLDED_ALGORITHM;
    folded->of_channels.simulated = folded->channels;
    if (channels > 1 && folded->channels == channels)
        folded->of_channels.why = why && why != UNFOLDED_UPLINKS ? why : !ways ? UNFOLDED_PLACES :
                                  groups->ngroups > 1 ? UNFOLDED_SEVERAL : UNFOLDED_NICS;
}

/* The GPUs of the few members. */
static void choose_gpus(struct folded *folded, const struct groups *groups, int channels)
{
    const int *gpus = groups->gpus;
    int places = folded->channels < channels ? folded->channels * (groups->per_node / channels) : groups->per_node;

    folded->gpus = xcalloc((size_t)groups->ngroups * (size_t)folded->n, sizeof *folded->gpus);
    for (int i = 0; i < groups->ngroups * folded->n; i++) {
        int group = i / folded->n, member = i % folded->n, place = member % groups->per_node;

        folded->gpus[i] = folded->torus.dims ?
                              cluster_node_gpu(folded->cluster, i, cluster_place_of(groups->cluster, gpus[0])) :
                              gpus[group * groups->n + member - place + place % places];
    }
}

bool collective_fold(struct folded *folded, const struct collective_call *chosen, int ngroups)
{
    const struct placed_group *group = chosen->group;
    struct groups groups = {.cluster = group->cluster, .gpus = group->gpus, .ngroups = ngroups, .n = group->n,
                            .per_node = group->per_node};

    for (int i = 0; i < ngroups * group->n; i++)
        groups.most = member_node(&groups, i) >= groups.most ? member_node(&groups, i) + 1 : groups.most;
    choose(folded, &groups, chosen);
    if (folded->n == group->n && folded->channels == chosen->channels)
        return false;
    folded->cluster = xcalloc(1, sizeof *folded->cluster);
    *folded->cluster = cluster_folded(groups.cluster, (double)chosen->channels / folded->channels, &folded->torus,
                                      member_node(&groups, 0));
    choose_gpus(folded, &groups, chosen->channels);
    return true;
}

void folded_release(struct folded *folded)
{
    free(folded->gpus);
    free(folded->cluster);
}
