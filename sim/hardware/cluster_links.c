/* The links of a cluster: what each carries, how long a message takes, which links a transfer crosses, their names. */
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

static struct topology_of topology_of(const struct cluster *cluster)
{
    int nics = 0;

    for (int part = 0; part < cluster_parts(cluster); part++) {
        int own = cluster_node_nics(cluster, cluster->parts[part].first);

        nics = own > nics ? own : nics;
    }
    return (struct topology_of){&cluster->network.topology, cluster->nodes, nics};
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
    const struct part_pair *pair = cluster_pair_link(cluster, index, &back);

    if (pair || cluster->ideal)
        return pair ? pair->bandwidth : INFINITY;
    struct topology_link link = topology_link(topology_of(cluster), index);

    return isnan(link.bandwidth) ? nics_below(cluster, link) / link.narrower
                                 : link.bandwidth * least_share(cluster);
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

/* B/s of a link of that node, or of the topology. */
static double bandwidth_of(const struct cluster *cluster, int node, struct link link)
{
    if (link.kind == LINK_BETWEEN)
        return between_bandwidth(cluster, link.index);
    double usual = usual_at(cluster, node, link.kind);

    return is_nic(link) && cluster->nic_shares ? usual * cluster->nic_shares[link.index] : usual;
}

static void route_through(struct route *route, const struct cluster *cluster, int node, struct link link)
{
    BUG_IF(route->count == ROUTE_MAX);
    route->links[route->count++] = link;
    route->bandwidth = fmin(route->bandwidth, bandwidth_of(cluster, node, link));
}

/* The GPU of the node whose NIC has that number in it; -1: it has none. */
static int gpu_at_nic(const struct cluster *cluster, int node, int nic)
{
    int first = cluster_node_gpu(cluster, node, 0);

    for (int k = 0; k < cluster_node_gpus(cluster, node); k++)
        if (cluster_nic_of(cluster, first + k) == cluster_node_nic(cluster, node, nic))
            return first + k;
    return -1;
}

/* The GPU whose NIC sends a message of src: src itself or, where rails are crossed inside the node, the GPU on the
 * receiver's rail. */
static int sender_of(struct route *route, const struct cluster *cluster, int src, int src_node, int nic, int own)
{
    const struct topology *topology = &cluster->network.topology;
    int relay = -1;

    if (topology->kind == TOPOLOGY_RAIL && nic != own && topology->across_rails == ACROSS_NVLINK)
        relay = gpu_at_nic(cluster, src_node, nic);
    if (relay < 0)
        return src;
    route->latency += cluster_latency(cluster, src_node, true);
    route_through(route, cluster, src_node, (struct link){LINK_PORT_UP, src});
    route_through(route, cluster, src_node, (struct link){LINK_PORT_DOWN, relay});
    return relay;
}

static void route_between(struct route *route, const struct cluster *cluster, int src, int dst, int src_node,
                          int dst_node)
{
    int own = cluster_nic_of(cluster, src) - cluster_node_nic(cluster, src_node, 0);
    int nic = cluster_nic_of(cluster, dst) - cluster_node_nic(cluster, dst_node, 0);
    const struct part_pair *pair = cluster_pair_of(cluster, src_node, dst_node);
    struct topology_way way;

    route->refused = nic != own && cluster_topology(cluster) == TOPOLOGY_RAIL &&
                     cluster->network.topology.across_rails == ACROSS_REFUSE;
    /* each end has its half of it, as on SimGrid's platform */
    route->latency = (cluster_latency(cluster, src_node, false) + cluster_latency(cluster, dst_node, false)) / 2;
    int sender = sender_of(route, cluster, src, src_node, nic, own);
    topology_way(topology_of(cluster),
                 (struct topology_end){src_node, sender == src ? own : nic, cluster_place_of(cluster, sender)},
                 (struct topology_end){dst_node, nic, cluster_place_of(cluster, dst)}, &way);
    route->latency += way.latency;
    route_through(route, cluster, src_node, (struct link){LINK_NIC_UP, cluster_nic_of(cluster, sender)});
    for (int i = 0; i < way.count; i++)
        route_through(route, cluster, src_node, (struct link){LINK_BETWEEN, way.links[i]});
    if (pair) {
        route->latency += cluster_pair_latency(cluster, pair);
        route_through(route, cluster, src_node, (struct link){LINK_BETWEEN, cluster_pair_index(cluster, pair, src_node)});
    }
    route_through(route, cluster, dst_node, (struct link){LINK_NIC_DOWN, cluster_nic_of(cluster, dst)});
}

struct route cluster_route(const struct cluster *cluster, int src, int dst)
{
    struct route route;
    int gpus = cluster_gpus(cluster), src_node, dst_node;

    BUG_IF(src < 0 || dst < 0 || src >= gpus || dst >= gpus);
    route.count = 0;                 /* most of its many links are never set */
    route.refused = false;
    route.latency = 0;
    route.bandwidth = INFINITY;
    if (cluster->ideal)
        return route;
    src_node = cluster_node_of(cluster, src);
    dst_node = cluster_node_of(cluster, dst);
    if (src_node == dst_node) {
        route.latency = cluster_latency(cluster, src_node, true);
        route_through(&route, cluster, src_node, (struct link){LINK_PORT_UP, src});
        route_through(&route, cluster, dst_node, (struct link){LINK_PORT_DOWN, dst});
        return route;
    }
    route_between(&route, cluster, src, dst, src_node, dst_node);
    return route;
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

    return bandwidth_of(cluster, node, link);
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
    const struct part_pair *pair = link.kind == LINK_BETWEEN ? cluster_pair_link(cluster, link.index, &back) : NULL;

    if (pair)
        cluster_pair_name(cluster, pair, back, buffer, size);
    else if (link.kind == LINK_BETWEEN)
        topology_link_name(topology_of(cluster), link.index, buffer, size);
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
    return cluster->between.count ? 1 : topology_block(topology_of(cluster));
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

bool cluster_leaves_meet(const struct cluster *cluster, int leaf, int other)
{
    return cluster->between.count || topology_blocks_meet(topology_of(cluster), leaf, other);
}

bool cluster_is_tree(const struct cluster *cluster)
{
    return !cluster->between.count && topology_is_tree(topology_of(cluster));
}

const char *cluster_topology_note(const struct cluster *cluster)
{
    return topology_note(&cluster->network.topology);
}

bool cluster_refuses(const struct cluster *cluster)
{
    return !cluster->ideal && cluster_topology(cluster) == TOPOLOGY_RAIL &&
           cluster->network.topology.across_rails == ACROSS_REFUSE;
}

int cluster_check_route(const struct cluster *cluster, int src, int dst, struct error *err)
{
    if (!cluster_route(cluster, src, dst).refused)
        return 0;
    return error_clash(err, cluster->network.topology.node->loc,
                       "topology: across_rails: refuse: GPU %d sends to GPU %d, whose NIC is on another rail; expected "
                       "messages between GPUs in the same place of their nodes, or across_rails: nvlink or spine", src,
                       dst);
}

int cluster_longest_route(const struct cluster *cluster)
{
    return 2 + (cluster->between.count > 0) + topology_longest(&cluster->network.topology) +
           (cluster_topology(cluster) == TOPOLOGY_RAIL ? 2 : 0);     /* through the ports of two GPUs */
}

int cluster_between_links(const struct cluster *cluster)
{
    return topology_links(topology_of(cluster)) + 2 * cluster->between.count;
}

double cluster_between_latency(const struct cluster *cluster, int link)
{
    bool back;
    const struct part_pair *pair = cluster_pair_link(cluster, link, &back);

    return pair ? cluster_pair_latency(cluster, pair) : topology_link(topology_of(cluster), link).latency;
}

double cluster_crowding(const struct cluster *cluster, int gpu, int other)
{
    int node = cluster_node_of(cluster, gpu);
    const struct part_pair *pair = cluster_pair_of(cluster, node, cluster_node_of(cluster, other));

    return pair ? cluster_pair_crowding(cluster, pair) :
           topology_crowding(topology_of(cluster), node, cluster_node_of(cluster, other),
                             cluster_nic_rate(cluster, node) * achieved_share(cluster, node));
}

double cluster_narrowing(const struct cluster *cluster, int gpu, int other)
{
    int node = cluster_node_of(cluster, gpu);
    double narrowest = usual_at(cluster, node, LINK_NIC_UP);
    struct route route = cluster_route(cluster, gpu, other);

    for (int i = 0; i < route.count && cluster_topology(cluster) != TOPOLOGY_LEAF_SPINE; i++)
        if (route.links[i].kind == LINK_BETWEEN)
            narrowest = fmin(narrowest, between_bandwidth(cluster, route.links[i].index));
    return usual_at(cluster, node, LINK_NIC_UP) / narrowest;
}
