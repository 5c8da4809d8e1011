/* What is between: links of their own that two parts have, and what a message from GPU to GPU costs in addition to its
 * route, by the communication library. */
#include "hardware/cluster.h"

#include <math.h>
#include <string.h>

#include "base/base.h"
#include "base/units.h"
#include "config/field.h"

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

int cluster_load_between(struct arena *arena, struct cluster *cluster, struct error *err)
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

const struct part_pair *cluster_pair_of(const struct cluster *cluster, int node, int to)
{
    if (!cluster->between.count)
        return NULL;
    int one = cluster_given_part_of(cluster, node), other = cluster_given_part_of(cluster, to);

    for (int i = 0; i < cluster->between.count; i++) {
        const struct part_pair *pair = &cluster->between.pairs[i];

        if ((pair->one == one && pair->other == other) || (pair->one == other && pair->other == one))
            return pair;
    }
    return NULL;
}

const struct part_pair *cluster_pair_link(const struct cluster *cluster, int index, bool *back)
{
    if (!cluster->between.count)
        return NULL;
    int own = index - (cluster_between_links(cluster) - 2 * cluster->between.count);

    *back = own % 2;
    return own >= 0 ? &cluster->between.pairs[own / 2] : NULL;
}

int cluster_pair_index(const struct cluster *cluster, const struct part_pair *pair, int from)
{
    int first = cluster_between_links(cluster) - 2 * cluster->between.count;

    return first + 2 * (int)(pair - cluster->between.pairs) + (cluster_given_part_of(cluster, from) == pair->other);
}

void cluster_pair_name(const struct cluster *cluster, const struct part_pair *pair, bool back, char *buffer, size_t size)
{
    snprintf(buffer, size, "%.20s-%.20s", cluster_given_part(cluster, back ? pair->other : pair->one).name,
             cluster_given_part(cluster, back ? pair->one : pair->other).name);
}

/* B/s of all NICs of a part. */
static double part_nics(const struct cluster *cluster, int part)
{
    struct given_part given = cluster_given_part(cluster, part);

    return given.nodes * cluster_node_nics(cluster, given.first) *
           cluster_node_bandwidth(cluster, given.first, LINK_NIC_UP);
}

double cluster_pair_crowding(const struct cluster *cluster, const struct part_pair *pair)
{
    return fmax(1, fmin(part_nics(cluster, pair->one), part_nics(cluster, pair->other)) / pair->bandwidth);
}

double cluster_pair_latency(const struct cluster *cluster, const struct part_pair *pair)
{
    const struct part_spec *parts = cluster->given.items;
    double nics = (parts[pair->one].cluster.kinds[0].nics.latency + parts[pair->other].cluster.kinds[0].nics.latency) / 2;

    return isnan(pair->latency) ? 0 : pair->latency - nics;
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
                      cluster_payload_share(cluster, 1u << cluster_kind_of(cluster, node), cost->network_share) *
                          cluster_nic_rate(cluster, node));
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
