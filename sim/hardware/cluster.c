#include "hardware/cluster.h"

#include <math.h>

#include "cache/cache.h"

/* The node after the part's last one. */
static int end_of(const struct cluster *cluster, int part)
{
    return part + 1 < cluster->part_count ? cluster->parts[part + 1].first : cluster->nodes;
}

/* How many links to the network a node of the kind has: a GPU with several NICs uses them together, as one link. */
static int nic_links(const struct machine_kind *kind)
{
    return kind->nics.count < kind->gpus ? kind->nics.count : kind->gpus;
}

/* The number of its GPUs, or of its links to the network, that stand before a node's first one. */
static int before(const struct cluster *cluster, int node, bool nics)
{
    int count = 0, part = 0;

    for (; part + 1 < cluster->part_count && end_of(cluster, part) <= node; part++) {
        const struct machine_kind *kind = &cluster->kinds[cluster->parts[part].kind];

        count += (end_of(cluster, part) - cluster->parts[part].first) * (nics ? nic_links(kind) : kind->gpus);
    }
    const struct machine_kind *kind = &cluster->kinds[cluster->parts[part].kind];
    return count + (node - cluster->parts[part].first) * (nics ? nic_links(kind) : kind->gpus);
}

/* The node whose GPU, or link to the network, has that number. */
static int node_of(const struct cluster *cluster, int number, bool nics)
{
    for (int part = 0;; part++) {
        const struct machine_kind *kind = &cluster->kinds[cluster->parts[part].kind];
        int each = nics ? nic_links(kind) : kind->gpus, first = cluster->parts[part].first;
        int nodes = end_of(cluster, part) - first;

        if (part + 1 >= cluster->part_count || number < nodes * each)
            return first + number / each;
        number -= nodes * each;
    }
}

int cluster_parts(const struct cluster *cluster)
{
    return cluster->part_count > 1 ? cluster->part_count : 1;
}

struct cluster_part cluster_part(const struct cluster *cluster, int part)
{
    int first = cluster->parts[part].first;

    return (struct cluster_part){cluster->parts[part].kind, first, end_of(cluster, part) - first};
}

int cluster_kinds(const struct cluster *cluster)
{
    int kinds = 1;

    for (int i = 0; i < cluster->part_count; i++)
        kinds = cluster->parts[i].kind >= kinds ? cluster->parts[i].kind + 1 : kinds;
    return kinds;
}

int cluster_kind_of(const struct cluster *cluster, int node)
{
    return (int)(cluster_kind(cluster, node) - cluster->kinds);
}

int cluster_kind_node(const struct cluster *cluster, int kind)
{
    int part = 0;

    while (part + 1 < cluster->part_count && cluster->parts[part].kind != kind)
        part++;
    return cluster->parts[part].first;
}

int cluster_kind_gpu(const struct cluster *cluster, int kind)
{
    return cluster_node_gpu(cluster, cluster_kind_node(cluster, kind), 0);
}

void cluster_size(struct cluster *cluster, int gpus)
{
    if (cluster->nodes == 0)
        cluster->nodes = gpus > 0 ? (gpus - 1) / cluster->kinds[0].gpus + 1 : 1;
}

int cluster_gpus(const struct cluster *cluster)
{
    return before(cluster, cluster->nodes, false);
}

int cluster_nics(const struct cluster *cluster)
{
    return before(cluster, cluster->nodes, true);
}

int cluster_node_of(const struct cluster *cluster, int gpu)
{
    return node_of(cluster, gpu, false);
}

int cluster_node_of_nic(const struct cluster *cluster, int nic)
{
    return node_of(cluster, nic, true);
}

int cluster_place_of(const struct cluster *cluster, int gpu)
{
    return gpu - before(cluster, cluster_node_of(cluster, gpu), false);
}

int cluster_node_gpu(const struct cluster *cluster, int node, int k)
{
    return before(cluster, node, false) + k;
}

int cluster_node_nic(const struct cluster *cluster, int node, int k)
{
    return before(cluster, node, true) + k;
}

int cluster_node_gpus(const struct cluster *cluster, int node)
{
    return cluster_kind(cluster, node)->gpus;
}

int cluster_node_nics(const struct cluster *cluster, int node)
{
    return nic_links(cluster_kind(cluster, node));
}

int cluster_nic_of(const struct cluster *cluster, int gpu)
{
    for (int part = 0, nics = 0;; part++) {
        const struct machine_kind *kind = &cluster->kinds[cluster->parts[part].kind];
        int nodes = end_of(cluster, part) - cluster->parts[part].first, count = nic_links(kind);

        if (part + 1 >= cluster->part_count || gpu < nodes * kind->gpus)
            return nics + gpu / kind->gpus * count + gpu % kind->gpus * count / kind->gpus;
        gpu -= nodes * kind->gpus;
        nics += nodes * count;
    }
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
        return cluster_nic_rate(cluster, node) * network->efficiency;
    return network->topology.leaf_nodes * own->nics.count * (one_nic_rate(cluster, node) * network->efficiency) /
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

bool cluster_share_switch(const struct cluster *cluster, int gpu, int other)
{
    int below = cluster_kind(cluster, cluster_node_of(cluster, gpu))->gpus_per_switch;

    return below && cluster_place_of(cluster, gpu) / below == cluster_place_of(cluster, other) / below;
}

double cluster_switch_nics(const struct cluster *cluster, int node)
{
    const struct machine_kind *kind = cluster_kind(cluster, node);

    return fmax(1, (double)kind->gpus_per_switch * nic_links(kind) / kind->gpus);
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
    return kind->nics.count / nic_links(kind);
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

const char *cluster_gpu_name(const struct cluster *cluster, int gpu)
{
    return cluster_kind(cluster, cluster_node_of(cluster, gpu))->gpu_name;
}

const struct gpu_spec *cluster_gpu_spec(const struct cluster *cluster, int gpu)
{
    return cluster_kind(cluster, cluster_node_of(cluster, gpu))->gpu_spec;
}

const struct gpu *cluster_sheet(const struct cluster *cluster, int gpu)
{
    return &cluster_kind(cluster, cluster_node_of(cluster, gpu))->gpu;
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
        return extra_cost(usual, link, fmax(pace->inside, usual), pace->inside_share * cluster_bandwidth(cluster, node, true));
    return extra_cost(usual, link, fmax(pace->network, usual), pace->network_share * cluster_nic_rate(cluster, node));
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
    const bool has[] = {cluster->ideal, communication != NULL};

    field_key(&cluster_table, cluster, key);
    cache_key_add(key, has, sizeof has);
    numbers_key(cluster->gpu_slower, cluster_gpus(cluster), key);
    numbers_key(cluster->nic_shares, cluster_nics(cluster), key);
    if (communication) {
        field_key(&communication_table, communication, key);
        cache_key_add(key, &communication->launch, sizeof communication->launch);
        cache_key_add(key, &communication->nics, sizeof communication->nics);
    }
    for (int part = 0; part < cluster->part_count; part++)
        cache_key_add(key, &cluster->parts[part], sizeof cluster->parts[part]);
    for (int kind = 0; kind < KINDS_MAX; kind++)
        if (cluster->kinds[kind].gpu_name)
            field_key(&gpu_table, &cluster->kinds[kind].gpu, key);
}
