/* The tree of levels, the rails, and the choice among the kinds. */
#include "topology/simgrid_file.h"
#include "topology/topology_internal.h"

#include <math.h>

#include "base/base.h"

static int ceiling(int a, int b)
{
    return (a - 1) / b + 1;
}

static int level_count(const struct topology *keys)
{
    return keys->kind == TOPOLOGY_LEVELS ? (int)keys->levels.count : 1;
}

static const struct level *level_at(const struct topology *keys, int level)
{
    return (const struct level *)keys->levels.items + level;
}

/* Nodes of a unit of the level; a unit of a leaf-spine is a leaf. Past the cluster's nodes the size does not matter. */
static int unit_nodes(struct topology_of topology, int level)
{
    long long size = topology.keys->leaf_nodes;

    if (topology.keys->kind == TOPOLOGY_LEAF_SPINE)
        return (int)size;
    size = level_at(topology.keys, 0)->leaf_nodes;
    for (int k = 1; k <= level; k++) {
        size *= level_at(topology.keys, k)->units;
        size = size > topology.nodes && k < level ? topology.nodes : size;
    }
    return size > INT32_MAX ? INT32_MAX : (int)size;
}

static int unit_count(struct topology_of topology, int level)
{
    return ceiling(topology.nodes, unit_nodes(topology, level));
}

/* Links of the levels below, as many up as down. */
static int links_below(struct topology_of topology, int level)
{
    int links = 0;

    for (int k = 0; k < level; k++)
        links += 2 * unit_count(topology, k);
    return links;
}

static int tree_links(struct topology_of topology)
{
    return links_below(topology, level_count(topology.keys));
}

/* How many levels a message between the nodes leaves. */
static int levels_left(struct topology_of topology, int node, int other)
{
    int level = 0;

    while (level < level_count(topology.keys) &&
           node / unit_nodes(topology, level) != other / unit_nodes(topology, level))
        level++;
    return level;
}

static double level_latency(const struct topology *keys, int level)
{
    return keys->kind == TOPOLOGY_LEVELS ? level_at(keys, level)->latency : 0;
}

static void tree_way(struct topology_of topology, struct topology_end src, struct topology_end dst,
                     struct topology_way *way)
{
    int top = levels_left(topology, src.node, dst.node);

    for (int k = 0; k < top; k++) {
        way_through(way, links_below(topology, k) + src.node / unit_nodes(topology, k));
        way->latency += level_latency(topology.keys, k);
    }
    for (int k = top; k-- > 0;)
        way_through(way, links_below(topology, k) + unit_count(topology, k) + dst.node / unit_nodes(topology, k));
}

/* The level of a link; *unit: its unit; *up. */
static int level_of(struct topology_of topology, int link, int *unit, bool *up)
{
    int level = 0, count;

    for (; (count = unit_count(topology, level)) * 2 <= link; level++)
        link -= count * 2;
    *up = link < count;
    *unit = link % count;
    return level;
}

/* The NICs' bandwidth below a unit over the bandwidth of its uplinks, where no bandwidth is given: the product of all
 * levels up to this one, above the last level with a bandwidth of its own. */
static struct topology_link uplink(struct topology_of topology, int level, int unit)
{
    const struct topology *keys = topology.keys;
    int nodes = unit_nodes(topology, level);
    struct topology_link link = {NAN, 1, level_latency(keys, level) / 2, 0, nodes, false};

    if (keys->kind == TOPOLOGY_LEAF_SPINE)
        link.narrower = keys->oversubscription;
    for (int k = 0; keys->kind == TOPOLOGY_LEVELS && k <= level; k++) {
        const struct level *at = level_at(keys, k);

        if (!isnan(at->bandwidth)) {
            link.bandwidth = at->bandwidth;
            link.narrower = 1;
            continue;
        }
        link.narrower *= at->oversubscription;
        if (k > 0 && !isnan(link.bandwidth))
            link.bandwidth *= at->units / at->oversubscription;
    }
    link.first = (int)fmin((double)unit * nodes, topology.nodes);
    return link;
}

static struct topology_link tree_link(struct topology_of topology, int link)
{
    int unit;
    bool up;
    int level = level_of(topology, link, &unit, &up);

    return uplink(topology, level, unit);
}

static void tree_name(struct topology_of topology, int link, char *buffer, size_t size)
{
    static const char *const usual[LEVELS_MAX] = {"leaf", "pod", "zone", "region"};
    int unit, level;
    bool up;

    level = level_of(topology, link, &unit, &up);
    const char *name = topology.keys->kind == TOPOLOGY_LEVELS ? level_at(topology.keys, level)->name : NULL;
    snprintf(buffer, size, "%s%d.%s", name ? name : usual[level], unit, up ? "up" : "down");
}

static int tree_block(struct topology_of topology)
{
    return unit_nodes(topology, 0);
}

static double tree_crowding(struct topology_of topology, int node, int other, double nic)
{
    int top = levels_left(topology, node, other);
    double most = 1;

    for (int k = 0; k < top; k++) {
        struct topology_link up = uplink(topology, k, 0);

        most = fmax(most, isnan(up.bandwidth) ? up.narrower : (double)up.nodes * topology.nics * nic / up.bandwidth);
    }
    return most;
}

static int rail_nodes(struct topology_of topology)
{
    return topology.keys->unit_nodes ? topology.keys->unit_nodes : topology.nodes;
}

static int rails(struct topology_of topology)
{
    return ceiling(topology.nodes, rail_nodes(topology)) * topology.nics;
}

static int rail_links(struct topology_of topology)
{
    return 2 * rails(topology);
}

static void rail_way(struct topology_of topology, struct topology_end src, struct topology_end dst,
                     struct topology_way *way)
{
    int from = src.node / rail_nodes(topology) * topology.nics + src.nic;
    int to = dst.node / rail_nodes(topology) * topology.nics + dst.nic;

    if (from == to)
        return;
    way_through(way, from);
    way_through(way, rails(topology) + to);
}

static struct topology_link rail_link(struct topology_of topology, int link)
{
    int unit = link % rails(topology) / topology.nics, nodes = rail_nodes(topology);

    return (struct topology_link){NAN, topology.keys->oversubscription, 0, unit * nodes, nodes, true};
}

static void rail_name(struct topology_of topology, int link, char *buffer, size_t size)
{
    int rail = link % rails(topology);

    snprintf(buffer, size, "unit%d.rail%d.%s", rail / topology.nics, rail % topology.nics,
             link < rails(topology) ? "up" : "down");
}

/* Where rails meet at the spine alone, even nodes of a unit use the uplinks. */
static int rail_block(struct topology_of topology)
{
    return topology.keys->across_rails == ACROSS_SPINE ? 1 : rail_nodes(topology);
}

static double rail_crowding(struct topology_of topology, int node, int other, double nic)
{
    bool within = node / rail_nodes(topology) == other / rail_nodes(topology);

    (void)nic;
    return within && topology.keys->across_rails != ACROSS_SPINE ? 1 : topology.keys->oversubscription;
}

static int no_links(struct topology_of topology)
{
    (void)topology;
    return 0;
}

static void no_way(struct topology_of topology, struct topology_end src, struct topology_end dst,
                   struct topology_way *way)
{
    (void)topology, (void)src, (void)dst, (void)way;
}

static int all_nodes(struct topology_of topology)
{
    return topology.nodes;
}

static double uncrowded(struct topology_of topology, int node, int other, double nic)
{
    (void)topology, (void)node, (void)other, (void)nic;
    return 1;
}

static const struct topology_class nonblocking = {no_links, no_way, NULL, NULL, all_nodes, uncrowded};
static const struct topology_class tree = {tree_links, tree_way, tree_link, tree_name, tree_block, tree_crowding};
static const struct topology_class rail = {rail_links, rail_way, rail_link, rail_name, rail_block, rail_crowding};

static const struct topology_class *class_of(struct topology_of topology)
{
    static const struct topology_class *const classes[] = {
        [TOPOLOGY_NONBLOCKING] = &nonblocking, [TOPOLOGY_LEAF_SPINE] = &tree, [TOPOLOGY_LEVELS] = &tree,
        [TOPOLOGY_RAIL] = &rail, [TOPOLOGY_TORUS] = &topology_torus, [TOPOLOGY_DRAGONFLY] = &topology_dragonfly,
        [TOPOLOGY_XML] = &topology_file,
    };

    return classes[topology.keys->kind];
}

int topology_longest(const struct topology *keys)
{
    int longest = 2;

    if (keys->kind == TOPOLOGY_LEVELS)
        return 2 * (int)keys->levels.count;
    if (keys->kind == TOPOLOGY_XML)
        return keys->network->longest;
    if (keys->kind == TOPOLOGY_DRAGONFLY)
        return keys->routing == ROUTING_VALIANT ? 5 : 3;
    for (size_t k = 0; keys->kind == TOPOLOGY_TORUS && k < keys->dims.count; k++)
        longest += ((const int *)keys->dims.items)[k];
    return longest < WAY_MAX ? longest : WAY_MAX;
}

int topology_links(struct topology_of topology)
{
    return class_of(topology)->links(topology);
}

void topology_way(struct topology_of topology, struct topology_end src, struct topology_end dst,
                  struct topology_way *way)
{
    way->count = 0;
    way->latency = 0;
    class_of(topology)->way(topology, src, dst, way);
}

struct topology_link topology_link(struct topology_of topology, int link)
{
    return class_of(topology)->link(topology, link);
}

void topology_link_name(struct topology_of topology, int link, char *buffer, size_t size)
{
    class_of(topology)->name(topology, link, buffer, size);
}

int topology_block(struct topology_of topology)
{
    return class_of(topology)->block(topology);
}

bool topology_blocks_meet(struct topology_of topology, int block, int other)
{
    int kind = topology.keys->kind;
    bool apart = kind == TOPOLOGY_LEAF_SPINE || (kind == TOPOLOGY_LEVELS && topology.keys->levels.count == 1) ||
                 (kind == TOPOLOGY_RAIL && topology.keys->across_rails != ACROSS_SPINE);

    return apart ? block == other : kind != TOPOLOGY_NONBLOCKING || block == other;
}

bool topology_is_tree(struct topology_of topology)
{
    return class_of(topology) == &tree || class_of(topology) == &nonblocking;
}

double topology_crowding(struct topology_of topology, int node, int other, double nic)
{
    return node == other ? 1 : class_of(topology)->crowding(topology, node, other, nic);
}
