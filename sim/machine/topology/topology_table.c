/* The keys of a topology, and what of them goes together. */
#include "topology/simgrid_file.h"
#include "topology/topology_internal.h"

#include "base/cache.h"

#include <math.h>
#include <string.h>

#include "base/base.h"
#include "config/field.h"

enum { MOST_NODES = 1000000, MOST_PER_GROUP = 4096, MOST_LINKS = 1 << 26 };

static const char *const kinds[] = ENUM_NAMES(TOPOLOGIES);
static const char *const across_rails[] = ENUM_NAMES(ACROSS_RAILS);
static const char *const routings[] = ENUM_NAMES(ROUTINGS);

static const struct field level_fields[] = {
    {KEY(level, name), .kind = FIELD_STRING,
     .brief = "what a unit is called in the names of links; left out: leaf, pod, zone, region"},
    {KEY(level, leaf_nodes), .kind = FIELD_INT, .min = 1, .max = MOST_NODES,
     .brief = "of the first level: number of nodes of a unit"},
    {KEY(level, units), .kind = FIELD_INT, .min = 1, .max = MOST_NODES,
     .brief = "of every other level: number of units of the level below it that make one of its units"},
    {KEY(level, oversubscription), .kind = FIELD_QUANTITY, .unit = UNIT_NUMBER, .min = 1, .max = 1e6, .fallback = "1",
     .brief = "bandwidth that comes up from below divided by the bandwidth of the unit's uplinks"},
    {KEY(level, bandwidth), .kind = FIELD_QUANTITY, .unit = UNIT_BANDWIDTH, .positive = true,
     .brief = "instead of oversubscription: bandwidth of the uplinks of a unit together, in one direction (of two "
              "sites: of the line between them)"},
    {KEY(level, latency), .kind = FIELD_QUANTITY, .unit = UNIT_TIME, .fallback = "0 s",
     .brief = "time that a message takes longer, one way, if it leaves a unit"},
};

static const struct table level_table = {
    TABLE("levels", "a level of a fat tree, the lowest first: the units in which its nodes are, and their uplinks",
          level, level_fields),
};

static const char *const kind_briefs[] = {
    "no message waits for another one between the NICs", "nodes below leaf switches, which have uplinks to a spine",
    "a fat tree of several levels", "NIC i of each node of a unit is on the unit's switch i",
    "links to the neighbours in each dimension, and no switches",
    "groups of routers, connected in pairs within a group and between groups",
    "the links and routes between nodes of a file of SimGrid's", NULL,
};

static const struct field host_fields[] = {
    {KEY(host_name, name), .kind = FIELD_STRING, .required = true, .brief = "a name, or several as node-*"},
};
static const struct table host_table = {
    TABLE("hosts", "hosts of a platform file of SimGrid's", host_name, host_fields), .shorthand = "name", .bare = true,
};

/* New keys have no defaults here, so that a topology that does not use them does not show them. topology_check sets
 * them. */
static const struct field topology_fields[] = {
    {KEY(topology, kind), .kind = FIELD_CHOICE, .choices = kinds, .fallback = "nonblocking",
     .choice_briefs = kind_briefs, .brief = "the kind of network; left out: by the keys that are given"},
    {KEY(topology, leaf_nodes), .kind = FIELD_INT, .fallback = "0", .max = MOST_NODES,
     .brief = "number of nodes per leaf switch"},
    {KEY(topology, oversubscription), .kind = FIELD_QUANTITY, .unit = UNIT_NUMBER, .min = 1, .max = 1e6,
     .fallback = "1", .brief = "bandwidth of all NICs of a leaf switch divided by the bandwidth of its uplinks"},
    {KEY(topology, levels), .kind = FIELD_LIST, .table = &level_table,
     .brief = "levels: a fat tree, as [{leaf_nodes: 16}, {units: 8, oversubscription: 7}]; two sites: [{name: site, "
              "leaf_nodes: 32, bandwidth: 100 Gb/s, latency: 5 ms}]"},
    {KEY(topology, unit_nodes), .kind = FIELD_INT, .min = 1, .max = MOST_NODES,
     .brief = "rail: number of nodes of a unit, which has a switch for each NIC of a node; left out: all nodes"},
    {KEY(topology, across_rails), .kind = FIELD_CHOICE, .choices = across_rails,
     .choice_briefs = NAMES("inside the sender's node to the GPU of that rail, then on that rail (PXN of NCCL)",
                            "by the spine", "an error"),
     .brief = "rail: the way to a NIC of another rail; left out: nvlink"},
    {KEY(topology, dims), .kind = FIELD_INTS, .min = 2, .max = MOST_NODES,
     .brief = "torus: number of nodes in each dimension; their product is the number of nodes"},
    {KEY(topology, wrap), .kind = FIELD_BOOL,
     .brief = "torus: whether the last node of a dimension has a link to the first; left out: true"},
    {KEY(topology, link), .kind = FIELD_QUANTITY, .unit = UNIT_BANDWIDTH, .positive = true,
     .brief = "torus, dragonfly: bandwidth of a link in one direction; left out: of a NIC"},
    {KEY(topology, hop), .kind = FIELD_QUANTITY, .unit = UNIT_TIME,
     .brief = "torus, dragonfly: time that a message takes longer for each such link; left out: 0 s"},
    {KEY(topology, groups), .kind = FIELD_INT, .min = 1, .max = MOST_NODES, .brief = "dragonfly: number of groups"},
    {KEY(topology, routers), .kind = FIELD_INT, .min = 1, .max = MOST_PER_GROUP,
     .brief = "dragonfly: number of routers of a group"},
    {KEY(topology, nodes_per_router), .kind = FIELD_INT, .min = 1, .max = MOST_PER_GROUP,
     .brief = "dragonfly: number of nodes of a router"},
    {KEY(topology, global_links), .kind = FIELD_INT, .min = 1, .max = MOST_PER_GROUP,
     .brief = "dragonfly: number of links of a router to other groups"},
    {KEY(topology, global_link), .kind = FIELD_QUANTITY, .unit = UNIT_BANDWIDTH, .positive = true,
     .brief = "dragonfly: bandwidth of a link between groups in one direction; left out: of a link within a group"},
    {KEY(topology, routing), .kind = FIELD_CHOICE, .choices = routings,
     .choice_briefs = NAMES("the shortest way", "by a third group, which spreads what two groups send each other"),
     .brief = "dragonfly: the way to another group; left out: minimal"},
    {KEY(topology, xml), .kind = FIELD_STRING,
     .brief = "xml: a platform file of SimGrid's, FILE.xml, whose hosts host-N.gpu-M are GPU M of node N: messages between "
              "nodes cross its links between their NICs, and take its latencies longer than network.latency"},
    {KEY(topology, hosts), .kind = FIELD_LIST, .table = &host_table, .single = true,
     .brief = "xml: the file's hosts that are GPU 0, 1, ..., or node 0, 1, ... where there are not as many as GPUs: 'node-*' "
              "(in the order of their numbers), or a list; left out: host-N.gpu-M"},
};

const struct table topology_table = {
    TABLE("topology", "the switches between nodes", topology, topology_fields),
    .shorthand = "kind",
};

/* The keys of each kind, in addition to `kind`. */
static const char *const own_keys[] = {
    [TOPOLOGY_NONBLOCKING] = "", [TOPOLOGY_LEAF_SPINE] = "leaf_nodes oversubscription", [TOPOLOGY_LEVELS] = "levels",
    [TOPOLOGY_RAIL] = "unit_nodes oversubscription across_rails", [TOPOLOGY_TORUS] = "dims wrap link hop",
    [TOPOLOGY_DRAGONFLY] = "groups routers nodes_per_router global_links link global_link hop routing",
    [TOPOLOGY_XML] = "xml hosts",
};

static bool given(const struct topology *topology, const char *key)
{
    return field_given(&topology_table, topology, key);
}

static struct loc place(const struct topology *topology, const char *key)
{
    return field_loc(&topology_table, topology, key);
}

/* The kind that has a key which no other kind has. */
static void infer_kind(struct topology *topology)
{
    static const struct { const char *key; enum topology_kind kind; } signs[] = {
        {"levels", TOPOLOGY_LEVELS}, {"unit_nodes", TOPOLOGY_RAIL}, {"across_rails", TOPOLOGY_RAIL},
        {"dims", TOPOLOGY_TORUS}, {"xml", TOPOLOGY_XML}, {"groups", TOPOLOGY_DRAGONFLY}, {"routers", TOPOLOGY_DRAGONFLY},
        {"leaf_nodes", TOPOLOGY_LEAF_SPINE}, {"oversubscription", TOPOLOGY_LEAF_SPINE},
    };

    for (size_t i = 0; i < COUNT(signs) && !given(topology, "kind"); i++)
        if (given(topology, signs[i].key)) {
            topology->kind = (int)signs[i].kind;
            return;
        }
}

/* A key that the kind does not have. The kind's own messages about leaves say what to choose. */
static int check_keys(const struct topology *topology, struct error *err)
{
    const char *own = own_keys[topology->kind];
    int status = 0;

    for (size_t i = 0; i < COUNT(topology_fields); i++) {
        const char *key = topology_fields[i].key;
        bool leaves = topology->kind == TOPOLOGY_NONBLOCKING &&
                      (!strcmp(key, "leaf_nodes") || !strcmp(key, "oversubscription"));

        if (!strcmp(key, "kind") || leaves || word_in(own, key) || !given(topology, key))
            continue;
        status = error_clash(err, place(topology, key), "topology: '%s' has no %s; expected %s%s",
                             kinds[topology->kind], key, *own ? "some of " : "no other key", own);
    }
    return status;
}

static int check_leaves(struct topology *topology, struct error *err)
{
    if (topology->kind == TOPOLOGY_LEAF_SPINE && topology->leaf_nodes < 1)
        return error_add(err, EXIT_INPUT, place(topology, "leaf_nodes"),
                         "topology: a leaf-spine needs 'leaf_nodes', at least 1");
    bool leaves = topology->leaf_nodes != 0;
    const struct clash clashes[] = {
        {leaves, place(topology, "leaf_nodes"), "topology: 'nonblocking' has no leaves; for leaf_nodes choose 'leaf-spine'", {0}},
        {!leaves && topology->oversubscription > 1, place(topology, "oversubscription"),
         "topology: 'nonblocking' is not oversubscribed; for oversubscription choose 'leaf-spine'", {0}},
    };
    return topology->kind == TOPOLOGY_NONBLOCKING ? clashes_add(err, clashes, COUNT(clashes)) : 0;
}

static int check_level(const struct level *level, size_t number, struct error *err)
{
    const char *size = number ? "units" : "leaf_nodes";
    bool leaves = field_given(&level_table, level, "leaf_nodes"), units = field_given(&level_table, level, "units");
    bool both = field_given(&level_table, level, "oversubscription") && !isnan(level->bandwidth);
    struct loc loc = level->node->loc;
    const struct clash clashes[] = {
        {number && leaves, field_loc(&level_table, level, "leaf_nodes"),
         "topology: level %d has leaf_nodes; expected units: units of the level below it", {(int)number + 1}},
        {!number && units, field_loc(&level_table, level, "units"),
         "topology: level %d has units; expected leaf_nodes: the first level counts nodes", {1}},
        {both, field_loc(&level_table, level, "bandwidth"),
         "topology: level %d: expected oversubscription or bandwidth, found both", {(int)number + 1}},
    };
    int status = clashes_add(err, clashes, COUNT(clashes));

    if (!field_given(&level_table, level, size))
        status = error_add(err, EXIT_INPUT, loc, "topology: level %zu: '%s' is missing: %s", number + 1, size,
                           number ? "how many units of the level below it one of its units has"
                                  : "how many nodes a unit has");
    return status;
}

static int check_levels(const struct topology *topology, struct error *err)
{
    const struct level *levels = topology->levels.items;
    int status = 0;

    if (topology->kind != TOPOLOGY_LEVELS)
        return 0;
    if (!topology->levels.count)
        return error_add(err, EXIT_INPUT, topology->node->loc,
                         "topology: 'levels' is missing: expected a list such as [{leaf_nodes: 16}, {units: 8, "
                         "oversubscription: 7}]");
    if (topology->levels.count > LEVELS_MAX)
        return error_add(err, EXIT_INPUT, place(topology, "levels"), "topology: %zu levels; expected at most %d",
                         topology->levels.count, (int)LEVELS_MAX);
    for (size_t i = 0; i < topology->levels.count; i++)
        if (check_level(&levels[i], i, err))
            status = -1;
    return status;
}

/* The nodes that the topology has by its own keys: `count` = `sum`, as "4 x 4 x 8". */
static int check_nodes(const struct topology *topology, const char *key, long long count, const char *sum, int *nodes,
                       struct error *err)
{
    if (count > MOST_NODES)
        return error_add(err, EXIT_INPUT, place(topology, key), "topology: %s nodes; expected at most %d", sum,
                         (int)MOST_NODES);
    if (*nodes == 0)
        *nodes = (int)count;
    if (*nodes != count)
        return error_clash(err, place(topology, key),
                           "topology: %s = %lld nodes, but the cluster has %d; expected the same number", sum, count,
                           *nodes);
    return 0;
}

static int check_torus(const struct topology *topology, int *nodes, struct error *err)
{
    const int *dims = topology->dims.items;
    char sum[DIMS_MAX * 12 + 1] = "";
    long long longest = 0;
    size_t length = 0;

    if (topology->kind != TOPOLOGY_TORUS)
        return 0;
    if (!topology->dims.count)
        return error_add(err, EXIT_INPUT, topology->node->loc,
                         "topology: a torus needs 'dims', such as [4, 4, 8]: the nodes in each dimension");
    if (topology->dims.count > DIMS_MAX)
        return error_add(err, EXIT_INPUT, place(topology, "dims"), "topology: %zu dimensions; expected at most %d",
                         topology->dims.count, (int)DIMS_MAX);
    for (size_t k = 0; k < topology->dims.count; k++) {
        length += (size_t)snprintf(sum + length, sizeof sum - length, "%s%d", k ? " x " : "", dims[k]);
        longest += topology->wraps ? dims[k] / 2 : dims[k] - 1;
    }
    if (longest > WAY_MAX)
        return error_add(err, EXIT_INPUT, place(topology, "dims"),
                         "topology: a message through %s nodes crosses up to %lld links; expected at most %d", sum,
                         longest, (int)WAY_MAX);
    return check_nodes(topology, "dims", torus_nodes(topology), sum, nodes, err);
}

static int check_dragonfly(const struct topology *topology, int *nodes, struct error *err)
{
    static const char *const needed[] = {"groups", "routers", "nodes_per_router", "global_links"};
    char sum[64];
    int status = 0;

    if (topology->kind != TOPOLOGY_DRAGONFLY)
        return 0;
    for (size_t i = 0; i < COUNT(needed); i++)
        if (!given(topology, needed[i]))
            status = error_add(err, EXIT_INPUT, topology->node->loc, "topology: a dragonfly needs '%s'", needed[i]);
    if (status)
        return -1;
    if (topology->groups > 1 && dragonfly_pair_links(topology) < 1)
        return error_clash(err, place(topology, "global_links"),
                           "topology: a group has %d x %d global links, but there are %d other groups; expected a link "
                           "to each, so global_links: %d or more", topology->routers, topology->global_links,
                           topology->groups - 1, (topology->groups - 2) / topology->routers + 1);
    double links = (double)topology->groups * topology->routers * (topology->routers + topology->global_links);
    if (links > MOST_LINKS)
        return error_add(err, EXIT_INPUT, place(topology, "routers"),
                         "topology: a dragonfly of more than %d links; expected fewer routers, groups or links",
                         (int)MOST_LINKS);
    snprintf(sum, sizeof sum, "%d x %d x %d", topology->groups, topology->routers, topology->nodes_per_router);
    return check_nodes(topology, "groups", dragonfly_nodes(topology), sum, nodes, err);
}

const char *topology_note(const struct topology *topology)
{
    const int *dims = topology->dims.items;

    for (size_t k = 0; topology->kind == TOPOLOGY_TORUS && topology->wraps && k < topology->dims.count; k++)
        if (dims[k] == 2)
            return "a dimension of 2 with wrap has two links between the same two nodes (wrap: false: one)";
    return topology->network && *topology->network->said ? topology->network->said : NULL;
}

void topology_key(const struct topology *topology, struct cache_key *key)
{
    const struct simgrid_network *network = topology->network;

    cache_key_add(key, &topology->wraps, sizeof topology->wraps);
    if (network)
        cache_key_add(key, network->digest, sizeof network->digest);
}

int topology_check(struct topology *topology, int *nodes, struct error *err)
{
    int status;

    infer_kind(topology);
    topology->wraps = topology->wrap || !given(topology, "wrap");
    topology->hop_time = given(topology, "hop") ? topology->hop : 0;
    status = check_keys(topology, err);
    if (check_leaves(topology, err) || check_levels(topology, err))
        status = -1;
    if (topology->kind == TOPOLOGY_XML && !given(topology, "xml"))
        status = error_add(err, EXIT_INPUT, topology->node->loc, "topology: 'xml' is missing: the path of a platform file of "
                           "SimGrid's");
    if (topology->kind == TOPOLOGY_XML && *nodes == 0)
        status = error_add(err, EXIT_INPUT, topology->node->loc, "topology: xml: the cluster does not say how many nodes it "
                           "has; expected 'nodes'");
    if (!status && (check_torus(topology, nodes, err) || check_dragonfly(topology, nodes, err)))
        status = -1;
    return status;
}
