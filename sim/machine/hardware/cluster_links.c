/* The links of a cluster: what each carries, how long a message takes on it, its name. Two parts may have links of
 * their own. Of the topology: its kind and its leaves. */
#include "hardware/cluster.h"

#include <math.h>

#include "base/base.h"
#include "topology/topology.h"

/* B/s of a single NIC of the node: its bandwidth, or the rate to which it is limited. */
static double one_nic_rate(const struct cluster *cluster, int node)
{
    double bandwidth = cluster_bandwidth(cluster, node, false), limit = cluster_nic_limit(cluster, node);

    return limit > 0 ? fmin(bandwidth, limit) : bandwidth;
}

struct topology_of cluster_topology_of(const struct cluster *cluster)
{
    int nics = 0;

    for (int part = 0; part < cluster_parts(cluster); part++) {
        int own = cluster_node_nics(cluster, cluster->parts[part].first);

        nics = own > nics ? own : nics;
    }
    return (struct topology_of){&cluster->network.topology, cluster->nodes, nics};
}

const struct part_pair *cluster_pair_of(const struct cluster *cluster, int node, int to)
{
    if (!cluster->between.count)
        return NULL;
    int one = cluster_given_part_of(cluster, node), other = cluster_given_part_of(cluster, to);

    for (int i = 0; i < cluster->between.count; i++) {
        const struct part_pair *pair = &cluster->between.pairs[i];

        if ((pair->one == one && pair->other == other) || (pair->one == other && pair->other == one))
            return pair;
    }
    return NULL;
}

/* The pair of parts that a link behind the topology's links connects; NULL: the link belongs to the topology. *back: it
 * leads from the latter part. */
static const struct part_pair *pair_link(const struct cluster *cluster, int index, bool *back)
{
    if (!cluster->between.count)
        return NULL;
    int own = index - (cluster_between_links(cluster) - 2 * cluster->between.count);

    *back = own % 2;
    return own >= 0 ? &cluster->between.pairs[own / 2] : NULL;
}

int cluster_pair_index(const struct cluster *cluster, const struct part_pair *pair, int from)
{
    int first = cluster_between_links(cluster) - 2 * cluster->between.count;

    return first + 2 * (int)(pair - cluster->between.pairs) + (cluster_given_part_of(cluster, from) == pair->other);
}

/* The name of a pair's link: "old-new". */
static void pair_name(const struct cluster *cluster, const struct part_pair *pair, bool back, char *buffer, size_t size)
{
    snprintf(buffer, size, "%.20s-%.20s", cluster_given_part(cluster, back ? pair->other : pair->one).name,
             cluster_given_part(cluster, back ? pair->one : pair->other).name);
}

double cluster_pair_latency(const struct cluster *cluster, const struct part_pair *pair)
{
    const struct part_spec *parts = cluster->given.items;
    double nics = (parts[pair->one].cluster.kinds[0].nics.latency + parts[pair->other].cluster.kinds[0].nics.latency) / 2;

    return isnan(pair->latency) ? 0 : pair->latency - nics;
}

/* The share of the bandwidth of a node's NICs, and of uplinks above them, that transfers achieve. */
static double achieved_share(const struct cluster *cluster, int node)
{
    return cluster_payload_share(cluster, 1u << cluster_kind_of(cluster, node),
                                 cluster_kind(cluster, node)->nics.efficiency);
}

/* The least of all nodes: of links that say their bandwidth, whoever sends through them. */
static double least_share(const struct cluster *cluster)
{
    double least = INFINITY;

    for (int part = 0; part < cluster_parts(cluster); part++)
        least = fmin(least, achieved_share(cluster, cluster->parts[part].first));
    return least;
}

/* B/s that the NICs of the nodes carry together, or one NIC of each; nodes past the last one are as this one. */
static double nics_below(const struct cluster *cluster, struct topology_link link)
{
    double sum = 0;
    int last = cluster->nodes - 1;

    for (int node = link.first; node < link.first + link.nodes;) {
        int at = node < last ? node : last, count = 1;
        double efficiency = achieved_share(cluster, at);

        if (cluster->part_count <= 1 || at == last)
            count = link.first + link.nodes - node;
        sum += link.one_nic ? count * (cluster_nic_rate(cluster, at) * efficiency)
                            : (double)count * cluster_kind(cluster, at)->nics.count *
                              (one_nic_rate(cluster, at) * efficiency);
        node += count;
    }
    return sum;
}

static double between_bandwidth(const struct cluster *cluster, int index)
{
    bool back;
    const struct part_pair *pair = pair_link(cluster, index, &back);

    if (pair || cluster->ideal)
        return pair ? pair->bandwidth : INFINITY;
    struct topology_link link = topology_link(cluster_topology_of(cluster), index);

    return (isnan(link.bandwidth) ? nics_below(cluster, link) / link.narrower : link.bandwidth * least_share(cluster)) /
           fmax(1, cluster->narrower);
}

static double usual_at(const struct cluster *cluster, int node, enum link_kind kind)
{
    const struct machine_kind *own = cluster_kind(cluster, node);

    if (cluster->ideal)
        return INFINITY;
    if (kind == LINK_PORT_UP || kind == LINK_PORT_DOWN)
        return own->inside.bandwidth * own->inside.efficiency;
    if (kind == LINK_NIC_UP || kind == LINK_NIC_DOWN)
        return cluster_nic_rate(cluster, node) * achieved_share(cluster, node);
    return NAN;      /* links of the topology are of no node */
}

static bool is_nic(struct link link)
{
    return link.kind == LINK_NIC_UP || link.kind == LINK_NIC_DOWN;
}

double cluster_link_bandwidth_at(const struct cluster *cluster, int node, struct link link)
{
    if (link.kind == LINK_BETWEEN)
        return between_bandwidth(cluster, link.index);
    double usual = usual_at(cluster, node, link.kind);

    return is_nic(link) && cluster->nic_shares ? usual * cluster->nic_shares[link.index] : usual;
}

enum inside_link cluster_inside_link(const struct cluster *cluster, int node)
{
    return (enum inside_link)cluster_kind(cluster, node)->inside.link;
}

bool cluster_is_mesh(const struct cluster *cluster, int node)
{
    return cluster_kind(cluster, node)->inside.meshes.count > 0;
}

double cluster_latency(const struct cluster *cluster, int node, bool inside)
{
    return inside ? cluster_kind(cluster, node)->inside.latency : cluster_kind(cluster, node)->nics.latency;
}

double cluster_bandwidth(const struct cluster *cluster, int node, bool inside)
{
    return inside ? cluster_kind(cluster, node)->inside.bandwidth : cluster_kind(cluster, node)->nics.bandwidth;
}

double cluster_nic_limit(const struct cluster *cluster, int node)
{
    return cluster_kind(cluster, node)->nics.rate;
}

static int nics_together(const struct machine_kind *kind)
{
    return kind->nics.count > kind->gpus ? kind->nics.count / kind->gpus : 1;
}

int cluster_nics_together(const struct cluster *cluster, int node)
{
    return nics_together(cluster_kind(cluster, node));
}

/* B/s of a link to the network whose NICs have that bandwidth each: at most what the GPU's own link carries. */
static double nic_link(const struct machine_kind *kind, double each)
{
    int together = nics_together(kind);

    return together > 1 && kind->host.bandwidth > 0 ? fmin(together * each, kind->host.bandwidth) : together * each;
}

double cluster_nic_sheet(const struct cluster *cluster, int node)
{
    return nic_link(cluster_kind(cluster, node), cluster_bandwidth(cluster, node, false));
}

double cluster_nic_rate(const struct cluster *cluster, int node)
{
    return nic_link(cluster_kind(cluster, node), one_nic_rate(cluster, node));
}

double cluster_sockets(const struct cluster *cluster, int node)
{
    const struct nics *nics = &cluster_kind(cluster, node)->nics;

    return nics->thread_rate > 0 ? nics->threads * nics->thread_rate : INFINITY;
}

double cluster_widest(const struct cluster *cluster, enum link_kind kind)
{
    double widest = 0;

    for (int part = 0; part < cluster_parts(cluster); part++)
        widest = fmax(widest, usual_at(cluster, cluster->parts[part].first, kind));
    return widest;
}

double cluster_node_bandwidth(const struct cluster *cluster, int node, enum link_kind kind)
{
    return usual_at(cluster, node, kind);
}

double cluster_link_bandwidth(const struct cluster *cluster, struct link link)
{
    int node = is_nic(link) ? cluster_node_of_nic(cluster, link.index)
                            : link.kind == LINK_BETWEEN ? 0 : cluster_node_of(cluster, link.index);

    return cluster_link_bandwidth_at(cluster, node, link);
}

double cluster_nic_share(const struct cluster *cluster, int gpu)
{
    return cluster->nic_shares ? cluster->nic_shares[cluster_nic_of(cluster, gpu)] : 1;
}

double cluster_mesh_share(const struct cluster *cluster, int kind, int gpus)
{
    const struct list *list = &cluster->kinds[kind].inside.meshes;
    const struct mesh *meshes = list->items;

    for (size_t i = 0; i < list->count; i++)
        if (meshes[i].gpus == gpus)
            return meshes[i].share;
    return 1;
}

void cluster_link_name(const struct cluster *cluster, struct link link, char *buffer, size_t size)
{
    static const struct { const char *owner, *direction; } names[] = {
        [LINK_PORT_UP] = {"gpu", "up"},   [LINK_PORT_DOWN] = {"gpu", "down"},
        [LINK_NIC_UP] = {"nic", "up"},    [LINK_NIC_DOWN] = {"nic", "down"},
    };

    bool back;
    const struct part_pair *pair = link.kind == LINK_BETWEEN ? pair_link(cluster, link.index, &back) : NULL;

    if (pair)
        pair_name(cluster, pair, back, buffer, size);
    else if (link.kind == LINK_BETWEEN)
        topology_link_name(cluster_topology_of(cluster), link.index, buffer, size);
    else
        snprintf(buffer, size, "%s%d.%s", names[link.kind].owner, link.index, names[link.kind].direction);
}

double cluster_slowest_link(const struct cluster *cluster)
{
    double slowest = INFINITY;

    for (int kind = 0; kind < cluster_kinds(cluster); kind++)
        slowest = fmin(slowest, cluster_bandwidth(cluster, cluster_kind_node(cluster, kind), cluster->nodes == 1));
    return slowest;
}

enum topology_kind cluster_topology(const struct cluster *cluster)
{
    return (enum topology_kind)cluster->network.topology.kind;
}

int cluster_leaf_nodes(const struct cluster *cluster)
{
    return cluster->between.count ? 1 : topology_block(cluster_topology_of(cluster));
}

int cluster_leaf_of(const struct cluster *cluster, int node)
{
    if (cluster->between.count)
        return cluster_given_part_of(cluster, node);
    return cluster_topology(cluster) == TOPOLOGY_NONBLOCKING ? 0 : node / cluster_leaf_nodes(cluster);
}

double cluster_oversubscription(const struct cluster *cluster)
{
    return cluster->network.topology.oversubscription;
}

bool cluster_within_leaf(const struct cluster *cluster, const int *gpus, int n)
{
    for (int i = 1; i < n; i++)
        if (cluster_leaf_of(cluster, cluster_node_of(cluster, gpus[i])) !=
            cluster_leaf_of(cluster, cluster_node_of(cluster, gpus[0])))
            return false;
    return true;
}

bool cluster_leaves_meet(const struct cluster *cluster, int leaf, int other)
{
    return cluster->between.count || topology_blocks_meet(cluster_topology_of(cluster), leaf, other);
}

bool cluster_is_tree(const struct cluster *cluster)
{
    return !cluster->between.count && topology_is_tree(cluster_topology_of(cluster));
}

const char *cluster_topology_note(const struct cluster *cluster)
{
    return topology_note(&cluster->network.topology);
}

bool cluster_wraps(const struct cluster *cluster)
{
    return cluster->network.topology.kind == TOPOLOGY_TORUS && cluster->network.topology.wraps;
}

bool cluster_torus(const struct cluster *cluster, const int *gpus, int n, struct torus *torus)
{
    int *nodes;
    bool is;

    *torus = (struct torus){0};
    if (!cluster_wraps(cluster))
        return false;
    nodes = xcalloc((size_t)n, sizeof *nodes);
    for (int i = 0; i < n; i++)
        nodes[i] = cluster_node_of(cluster, gpus[i]);
    is = topology_torus_of(&cluster->network.topology, nodes, n, torus);
    free(nodes);
    return is;
}

int cluster_between_links(const struct cluster *cluster)
{
    return topology_links(cluster_topology_of(cluster)) + 2 * cluster->between.count;
}

double cluster_between_latency(const struct cluster *cluster, int link)
{
    bool back;
    const struct part_pair *pair = pair_link(cluster, link, &back);

    return pair ? cluster_pair_latency(cluster, pair) : topology_link(cluster_topology_of(cluster), link).latency;
}

/* B/s of all NICs of a part. */
static double part_nics(const struct cluster *cluster, int part)
{
    struct given_part given = cluster_given_part(cluster, part);

    return given.nodes * cluster_node_nics(cluster, given.first) *
           cluster_node_bandwidth(cluster, given.first, LINK_NIC_UP);
}

/* How many times less a link between parts carries than all NICs of the part that sends less; at least 1. */
static double pair_crowding(const struct cluster *cluster, const struct part_pair *pair)
{
    return fmax(1, fmin(part_nics(cluster, pair->one), part_nics(cluster, pair->other)) / pair->bandwidth);
}

double cluster_crowding(const struct cluster *cluster, int gpu, int other)
{
    int node = cluster_node_of(cluster, gpu);
    const struct part_pair *pair = cluster_pair_of(cluster, node, cluster_node_of(cluster, other));

    return pair ? pair_crowding(cluster, pair) :
           topology_crowding(cluster_topology_of(cluster), node, cluster_node_of(cluster, other),
                             cluster_nic_rate(cluster, node) * achieved_share(cluster, node));
}
