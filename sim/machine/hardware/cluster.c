/* The parts of a cluster, the numbers of its nodes, GPUs and NICs, and the bytes by which clusters are told apart.
 * cluster_links.c has its links. */
#include "hardware/cluster.h"

#include <math.h>
#include <string.h>

#include "base/base.h"
#include "base/cache.h"
#include "config/field.h"
#include "topology/topology.h"

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

struct cluster cluster_folded(const struct cluster *cluster, double narrower, const struct torus *torus, int node)
{
    struct cluster folded = *cluster;

    folded.narrower = narrower;
    if (!torus->dims)
        return folded;
    folded.kinds[0] = *cluster_kind(cluster, node);
    folded.part_count = 0;
    folded.parts[0] = (struct machine_part){0, 0};
    folded.nodes = 1;
    for (int k = 0; k < torus->dims; k++)
        folded.nodes *= torus->size[k];
    folded.network.topology.dims = (struct list){.items = (void *)(uintptr_t)torus->size, .count = (size_t)torus->dims};
    folded.gpu_slower = folded.nic_shares = NULL;
    return folded;
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

bool cluster_within_node(const struct cluster *cluster, const int *gpus, int n)
{
    for (int i = 1; i < n; i++)
        if (cluster_node_of(cluster, gpus[i]) != cluster_node_of(cluster, gpus[0]))
            return false;
    return true;
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

/* Whether a kind's library would run a collective no faster than another's: by the NICs, then by the links inside, then
 * by the profile's name, so that the order of parts does not matter. */
static bool is_slower(const struct machine_kind *kind, const struct machine_kind *other)
{
    double nics = kind->nics.bandwidth, other_nics = other->nics.bandwidth;
    double inside = kind->inside.bandwidth, other_inside = other->inside.bandwidth;

    if (nics < other_nics || nics > other_nics)
        return nics < other_nics;
    if (inside < other_inside || inside > other_inside)
        return inside < other_inside;
    return strcmp(kind->communication_spec->profile, other->communication_spec->profile) < 0;
}

const struct communication *cluster_communication(const struct cluster *cluster, unsigned kinds)
{
    const struct machine_kind *slowest = NULL;

    for (int i = 0; i < cluster_kinds(cluster); i++) {
        const struct machine_kind *kind = &cluster->kinds[i];

        if (kinds >> i & 1 && kind->communication && (!slowest || is_slower(kind, slowest)))
            slowest = kind;
    }
    return slowest ? slowest->communication : NULL;
}

bool cluster_has_pairs(const struct cluster *cluster)
{
    return cluster->between.count > 0;
}

int cluster_given_parts(const struct cluster *cluster)
{
    return (int)cluster->given.count;
}

struct given_part cluster_given_part(const struct cluster *cluster, int part)
{
    const struct part_spec *spec = (const struct part_spec *)cluster->given.items + part;

    return (struct given_part){spec->name, spec->slower, spec->first, spec->cluster.nodes};
}

int cluster_given_part_of(const struct cluster *cluster, int node)
{
    const struct part_spec *parts = cluster->given.items;
    int i = 0;

    while (i + 1 < (int)cluster->given.count && parts[i + 1].first <= node)
        i++;
    return i;
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

static void numbers_key(const double *numbers, int count, struct cache_key *key)
{
    count = numbers ? count : 0;
    cache_key_add(key, &count, sizeof count);
    if (count)
        cache_key_add(key, numbers, (size_t)count * sizeof *numbers);
}

void cluster_kind_key(const struct machine_kind *kind, struct cache_key *key)
{
    const struct cluster alone = {.kinds[0] = *kind};
    const struct communication *communication = kind->communication;
    const bool has[] = {kind->gpu_name != NULL, communication != NULL};

    field_key(&cluster_table, &alone, key);
    cache_key_add(key, has, sizeof has);
    if (kind->gpu_name)
        field_key(&gpu_table, &kind->gpu, key);
    if (communication) {
        field_key(&communication_table, communication, key);
        cache_key_add(key, &communication->launch, sizeof communication->launch);
        cache_key_add(key, &communication->nics, sizeof communication->nics);
    }
}

void cluster_key(const struct cluster *cluster, struct cache_key *key)
{
    field_key(&cluster_table, cluster, key);
    cache_key_add(key, &cluster->ideal, sizeof cluster->ideal);
    cache_key_add(key, &cluster->narrower, sizeof cluster->narrower);
    topology_key(&cluster->network.topology, key);
    for (int i = 0; i < cluster->between.count; i++) {
        const struct part_pair *pair = &cluster->between.pairs[i];
        const double link[] = {pair->bandwidth, pair->latency, pair->one, pair->other};

        cache_key_add(key, link, sizeof link);
    }
    numbers_key(cluster->gpu_slower, cluster_gpus(cluster), key);
    numbers_key(cluster->nic_shares, cluster_nics(cluster), key);
    for (int part = 0; part < cluster->part_count; part++)
        cache_key_add(key, &cluster->parts[part], sizeof cluster->parts[part]);
    for (int kind = 0; kind < cluster_kinds(cluster); kind++)
        cluster_kind_key(&cluster->kinds[kind], key);
}

double cluster_payload_share(const struct cluster *cluster, unsigned kinds, double share)
{
    for (int kind = 0; kind < cluster_kinds(cluster); kind++)
        if (kinds >> kind & 1 && cluster->kinds[kind].nics.share > 0)
            share = fmin(share, cluster->kinds[kind].nics.share);
    return share;
}

/* Of the parts, each estimate once. */
static const char *parts_estimates(struct arena *arena, const struct list *given, bool between)
{
    const struct part_spec *parts = given->items;
    const char *all = NULL;

    for (size_t i = 0; i < given->count; i++) {
        const char *own = cluster_estimates(arena, &parts[i].cluster, between);

        if (own && (!all || !strstr(all, own)))
            all = all ? arena_printf(arena, "%s; %s", all, own) : own;
    }
    return all;
}

const char *cluster_estimates(struct arena *arena, const struct cluster *cluster, bool between)
{
    const struct network *network = &cluster->network;
    const struct machine_kind *kind = &cluster->kinds[0];
    const char *own = between ? network->estimate : NULL, *profile = NULL;

    if (cluster->given.count)
        return parts_estimates(arena, &cluster->given, between);
    if (kind->communication && kind->communication->estimate)
        profile = arena_printf(arena, "communication profile %s: %s", kind->communication_spec->profile,
                               kind->communication->estimate);
    if (own)
        own = arena_printf(arena, "network %s: %s", network->name ? network->name : "", own);
    return own && profile ? arena_printf(arena, "%s; %s", own, profile) : own ? own : profile;
}
