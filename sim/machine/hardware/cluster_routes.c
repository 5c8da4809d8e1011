/* Which links a transfer from GPU to GPU crosses, and what a message costs in addition to its route, by the
 * communication library. */
#include "hardware/cluster.h"

#include <math.h>

#include "base/base.h"
#include "topology/topology.h"

static void route_through(struct route *route, const struct cluster *cluster, int node, struct link link)
{
    BUG_IF(route->count == ROUTE_MAX);
    route->links[route->count++] = link;
    route->bandwidth = fmin(route->bandwidth, cluster_link_bandwidth_at(cluster, node, link));
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
    topology_way(cluster_topology_of(cluster),
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

double cluster_narrowing(const struct cluster *cluster, int gpu, int other)
{
    int node = cluster_node_of(cluster, gpu);
    double narrowest = cluster_node_bandwidth(cluster, node, LINK_NIC_UP);
    struct route route = cluster_route(cluster, gpu, other);

    for (int i = 0; i < route.count && cluster_topology(cluster) != TOPOLOGY_LEAF_SPINE; i++)
        if (route.links[i].kind == LINK_BETWEEN)
            narrowest = fmin(narrowest, cluster_link_bandwidth(cluster, route.links[i]));
    return cluster_node_bandwidth(cluster, node, LINK_NIC_UP) / narrowest;
}

struct extra extra_cost(double usual, double link, double latency, double bandwidth)
{
    return (struct extra){latency - usual, isinf(bandwidth) ? 0 : link / bandwidth - 1};
}

/* The extra cost of a send whose slower end is on that node. */
static struct extra send_at(const struct cluster *cluster, int node, bool inside, const struct protocol_cost *cost)
{
    double usual = cluster_latency(cluster, node, inside);
    double link = cluster_node_bandwidth(cluster, node, inside ? LINK_PORT_UP : LINK_NIC_UP);

    if (inside)
        return extra_cost(usual, link, fmax(cost->inside, usual),
                          cost->inside_share * cluster_bandwidth(cluster, node, true));
    return extra_cost(usual, link, fmax(cost->network, usual),
                      fmin(cluster_payload_share(cluster, 1u << cluster_kind_of(cluster, node), cost->network_share) *
                               cluster_nic_rate(cluster, node), cluster_sockets(cluster, node)));
}

static const struct protocol_cost *send_cost(const struct cluster *cluster, int node)
{
    const struct communication *library = cluster_kind(cluster, node)->communication;

    return library && !cluster->ideal ? library->send : NULL;
}

/* Between nodes of two kinds the slower end decides. Both kinds have a library, or neither has. */
struct extra cluster_send(const struct cluster *cluster, int src, int dst)
{
    int from = cluster_node_of(cluster, src), to = cluster_node_of(cluster, dst);
    const struct protocol_cost *cost = send_cost(cluster, from);
    struct extra extra = {0, 0}, other;

    if (!cost)
        return extra;
    extra = send_at(cluster, from, from == to, cost);
    if (cluster_kind(cluster, from) == cluster_kind(cluster, to))
        return extra;
    other = send_at(cluster, to, false, send_cost(cluster, to));
    double usual = cluster_latency(cluster, from, false), other_usual = cluster_latency(cluster, to, false);
    double whole = fmax(usual + extra.delay, other_usual + other.delay);

    return (struct extra){whole - (usual + other_usual) / 2, fmax(extra.overhead, other.overhead)};
}

double cluster_copy(const struct cluster *cluster, int src, int dst)
{
    const int nodes[] = {cluster_node_of(cluster, src), cluster_node_of(cluster, dst)};
    double slowest = INFINITY;

    for (size_t end = 0; end < COUNT(nodes) && nodes[0] != nodes[1]; end++) {
        const struct protocol_cost *cost = send_cost(cluster, nodes[end]);

        slowest = cost ? fmin(slowest, cost->copy) : slowest;    /* fmin ignores NaN */
    }
    return slowest;
}
