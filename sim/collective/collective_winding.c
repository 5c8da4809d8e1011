/* Which rings can be wound up on two nodes (collective.h says why that is exact), and on how few channels. */
#include "collective/collective.h"

#include "hardware/cluster.h"

#include <stdlib.h>
#include <string.h>

/* The groups on the cluster; the first stands for the nodes of all. */
struct seats {
    const struct cluster *cluster;
    const int *gpus;
    int ngroups, n;
    int per_node;            /* members of a group that follow one another on a node */
    int most;                /* more than any node's or leaf's number */
};

static int seats_node(const struct seats *seats, int i)
{
    return cluster_node_of(seats->cluster, seats->gpus[i]);
}

/* Every group goes through the same nodes in the same order, each of them once, and sits on each in the same places. */
static bool nodes_are_alike(const struct seats *seats)
{
    bool *seen = xcalloc((size_t)seats->most, sizeof *seen), alike = true;
    int gpus_per_node = seats->cluster->gpus_per_node;

    for (int i = 0; i < seats->ngroups * seats->n && alike; i++) {
        int member = i % seats->n, place = member % seats->per_node;
        int like = seats->gpus[i - member + place];      /* on the group's first node */

        alike = seats_node(seats, i) == seats_node(seats, member - place) &&
                seats->gpus[i] % gpus_per_node == like % gpus_per_node;
    }
    for (int i = 0; i < seats->n && alike; i += seats->per_node) {
        alike = !seen[seats_node(seats, i)];
        seen[seats_node(seats, i)] = true;
    }
    free(seen);
    return alike;
}

/* Not all nodes of a leaf send to other leaves. That makes no difference where the leaf's uplinks carry all that the
 * NICs of those that do can send. As many nodes are sent to from other leaves. */
static bool uplinks_are_wide(const struct seats *seats)
{
    const struct cluster *cluster = seats->cluster;
    double nics = cluster->network.nics * cluster_link_bandwidth(cluster, LINK_NIC_UP);
    int *leaving = xcalloc((size_t)seats->most, sizeof *leaving);
    bool wide = true;

    for (int i = 0; i < seats->n; i += seats->per_node) {
        int leaf = cluster_leaf_of(cluster, seats_node(seats, i));
        int next = cluster_leaf_of(cluster, seats_node(seats, (i + seats->per_node) % seats->n));

        if (leaf != next)
            wide = wide && ++leaving[leaf] * nics <= cluster_link_bandwidth(cluster, LINK_LEAF_UP);
    }
    free(leaving);
    return wide;
}

/* Whether member i of a node may stand for member i + `first`, and so on round the node: the first few have NICs that
 * nobody else uses, and each few after them likewise. */
static bool places_are_alike(const struct seats *seats, int first)
{
    for (int i = 0; i < seats->per_node; i++)
        for (int k = 0; k < seats->per_node; k++) {
            const int *gpus = seats->gpus;
            bool same = cluster_nic_of(seats->cluster, gpus[i]) == cluster_nic_of(seats->cluster, gpus[k]);
            bool like = cluster_nic_of(seats->cluster, gpus[i % first]) ==
                        cluster_nic_of(seats->cluster, gpus[k % first]);

            if (same != (like && i / first == k / first))
                return false;
        }
    return true;
}

/* The fewest channels that load each link of their GPUs as all do: channel c is channel 0, c shares of a node further
 * on. Only of a group by itself; and neighbours in the ring must be two GPUs. */
static int fewest_channels(const struct seats *seats, int channels)
{
    int share = seats->per_node / channels;

    if (seats->ngroups > 1 || seats->per_node % channels)
        return channels;
    for (int few = 1; few < channels; few++)
        if (channels % few == 0 && few * share > 1 && places_are_alike(seats, few * share))
            return few;
    return channels;
}

bool collective_wind(struct winding *winding, const struct collective *used, const struct cluster *cluster,
                     const int *gpus, int ngroups, int n, int channels)
{
    struct seats seats = {.cluster = cluster, .gpus = gpus, .ngroups = ngroups, .n = n};
    int nodes;

    seats.per_node = collective_per_node(cluster, &(struct group){.n = n, .gpus = gpus});
    nodes = n / seats.per_node;
    for (int i = 0; i < ngroups * n; i++)
        seats.most = seats_node(&seats, i) >= seats.most ? seats_node(&seats, i) + 1 : seats.most;
    if (!used->ring || nodes < 2 || !nodes_are_alike(&seats) || !uplinks_are_wide(&seats))
        return false;
    *winding = (struct winding){.n = 2 * seats.per_node, .channels = fewest_channels(&seats, channels)};
    if (winding->n == n && winding->channels == channels)
        return false;
    int places = winding->channels < channels ? winding->channels * (seats.per_node / channels) : seats.per_node;
    winding->gpus = xcalloc((size_t)ngroups * (size_t)winding->n, sizeof *winding->gpus);
    for (int i = 0; i < ngroups * winding->n; i++) {
        int group = i / winding->n, member = i % winding->n, place = member % seats.per_node;

        winding->gpus[i] = gpus[group * n + member - place + place % places];
    }
    return true;
}
