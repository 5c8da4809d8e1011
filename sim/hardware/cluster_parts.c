/* Parts: a cluster whose file says `parts`. Each is read as a cluster of its own, with its platform; equal ones are of
 * one kind. And the GPUs and NICs that are slower than others of their kind. */
#include "hardware/slow_parts.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "config/conf.h"
#include "config/field.h"
#include "topology/topology.h"

enum { NODES_MAX = 1000000, NUMBER_MAX = 1048575 };

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
        cluster_load_value(arena, nodes_of(arena, cluster, node), cluster->given.count > 1, &spec->cluster, err))
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

int cluster_given_part_of(const struct cluster *cluster, int node)
{
    const struct part_spec *parts = cluster->given.items;
    int i = 0;

    while (i + 1 < (int)cluster->given.count && parts[i + 1].first <= node)
        i++;
    return i;
}

int cluster_load_parts(struct arena *arena, struct cluster *cluster, struct error *err)
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
    return cluster_load_between(arena, cluster, err);
}

static const struct field straggler_fields[] = {
    {KEY(straggler, gpu), .kind = FIELD_INT, .max = NUMBER_MAX, .required = true,
     .brief = "its number, node by node, from 0"},
    {KEY(straggler, slower), .kind = FIELD_QUANTITY, .unit = UNIT_NUMBER, .min = 1, .max = 1e6, .required = true,
     .brief = "how many times as long its computations take; 1: it is as fast as the others"},
};
const struct table straggler_table = {
    TABLE("stragglers", "a GPU that computes slower than the others", straggler, straggler_fields),
};

static const struct field slow_link_fields[] = {
    {.key = "node", AT(slow_link, of_node), .kind = FIELD_INT, .max = NUMBER_MAX, .required = true,
     .brief = "number of the node, from 0"},
    {KEY(slow_link, nic), .kind = FIELD_INT, .max = NUMBER_MAX, .required = true,
     .brief = "number of the NIC within the node, from 0"},
    {KEY(slow_link, share), .kind = FIELD_QUANTITY, .unit = UNIT_NUMBER, .min = 1e-6, .max = 1, .required = true,
     .brief = "share of its bandwidth that is left, in both directions; 1: it is as fast as the others"},
};
const struct table slow_link_table = {
    TABLE("slow_links", "a NIC that is slower than the others", slow_link, slow_link_fields),
};

/* Refuses a number that is not among `count`, which are of `owner` ("the cluster"). */
static int check_number(const struct table *table, const void *record, const char *key, int number, int count,
                        const char *owner, struct error *err)
{
    if (number < count)
        return 0;
    return error_clash(err, field_loc(table, record, key), "%s: %s: found %d, but %s has %d; expected %s%d",
                       table->name, key, number, owner, count, count > 1 ? "0 to " : "", count - 1);
}

static int set_gpu(const struct straggler *straggler, const struct cluster *cluster, double *slower,
                   struct error *err)
{
    if (check_number(&straggler_table, straggler, "gpu", straggler->gpu, cluster_gpus(cluster), "the cluster", err))
        return -1;
    if (slower[straggler->gpu] > 0)
        return error_add(err, EXIT_INPUT, field_loc(&straggler_table, straggler, "gpu"),
                         "stragglers: gpu: %d is named twice", straggler->gpu);
    slower[straggler->gpu] = straggler->slower;
    return 0;
}

static int set_nic(const struct slow_link *link, const struct cluster *cluster, double *shares, struct error *err)
{
    if (cluster->ideal)
        return error_clash(err, link->node->loc, "slow_links: the ideal cluster has no NICs; expected a "
                           "cluster with a network");
    if (check_number(&slow_link_table, link, "node", link->of_node, cluster->nodes, "the cluster", err) ||
        check_number(&slow_link_table, link, "nic", link->nic, cluster_node_nics(cluster, link->of_node), "a node",
                     err))
        return -1;
    if (cluster_nics_together(cluster, link->of_node) > 1)
        return error_clash(err, link->node->loc, "slow_links: each GPU of node %d uses %d NICs together, and a slow one "
                           "of these is not simulated; expected at most as many NICs as GPUs", link->of_node,
                           cluster_nics_together(cluster, link->of_node));
    int nic = cluster_node_nic(cluster, link->of_node, link->nic);
    if (shares[nic] > 0)
        return error_add(err, EXIT_INPUT, field_loc(&slow_link_table, link, "nic"),
                         "slow_links: NIC %d of node %d is named twice", link->nic, link->of_node);
    shares[nic] = link->share;
    return 0;
}

/* What nobody named is 1. NULL where all are. */
static const double *completed(double *values, int count)
{
    bool any = false;

    for (int i = 0; i < count; i++) {
        values[i] = values[i] > 0 ? values[i] : 1;
        any |= values[i] != 1;
    }
    return any ? values : NULL;
}

static bool has_slower_part(const struct cluster *cluster)
{
    for (int i = 0; i < cluster_given_parts(cluster); i++)
        if (cluster_given_part(cluster, i).slower > 1)
            return true;
    return false;
}

/* A part's factor holds for all of its GPUs, stragglers among them too. */
static void slow_down(const struct cluster *cluster, struct given_part part, double *slower)
{
    int first = cluster_node_gpu(cluster, part.first, 0);
    int end = first + part.nodes * cluster_node_gpus(cluster, part.first);

    for (int gpu = first; gpu < end && part.slower > 1; gpu++)
        slower[gpu] = (slower[gpu] > 0 ? slower[gpu] : 1) * part.slower;
}

int slow_parts_set(struct arena *arena, const struct list *stragglers, const struct list *slow_links,
                   struct cluster *cluster, struct error *err)
{
    int gpus = cluster_gpus(cluster), nics = cluster_nics(cluster), rc = 0;
    double *slower = stragglers->count || has_slower_part(cluster) ? ARENA_ARRAY(arena, double, gpus) : NULL;
    double *shares = slow_links->count ? ARENA_ARRAY(arena, double, nics) : NULL;

    for (size_t i = 0; i < stragglers->count; i++)
        if (set_gpu((const struct straggler *)stragglers->items + i, cluster, slower, err))
            rc = -1;
    for (size_t i = 0; i < slow_links->count; i++)
        if (set_nic((const struct slow_link *)slow_links->items + i, cluster, shares, err))
            rc = -1;
    for (int i = 0; slower && i < cluster_given_parts(cluster); i++)
        slow_down(cluster, cluster_given_part(cluster, i), slower);
    cluster->gpu_slower = slower ? completed(slower, gpus) : NULL;
    cluster->nic_shares = shares ? completed(shares, nics) : NULL;
    return rc;
}
