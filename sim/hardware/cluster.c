#include "hardware/cluster.h"

#include <math.h>

#include "cache/cache.h"

void cluster_size(struct cluster *cluster, int gpus)
{
    if (cluster->nodes == 0)
        cluster->nodes = gpus > 0 ? (gpus - 1) / cluster->gpus_per_node + 1 : 1;
}

int cluster_gpus(const struct cluster *cluster)
{
    return cluster->nodes * cluster->gpus_per_node;
}

int cluster_node_of(const struct cluster *cluster, int gpu)
{
    return gpu / cluster->gpus_per_node;
}

int cluster_nics(const struct cluster *cluster)
{
    return cluster->nodes * cluster->network.nics;
}

int cluster_node_nics(const struct cluster *cluster, int node)
{
    (void)node;
    return cluster->network.nics;
}

int cluster_node_nic(const struct cluster *cluster, int node, int k)
{
    return node * cluster->network.nics + k;
}

int cluster_node_of_nic(const struct cluster *cluster, int nic)
{
    return nic / cluster->network.nics;
}

int cluster_nic_of(const struct cluster *cluster, int gpu)
{
    int local = gpu % cluster->gpus_per_node, node = cluster_node_of(cluster, gpu);

    return cluster_node_nic(cluster, node, local * cluster_node_nics(cluster, node) / cluster->gpus_per_node);
}

enum topology cluster_topology(const struct cluster *cluster)
{
    return (enum topology)cluster->network.topology.kind;
}

int cluster_leaf_nodes(const struct cluster *cluster)
{
    return cluster_topology(cluster) == TOPOLOGY_LEAF_SPINE ? cluster->network.topology.leaf_nodes : cluster->nodes;
}

double cluster_oversubscription(const struct cluster *cluster)
{
    return cluster->network.topology.oversubscription;
}

int cluster_leaf_of(const struct cluster *cluster, int node)
{
    return cluster_topology(cluster) == TOPOLOGY_LEAF_SPINE ? node / cluster_leaf_nodes(cluster) : 0;
}

bool cluster_within_node(const struct cluster *cluster, const int *gpus, int n)
{
    for (int i = 1; i < n; i++)
        if (cluster_node_of(cluster, gpus[i]) != cluster_node_of(cluster, gpus[0]))
            return false;
    return true;
}

bool cluster_within_leaf(const struct cluster *cluster, const int *gpus, int n)
{
    for (int i = 1; i < n; i++)
        if (cluster_leaf_of(cluster, cluster_node_of(cluster, gpus[i])) !=
            cluster_leaf_of(cluster, cluster_node_of(cluster, gpus[0])))
            return false;
    return true;
}

static void route_through(struct route *route, const struct cluster *cluster, enum link_kind kind, int index)
{
    struct link link = {kind, index};

    BUG_IF(route->count == ROUTE_MAX);
    route->links[route->count++] = link;
    route->bandwidth = fmin(route->bandwidth, cluster_link_bandwidth(cluster, link));
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
        route.latency = cluster->inside.latency;
        route_through(&route, cluster, LINK_PORT_UP, src);
        route_through(&route, cluster, LINK_PORT_DOWN, dst);
        return route;
    }
    src_leaf = cluster_leaf_of(cluster, src_node);
    dst_leaf = cluster_leaf_of(cluster, dst_node);
    route.latency = cluster->network.latency;
    route_through(&route, cluster, LINK_NIC_UP, cluster_nic_of(cluster, src));
    if (src_leaf != dst_leaf) {
        route_through(&route, cluster, LINK_LEAF_UP, src_leaf);
        route_through(&route, cluster, LINK_LEAF_DOWN, dst_leaf);
    }
    route_through(&route, cluster, LINK_NIC_DOWN, cluster_nic_of(cluster, dst));
    return route;
}

bool cluster_share_switch(const struct cluster *cluster, int gpu, int other)
{
    int below = cluster->gpus_per_switch, gpus = cluster->gpus_per_node;

    return below && gpu % gpus / below == other % gpus / below;
}

double cluster_switch_nics(const struct cluster *cluster, int node)
{
    return fmax(1, (double)cluster->gpus_per_switch * cluster_node_nics(cluster, node) / cluster->gpus_per_node);
}

enum inside_link cluster_inside_link(const struct cluster *cluster, int node)
{
    (void)node;
    return (enum inside_link)cluster->inside.link;
}

bool cluster_is_mesh(const struct cluster *cluster, int node)
{
    (void)node;
    return cluster->inside.meshes.count > 0;
}

double cluster_latency(const struct cluster *cluster, int node, bool inside)
{
    (void)node;
    return inside ? cluster->inside.latency : cluster->network.latency;
}

double cluster_bandwidth(const struct cluster *cluster, int node, bool inside)
{
    (void)node;
    return inside ? cluster->inside.bandwidth : cluster->network.bandwidth;
}

double cluster_nic_limit(const struct cluster *cluster, int node)
{
    (void)node;
    return cluster->network.rate;
}

double cluster_nic_rate(const struct cluster *cluster, int node)
{
    double bandwidth = cluster_bandwidth(cluster, node, false), limit = cluster_nic_limit(cluster, node);

    return limit > 0 ? fmin(bandwidth, limit) : bandwidth;
}

const struct gpu *cluster_sheet(const struct cluster *cluster, int gpu)
{
    (void)gpu;
    return &cluster->gpu;
}

double cluster_usual_bandwidth(const struct cluster *cluster, enum link_kind kind)
{
    const struct network *network = &cluster->network;
    double nic = cluster_nic_rate(cluster, 0) * network->efficiency;

    if (cluster->ideal)
        return INFINITY;
    if (kind == LINK_PORT_UP || kind == LINK_PORT_DOWN)
        return cluster->inside.bandwidth * cluster->inside.efficiency;
    if (kind == LINK_NIC_UP || kind == LINK_NIC_DOWN)
        return nic;
    return network->topology.leaf_nodes * network->nics * nic / network->topology.oversubscription;
}

double cluster_link_bandwidth(const struct cluster *cluster, struct link link)
{
    bool nic = link.kind == LINK_NIC_UP || link.kind == LINK_NIC_DOWN;
    double usual = cluster_usual_bandwidth(cluster, link.kind);

    return nic && cluster->nic_shares ? usual * cluster->nic_shares[link.index] : usual;
}

double cluster_nic_share(const struct cluster *cluster, int gpu)
{
    return cluster->nic_shares ? cluster->nic_shares[cluster_nic_of(cluster, gpu)] : 1;
}

double cluster_host_bandwidth(const struct cluster *cluster, int node)
{
    (void)node;
    return cluster->host.bandwidth * cluster->host.efficiency;
}

double cluster_host_copy(const struct cluster *cluster, int node, double bytes)
{
    return cluster->host.latency + bytes / cluster_host_bandwidth(cluster, node);
}

double cluster_host_memory(const struct cluster *cluster, int node)
{
    (void)node;
    return cluster->host.memory;
}

double cluster_host_update(const struct cluster *cluster, int node)
{
    (void)node;
    return cluster->host.update;
}

double cluster_across(const struct cluster *cluster, int node)
{
    (void)node;
    return cluster->host.across;
}

double cluster_mesh_share(const struct cluster *cluster, int gpus)
{
    const struct mesh *meshes = cluster->inside.meshes.items;

    for (size_t i = 0; i < cluster->inside.meshes.count; i++)
        if (meshes[i].gpus == gpus)
            return meshes[i].share;
    return 1;
}

struct extra cluster_pace(const struct cluster *cluster, bool inside, double latency, double bandwidth)
{
    double usual = inside ? cluster->inside.latency : cluster->network.latency;
    double link = cluster_usual_bandwidth(cluster, inside ? LINK_PORT_UP : LINK_NIC_UP);

    return (struct extra){latency - usual, isinf(bandwidth) ? 0 : link / bandwidth - 1};
}

struct extra cluster_send(const struct cluster *cluster, int src, int dst)
{
    bool inside = cluster_node_of(cluster, src) == cluster_node_of(cluster, dst);
    const struct pace *pace = cluster->communication ? cluster->communication->send : NULL;

    if (!pace || cluster->ideal)
        return (struct extra){0, 0};
    if (inside)
        return cluster_pace(cluster, true, fmax(pace->inside, cluster->inside.latency),
                            pace->inside_share * cluster->inside.bandwidth);
    return cluster_pace(cluster, false, fmax(pace->network, cluster->network.latency),
                        pace->network_share * cluster_nic_rate(cluster, cluster_node_of(cluster, src)));
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

static void numbers_key(const double *numbers, int count, struct cache_key *key)
{
    count = numbers ? count : 0;
    cache_key_add(key, &count, sizeof count);
    if (count)
        cache_key_add(key, numbers, (size_t)count * sizeof *numbers);
}

void cluster_key(const struct cluster *cluster, struct cache_key *key)
{
    const struct communication *communication = cluster->communication;
    const bool has[] = {cluster->ideal, communication != NULL, cluster->gpu_name != NULL};

    field_key(&cluster_table, cluster, key);
    cache_key_add(key, has, sizeof has);
    numbers_key(cluster->gpu_slower, cluster_gpus(cluster), key);
    numbers_key(cluster->nic_shares, cluster_nics(cluster), key);
    if (communication) {
        field_key(&communication_table, communication, key);
        cache_key_add(key, &communication->launch, sizeof communication->launch);
        cache_key_add(key, &communication->nics, sizeof communication->nics);
    }
    if (cluster->gpu_name)
        field_key(&gpu_table, &cluster->gpu, key);
}
