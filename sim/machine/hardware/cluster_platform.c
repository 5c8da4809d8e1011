#include "hardware/cluster.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "config/conf.h"
#include "config/field.h"
#include "config/named.h"
#include "files/data.h"
#include "topology/simgrid_file.h"

enum { CHAIN_MAX = 8 };

/* A platform's file may name another platform that it changes: the files of this chain, and whether it ends at the
 * ideal cluster. */
struct chain {
    const char *paths[CHAIN_MAX];    /* absolute */
    const char *shown[CHAIN_MAX];    /* for messages */
    int count;
    bool ideal;
};

/* Adds a file to the chain of platforms; an error if the chain already contains it or is too long. */
static int chain_enter(struct arena *arena, struct chain *chain, const char *path, struct loc loc, struct error *err)
{
    const char *real = data_absolute(arena, path, err);

    if (!real)
        return -1;
    for (int i = 0; i < chain->count; i++) {
        if (strcmp(chain->paths[i], real) != 0)
            continue;
        const char *way = chain->shown[i];
        for (int k = i + 1; k < chain->count; k++)
            way = arena_printf(arena, "%s -> %s", way, chain->shown[k]);
        return error_add(err, EXIT_INPUT, loc, "the platform is based on itself: %s -> %s", way, chain->shown[i]);
    }
    if (chain->count == CHAIN_MAX)
        return error_add(err, EXIT_INPUT, loc, "more than %d platforms, each based on the next", (int)CHAIN_MAX);
    chain->shown[chain->count] = path;
    chain->paths[chain->count++] = real;
    return 0;
}

/* The mapping over its platform: keys of both are merged, and where the platform has a scalar that stands for a mapping
 * (`gpu: a100-80gb`) below a mapping (`gpu: {memory: 96 GB}`) they are merged too. NULL after an error. */
static struct node *merge(struct arena *arena, const struct node *base, const struct node *map, struct error *err)
{
    struct node *copy = node_merge(arena, base, node_mapping(arena));

    for (size_t i = 0; i < map->count; i++) {
        const struct node *value = map->items[i];

        if (value->kind == NODE_MAPPING && value->count > 0 &&
            field_open(arena, &cluster_table, copy, arena_printf(arena, "%s.%s", map->keys[i], value->keys[0]), err))
            return NULL;
    }
    return node_merge(arena, copy, map);
}

/* An integer below a mapping; 0 if there is none. */
static long long integer_of(const struct node *map, const char *key)
{
    const struct node *value = map && map->kind == NODE_MAPPING ? node_get(map, key) : NULL;

    return value && value->kind == NODE_SCALAR ? strtoll(value->text, NULL, 10) : 0;
}

/* A mapping that has fewer GPUs a node than its platform has NICs, and says nothing of NICs, has one NIC per GPU. */
static void drop_spare_nics(struct arena *arena, const struct node *map, struct node *merged)
{
    const struct node *gpus = node_get(map, "gpus_per_node");
    long long count = integer_of(map, "gpus_per_node");

    if (count < 1 || integer_of(node_get(map, "network"), "nics") ||
        integer_of(node_get(merged, "network"), "nics") <= count)
        return;
    struct node *network = node_merge(arena, node_get(merged, "network"), node_mapping(arena));
    struct node *nics = node_scalar(arena, gpus->text, false);

    nics->loc = gpus->loc;
    node_put(arena, network, "nics", nics);
    node_put(arena, merged, "network", network);
}

static const struct data_kind network_files = {"platforms/networks", "network", NULL};

/* A mapping whose `network` names a file: with the keys of that file, which its own keys replace. NULL after an error. */
static const struct node *name_network(struct arena *arena, const struct node *map, struct error *err)
{
    const struct node *value = node_get(map, "network"), *root;
    bool scalar = value && value->kind == NODE_SCALAR && *value->text;
    const struct node *name = scalar ? value : value ? node_get(value, "name") : NULL;
    const char *path;

    if (!name || name->kind != NODE_SCALAR)
        return map;
    path = data_resolve(arena, &network_files, name->text, name->loc, err);
    if (!path || conf_shared(arena, path, &root, err))
        return NULL;
    if (root->kind != NODE_MAPPING || node_get(root, "name") || node_get(root, "network")) {
        error_add(err, EXIT_INPUT, root->loc, "this is not a network; expected the keys below cluster.network but 'name'");
        return NULL;
    }
    struct node *network = node_merge(arena, root, scalar ? node_mapping(arena) : value);
    struct node *named = node_merge(arena, map, node_mapping(arena));
    struct node *real = node_scalar(arena, data_is_path(name->text) ? data_absolute(arena, path, err) : name->text, true);

    if (!real->text)
        return NULL;
    real->loc = network->loc = name->loc;
    node_put(arena, network, "name", real);
    node_put(arena, named, "network", network);
    return named;
}

/* Removes the keys of a named network that describe that network only, when another one replaces it. */
static const struct node *forget_network(struct arena *arena, const struct node *base, const struct node *map)
{
    static const char own[] = "name title estimate share thread_rate threads";
    const struct node *network = node_get(base, "network"), *other = node_get(map, "network");
    struct node *kept, *copy;

    if (!network || network->kind != NODE_MAPPING || !node_get(network, "name") || !other ||
        other->kind != NODE_MAPPING || !node_get(other, "name"))
        return base;
    kept = node_mapping(arena);
    kept->loc = network->loc;
    for (size_t i = 0; i < network->count; i++)
        if (!word_in(own, network->keys[i]))
            node_put(arena, kept, network->keys[i], network->items[i]);
    copy = node_merge(arena, base, node_mapping(arena));
    node_put(arena, copy, "network", kept);
    return copy;
}

/* The mapping merged over its platform, *base, which may itself be merged over another one; NULL after an error. */
static const struct node *resolve_platform(struct arena *arena, const struct node *map, struct chain *chain,
                                           const struct node **base, struct error *err)
{
    static const struct data_kind kind = {"platforms", "platform", "ideal"};
    const struct node *name = node_get(map, "platform"), *inner, *root, *below = NULL;
    struct node *merged;

    *base = NULL;
    map = name_network(arena, map, err);
    if (!map)
        return NULL;
    if (!name || name->kind != NODE_SCALAR)
        return map;
    if (strcmp(name->text, "ideal") == 0) {
        chain->ideal = true;
        return map;
    }
    const char *path = data_resolve(arena, &kind, name->text, name->loc, err);
    int place = chain->count;
    if (!path || chain_enter(arena, chain, path, name->loc, err) || conf_shared(arena, path, &root, err))
        return NULL;
    if (root->kind != NODE_MAPPING) {
        error_add(err, EXIT_INPUT, root->loc, "this is not a platform; expected a mapping with the keys of a cluster");
        return NULL;
    }
    if (node_get(root, "cluster")) {
        error_add(err, EXIT_INPUT, name->loc,
                  "cluster: '%s' is a scenario; expected a file that holds the keys of a cluster", name->text);
        return NULL;
    }
    inner = node_get(root, "platform");
    if (inner && (inner->kind != NODE_SCALAR || node_is_null(inner))) {
        error_add(err, EXIT_INPUT, inner->loc, "platform: expected the name of another platform, or a path");
        return NULL;
    }
    *base = resolve_platform(arena, root, chain, &below, err);
    if (!*base)
        return NULL;
    merged = merge(arena, forget_network(arena, *base, map), map, err);
    if (!merged)
        return NULL;
    drop_spare_nics(arena, map, merged);
    struct node *real = node_scalar(arena, data_is_path(name->text) ? chain->paths[place] : data_stem(arena, path), true);
    real->loc = name->loc;
    node_put(arena, merged, "platform", real);
    return merged;
}

int cluster_network_file(struct arena *arena, struct cluster *cluster, struct error *err)
{
    const char *name = cluster->network.name;

    cluster->network.file = !name ? NULL :
                            data_resolve(arena, &network_files, name, node_loc(cluster->network.node, "name"), err);
    return name && !cluster->network.file ? -1 : 0;
}

struct node *cluster_mapping(struct arena *arena, const struct node *value, struct error *err)
{
    if (!value || value->kind == NODE_SEQUENCE || (value->kind == NODE_SCALAR && !*value->text)) {
        error_add(err, EXIT_INPUT, value ? value->loc : (struct loc){0},
                  "cluster: expected a platform's name, a path, 'ideal' or a mapping, found %s",
                  value && value->kind == NODE_SEQUENCE ? "a list" : "nothing");
        return NULL;
    }
    struct node *map = node_mapping(arena);
    map->loc = value->loc;
    if (value->kind == NODE_SCALAR) {
        struct node *name = node_scalar(arena, value->text, value->quoted);

        name->loc = value->loc;
        node_put(arena, map, "platform", name);
        return map;
    }
    return node_merge(arena, map, value);
}

const struct node *cluster_platform(struct arena *arena, const struct node *map, bool *ideal, const struct node **base,
                                    struct error *err)
{
    struct chain chain = {0};
    const struct node *whole = resolve_platform(arena, map, &chain, base, err);

    *ideal = chain.ideal;
    return whole;
}

int cluster_topology_settle(struct arena *arena, struct cluster *cluster, struct error *err)
{
    struct topology *topology = &cluster->network.topology;
    long long gpus = 0;

    if (topology_check(topology, &cluster->nodes, err))
        return -1;
    if (topology->kind != TOPOLOGY_XML)
        return 0;
    for (int node = 0; node < cluster->nodes; node++)
        gpus += cluster_node_gpus(cluster, node);
    if (gpus > FILE_HOSTS_MAX)
        return error_add(err, EXIT_INPUT, topology->node->loc, "topology: xml: for %lld GPUs; expected at most %d, as a file "
                         "has a route from each to each", gpus, (int)FILE_HOSTS_MAX);
    int *first = ARENA_ARRAY(arena, int, cluster->nodes + 1);
    for (int node = 0; node < cluster->nodes; node++)
        first[node + 1] = first[node] + cluster_node_gpus(cluster, node);
    return simgrid_file_load(arena, topology, (struct hosts){cluster->nodes, first}, err);
}
