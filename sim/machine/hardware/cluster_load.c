/* cluster_load: reads the value of `cluster:`. Where it says `parts`, each is read as a cluster of its own, with its
 * platform; equal ones are of one kind; and the links between them are read. */
#include "hardware/cluster.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/units.h"
#include "config/conf.h"
#include "config/field.h"
#include "topology/topology.h"

enum { NODES_MAX = 1000000 };

/* Keys of nodes, which stand in the parts. */
static int check_node_keys(const struct cluster *cluster, struct error *err)
{
    static const char *const keys[] = {"nodes", "gpus_per_node", "gpus_per_switch", "gpu", "inside", "host"};
    const struct node *map = cluster->node;
    int status = 0;

    if (cluster->base && !node_get(cluster->base, "parts"))
        return error_clash(err, node_loc(map, "platform"), "cluster: platform: '%s' and 'parts' both give nodes; "
                           "expected it in a part", cluster->platform);
    for (size_t i = 0; i < COUNT(keys); i++)
        if (node_get(map, keys[i]))
            status = error_clash(err, node_loc(map, keys[i]), "cluster: %s: stands next to 'parts', each of which says "
                                 "its own; expected it in the parts, or no parts", keys[i]);
    return status;
}

/* Part `a` and part `b` together are a key, "a-b", and a range of nodes has a '-'. */
static int check_name(const struct cluster *cluster, const struct part_spec *spec, struct error *err)
{
    enum { MOST = 20 };              /* so that names of links are whole */
    static const char taken[] = "auto all none any";
    const struct part_spec *parts = cluster->given.items;
    struct loc loc = node_loc(spec->node, "name");
    bool plain = *spec->name && !isdigit((unsigned char)*spec->name);

    for (const char *c = spec->name; *c; c++)
        plain &= isalnum((unsigned char)*c) || *c == '_' || *c == '.';
    if (!plain || strlen(spec->name) > MOST || word_in(taken, spec->name))
        return error_add(err, EXIT_INPUT, loc, "parts: name: found '%s'; expected at most %d letters, digits, '_' and '.', a "
                         "letter first, and none of: %s", spec->name, (int)MOST, taken);
    for (const struct part_spec *other = parts; other < spec; other++)
        if (!strcmp(other->name, spec->name))
            return error_add(err, EXIT_INPUT, loc, "parts: name: two parts are called '%s'; expected a name for each",
                             spec->name);
    return 0;
}

/* The part's mapping without `name` and `slower`, over the keys that the cluster gives for all parts. A network that
 * the part names replaces the cluster's network as a whole. */
static struct node *nodes_of(struct arena *arena, const struct cluster *cluster, const struct node *part)
{
    static const char *const shared[] = {"network", "communication"};
    struct node *all = node_mapping(arena), *own = node_mapping(arena);
    bool named = node_at(part, "network.name");

    for (size_t i = 0; i < COUNT(shared); i++)
        if (node_get(cluster->node, shared[i]) && !(i == 0 && named))
            node_put(arena, all, shared[i], node_get(cluster->node, shared[i]));
    for (size_t i = 0; i < part->count; i++)
        if (!word_in("name slower", part->keys[i])) {
            node_put(arena, own, part->keys[i], part->items[i]);
            own->key_locs[own->count - 1] = part->key_locs[i];
        }
    own = node_merge(arena, all, own);
    own->loc = part->loc;
    return own;
}

static int load_part(struct arena *arena, const struct cluster *cluster, struct part_spec *spec, struct error *err)
{
    const struct node *node = spec->node;
    struct node *own = node_mapping(arena);

    if (node->kind != NODE_MAPPING)
        return error_add(err, EXIT_INPUT, node->loc,
                         "parts: expected a mapping such as {name: old, platform: dgx-a100, "
                         "nodes: 2}");
    if (node_get(node, "parts"))
        return error_add(err, EXIT_INPUT, node_loc(node, "parts"), "parts: a part has no parts; expected its nodes");
    own->loc = node->loc;
    for (size_t i = 0; i < node->count; i++)
        if (word_in("name slower", node->keys[i]))
            node_put(arena, own, node->keys[i], node->items[i]);
    if (field_parse(arena, &part_table, own, spec, err))
        return -1;
    spec->node = node;
    if (check_name(cluster, spec, err) ||
        cluster_load_nodes(arena, nodes_of(arena, cluster, node), cluster->given.count > 1, &spec->cluster, err))
        return -1;
    if (spec->cluster.given.count)
        return error_clash(err, node_loc(node, "platform"),
                           "parts: the platform of '%s' has parts of its own; expected "
                           "a platform of equal nodes",
                           spec->name);
    if (!spec->cluster.nodes)
        return error_add(err, EXIT_INPUT, node_loc(node, "nodes"),
                         "parts: '%s' does not say how many nodes it has; "
                         "expected 'nodes', 1 or more",
                         spec->name);
    return 0;
}

static bool same_bytes(struct cache_key *a, struct cache_key *b)
{
    bool same = a->count == b->count && !memcmp(a->items, b->items, a->count);

    free(a->items);
    free(b->items);
    return same;
}

static bool same_kind(const struct machine_kind *kind, const struct machine_kind *other)
{
    struct cache_key keys[2] = {{0}, {0}};

    cluster_kind_key(kind, &keys[0]);
    cluster_kind_key(other, &keys[1]);
    return same_bytes(&keys[0], &keys[1]);
}

static bool same_topology(const struct topology *topology, const struct topology *other)
{
    struct cache_key keys[2] = {{0}, {0}};

    field_key(&topology_table, topology, &keys[0]);
    field_key(&topology_table, other, &keys[1]);
    return same_bytes(&keys[0], &keys[1]);
}

/* Checks the keys of the whole network: if one part has such a key, all parts must have it. */
static int check_alike(const struct part_spec *first, const struct part_spec *spec, struct error *err)
{
    const struct cluster *one = &first->cluster, *other = &spec->cluster;
    struct loc loc = spec->node->loc;

    if (one->ideal != other->ideal)
        return error_clash(err, loc, "parts: '%s' is on the ideal network and '%s' is not; expected 'platform: ideal' "
                           "for all parts or for none", one->ideal ? first->name : spec->name,
                           one->ideal ? spec->name : first->name);
    if (!one->kinds[0].communication != !other->kinds[0].communication)
        return error_clash(err, loc, "parts: '%s' has a communication profile and '%s' has none; expected "
                           "'communication' in both, or beside 'parts' for all",
                           one->kinds[0].communication ? first->name : spec->name,
                           one->kinds[0].communication ? spec->name : first->name);
    if (!same_topology(&one->network.topology, &other->network.topology))
        return error_clash(err, loc, "parts: '%s' and '%s' have networks of different 'topology'; expected one for all, "
                           "in 'network' beside 'parts'", first->name, spec->name);
    return 0;
}

/* Adds the part's nodes to the cluster, and its kind where no other part is of it. */
static int add_part(struct cluster *cluster, struct part_spec *spec, struct error *err)
{
    const struct machine_kind *own = &spec->cluster.kinds[0];
    int kinds = cluster->part_count ? cluster_kinds(cluster) : 0, kind = 0;

    spec->first = cluster->nodes;
    if (spec->cluster.nodes > NODES_MAX - cluster->nodes)
        return error_add(err, EXIT_INPUT, node_loc(spec->node, "nodes"), "parts: more than %d nodes in all",
                         (int)NODES_MAX);
    while (kind < kinds && !same_kind(&cluster->kinds[kind], own))
        kind++;
    if (kind == kinds)
        cluster->kinds[kind] = *own;
    if (!cluster->part_count || cluster->parts[cluster->part_count - 1].kind != kind)
        cluster->parts[cluster->part_count++] = (struct machine_part){kind, spec->first};
    cluster->nodes += spec->cluster.nodes;
    return 0;
}

static const struct field pair_fields[] = {
    {KEY(part_pair, bandwidth), .kind = FIELD_QUANTITY, .unit = UNIT_BANDWIDTH, .positive = true, .required = true,
     .brief = "bandwidth in each direction, of all messages between the two parts together"},
    {KEY(part_pair, latency), .kind = FIELD_QUANTITY, .unit = UNIT_TIME,
     .brief = "latency of a message from GPU to GPU, one way; left out: that of the NICs"},
};

static const struct table pair_table = {TABLE("between", "a link between two parts", part_pair, pair_fields)};

/* The part whose name the text begins with, up to a '-' or its end; -1: none. */
static int part_named(const struct cluster *cluster, const char *text)
{
    const struct part_spec *parts = cluster->given.items;
    size_t length = strcspn(text, "-");

    for (size_t i = 0; i < cluster->given.count; i++)
        if (strlen(parts[i].name) == length && !strncmp(parts[i].name, text, length))
            return (int)i;
    return -1;
}

static int check_pair(const struct cluster *cluster, const struct part_pair *pair, const char *key, struct loc loc,
                      struct error *err)
{
    const struct part_spec *parts = cluster->given.items;
    const struct nics *one = &parts[pair->one].cluster.kinds[0].nics, *other = &parts[pair->other].cluster.kinds[0].nics;
    const struct between *between = &cluster->between;
    char text[2][48];

    for (const struct part_pair *before = between->pairs; before < pair; before++)
        if (before->one == pair->one && before->other == pair->other)
            return error_clash(err, loc, "between: %s: these parts have a link already, in the other order; expected one of "
                               "the two", key);
    if (pair->latency < (one->latency + other->latency) / 2)         /* NaN: as the NICs */
        return error_clash(err, loc, "between: %s: latency: %s is less than the NICs take, %s; expected at least that, or "
                           "another 'latency' of their networks", key,
                           unit_format_short(UNIT_TIME, pair->latency, text[0], sizeof text[0]),
                           unit_format_short(UNIT_TIME, (one->latency + other->latency) / 2, text[1], sizeof text[1]));
    return 0;
}

static int load_pair(struct arena *arena, struct cluster *cluster, size_t i, struct field *field, struct error *err)
{
    struct between *between = &cluster->between;
    struct part_pair *pair = &between->pairs[between->count];
    const char *key = between->node->keys[i], *dash = strchr(key, '-');
    struct loc loc = between->node->key_locs[i];
    int one = part_named(cluster, key), other = dash ? part_named(cluster, dash + 1) : -1;

    if (one < 0 || other < 0 || one == other)
        return error_add(err, EXIT_INPUT, loc, "between: '%s' is no pair of parts; expected two of their names such as "
                         "old-new", key);
    if (field_parse(arena, &pair_table, between->node->items[i], pair, err))
        return -1;
    pair->one = one < other ? one : other;
    pair->other = one < other ? other : one;
    *field = (struct field){.key = key, .kind = FIELD_RECORD, .table = &pair_table,
                            .offset = offsetof(struct between, pairs) + (size_t)between->count * sizeof *pair};
    if (check_pair(cluster, pair, key, loc, err))
        return -1;
    between->count++;
    return 0;
}

/* Reads the links of `between`. The parts are loaded before. */
static int load_between(struct arena *arena, struct cluster *cluster, struct error *err)
{
    struct between *between = &cluster->between;
    const struct node *node = between->node;
    struct field *fields = ARENA_ARRAY(arena, struct field, PAIRS_MAX + 1);
    struct table *table = ARENA_ARRAY(arena, struct table, 1);
    int status = 0;

    if (!node)
        return 0;
    if (node->kind == NODE_MAPPING && node->count > PAIRS_MAX)
        return error_add(err, EXIT_INPUT, node->loc, "between: found %zu pairs of parts; %d parts have at most %d", node->count,
                         PARTS_MAX, PAIRS_MAX);
    if (node->kind != NODE_MAPPING || !node->count)
        return error_add(err, EXIT_INPUT, node->loc, "between: expected a mapping of pairs of parts such as {old-new: "
                         "{bandwidth: 100 Gb/s}}");
    if (cluster->ideal)
        return error_clash(err, node->loc, "between: the network of the ideal cluster takes no time; expected no between");
    if (cluster_topology(cluster) != TOPOLOGY_NONBLOCKING)
        return error_clash(err, node->loc, "between: links between parts go with a nonblocking network alone; expected no "
                           "'topology', or 'levels' with a bandwidth in the place of between");
    for (size_t i = 0; i < node->count; i++)
        if (load_pair(arena, cluster, i, &fields[between->count], err))
            status = -1;
    *table = (struct table){.name = "between", .brief = "links between parts", .fields = fields,
                            .count = (size_t)between->count, .size = 0, .node_offset = offsetof(struct between, node)};
    between->table = table;
    return status;
}

/* Loads each part, and makes the kinds of node of them. */
static int load_parts(struct arena *arena, struct cluster *cluster, struct error *err)
{
    struct part_spec *parts = cluster->given.items;
    size_t count = cluster->given.count;
    int status = check_node_keys(cluster, err);

    if (count > PARTS_MAX)
        return error_add(err, EXIT_INPUT, cluster->given.node->loc, "cluster: parts: found %zu; expected at most %d",
                         count, (int)PARTS_MAX);
    for (size_t i = 0; i < count && !status; i++)
        status = load_part(arena, cluster, &parts[i], err);
    for (size_t i = 1; i < count && !status; i++)
        status = check_alike(&parts[0], &parts[i], err);
    if (status)
        return -1;
    cluster->nodes = cluster->part_count = 0;
    cluster->network = parts[0].cluster.network;
    cluster->ideal = parts[0].cluster.ideal;
    for (size_t i = 0; i < count && !status; i++)
        status = add_part(cluster, &parts[i], err);
    if (status || cluster_topology_settle(arena, cluster, err))
        return -1;
    for (size_t i = 0; i < count; i++)
        parts[i].cluster.network.topology = cluster->network.topology;
    return load_between(arena, cluster, err);
}

int cluster_load(struct arena *arena, const struct node *value, struct cluster *cluster, struct error *err)
{
    if (cluster_load_nodes(arena, value, false, cluster, err))
        return -1;
    return cluster->given.node ? load_parts(arena, cluster, err) : 0;
}
