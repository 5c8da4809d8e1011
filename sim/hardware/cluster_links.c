/* The links of a cluster: what each carries, how long a message takes, which links a transfer crosses, their names. */
#include "hardware/cluster.h"

#include <math.h>

/* B/s of a single NIC of the node: its bandwidth, or the rate to which it is limited. */
static double one_nic_rate(const struct cluster *cluster, int node)
{
    double bandwidth = cluster_bandwidth(cluster, node, false), limit = cluster_nic_limit(cluster, node);

    return limit > 0 ? fmin(bandwidth, limit) : bandwidth;
}

static double usual_at(const struct cluster *cluster, int node, enum link_kind kind)
{
    const struct network *network = &cluster->network;
    const struct machine_kind *own = cluster_kind(cluster, node);

    if (cluster->ideal)
        return INFINITY;
    if (kind == LINK_PORT_UP || kind == LINK_PORT_DOWN)
        return own->inside.bandwidth * own->inside.efficiency;
    if (kind == LINK_NIC_UP || kind == LINK_NIC_DOWN)
        return cluster_nic_rate(cluster, node) * cluster_payload_share(cluster, network->efficiency);
    return network->topology.leaf_nodes * own->nics.count * (one_nic_rate(cluster, node) * cluster_payload_share(cluster, network->efficiency)) /
           network->topology.oversubscription;
}

static bool is_nic(struct link link)
{
    return link.kind == LINK_NIC_UP || link.kind == LINK_NIC_DOWN;
}

/* Of a link of that node, or of the leaf switch above it. */
static double bandwidth_of(const struct cluster *cluster, int node, struct link link)
{
    double usual = usual_at(cluster, node, link.kind);

    return is_nic(link) && cluster->nic_shares ? usual * cluster->nic_shares[link.index] : usual;
}

static void route_through(struct route *route, const struct cluster *cluster, int node, struct link link)
{

    BUG_IF(route->count == ROUTE_MAX);
    route->links[route->count++] = link;
    route->bandwidth = fmin(route->bandwidth, bandwidth_of(cluster, node, link));
}

struct route cluster_route(const struct cluster *cluster, int src, int dst)
{
    struct route route = {.bandwidth = INFINITY};
    int gpus = cluster_gpus(cluster), src_node, dst_node, src_leaf, dst_leaf;

    BUG_IF(src < 0 || dst < 0 || src >= gpus || dst >= gpus);
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
    src_leaf = cluster_leaf_of(cluster, src_node);
    dst_leaf = cluster_leaf_of(cluster, dst_node);
    route.latency = cluster->network.latency;
    route_through(&route, cluster, src_node, (struct link){LINK_NIC_UP, cluster_nic_of(cluster, src)});
    if (src_leaf != dst_leaf) {
        route_through(&route, cluster, src_node, (struct link){LINK_LEAF_UP, src_leaf});
        route_through(&route, cluster, dst_node, (struct link){LINK_LEAF_DOWN, dst_leaf});
    }
    route_through(&route, cluster, dst_node, (struct link){LINK_NIC_DOWN, cluster_nic_of(cluster, dst)});
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
    return inside ? cluster_kind(cluster, node)->inside.latency : cluster->network.latency;
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

/* B/s of a link to the network whose NICs have so much each: no more than the GPU's own link carries. */
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
    bool port = link.kind == LINK_PORT_UP || link.kind == LINK_PORT_DOWN, nic = is_nic(link);
    int node = port ? cluster_node_of(cluster, link.index) : nic ? cluster_node_of_nic(cluster, link.index) :
               link.index * cluster_leaf_nodes(cluster);

    return bandwidth_of(cluster, node, link);
}

double cluster_nic_share(const struct cluster *cluster, int gpu)
{
    return cluster->nic_shares ? cluster->nic_shares[cluster_nic_of(cluster, gpu)] : 1;
}

double cluster_host_bandwidth(const struct cluster *cluster, int node)
{
    return cluster_kind(cluster, node)->host.bandwidth * cluster_kind(cluster, node)->host.efficiency;
}

double cluster_host_copy(const struct cluster *cluster, int node, double bytes)
{
    return cluster_kind(cluster, node)->host.latency + bytes / cluster_host_bandwidth(cluster, node);
}

double cluster_host_memory(const struct cluster *cluster, int node)
{
    return cluster_kind(cluster, node)->host.memory;
}

double cluster_host_update(const struct cluster *cluster, int node)
{
    return cluster_kind(cluster, node)->host.update;
}

double cluster_across(const struct cluster *cluster, int node)
{
    return cluster_kind(cluster, node)->host.across;
}

double cluster_payload_share(const struct cluster *cluster, double share)
{
    return cluster->network.share > 0 ? fmin(share, cluster->network.share) : share;
}

const char *cluster_estimates(struct arena *arena, const struct cluster *cluster, bool between)
{
    const struct network *network = &cluster->network;
    const char *own = between ? network->estimate : NULL, *profile = NULL;

    if (cluster->communication && cluster->communication->estimate)
        profile = arena_printf(arena, "communication profile %s: %s", cluster->communication_spec->profile,
                               cluster->communication->estimate);
    if (own)
        own = arena_printf(arena, "network %s: %s", network->name ? network->name : "", own);
    return own && profile ? arena_printf(arena, "%s; %s", own, profile) : own ? own : profile;
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

struct extra extra_cost(double usual, double link, double latency, double bandwidth)
{
    return (struct extra){latency - usual, isinf(bandwidth) ? 0 : link / bandwidth - 1};
}

struct extra cluster_send(const struct cluster *cluster, int src, int dst)
{
    int node = cluster_node_of(cluster, src);
    bool inside = node == cluster_node_of(cluster, dst);
    const struct pace *pace = cluster->communication ? cluster->communication->send : NULL;

    if (!pace || cluster->ideal)
        return (struct extra){0, 0};
    double usual = cluster_latency(cluster, node, inside);
    double link = usual_at(cluster, node, inside ? LINK_PORT_UP : LINK_NIC_UP);

    if (inside)
        return extra_cost(usual, link, fmax(pace->inside, usual),
                          pace->inside_share * cluster_bandwidth(cluster, node, true));
    return extra_cost(usual, link, fmax(pace->network, usual),
                      cluster_payload_share(cluster, pace->network_share) * cluster_nic_rate(cluster, node));
}

double cluster_copy(const struct cluster *cluster, int src, int dst)
{
    const struct pace *pace = cluster->communication ? cluster->communication->send : NULL;
    bool inside = cluster_node_of(cluster, src) == cluster_node_of(cluster, dst);

    return pace && !cluster->ideal && !inside && !isnan(pace->copy) ? pace->copy : INFINITY;
}

void cluster_link_name(struct link link, char *buffer, size_t size)
{
    static const struct { const char *owner, *direction; } names[] = {
        [LINK_PORT_UP] = {"gpu", "up"},   [LINK_PORT_DOWN] = {"gpu", "down"},
        [LINK_NIC_UP] = {"nic", "up"},    [LINK_NIC_DOWN] = {"nic", "down"},
        [LINK_LEAF_UP] = {"leaf", "up"},  [LINK_LEAF_DOWN] = {"leaf", "down"},
    };

    snprintf(buffer, size, "%s%d.%s", names[link.kind].owner, link.index, names[link.kind].direction);
}

double cluster_slowest_link(const struct cluster *cluster)
{
    double slowest = INFINITY;

    for (int kind = 0; kind < cluster_kinds(cluster); kind++)
        slowest = fmin(slowest, cluster_bandwidth(cluster, cluster_kind_node(cluster, kind), cluster->nodes == 1));
    return slowest;
}
