/* A group's global links are numbered router by router. The other groups have places 0 to groups - 2, in the order of
 * their numbers; link k of a group leads to the group with place k modulo (groups - 1). So pairs of groups have equally
 * many links, and those left over are not used. */
#include "topology/topology_internal.h"

#include <math.h>

#include "base/base.h"

long long dragonfly_nodes(const struct topology *topology)
{
    long long nodes = (long long)topology->groups * topology->routers;

    return nodes < INT32_MAX ? nodes * topology->nodes_per_router : nodes;
}

int dragonfly_pair_links(const struct topology *topology)
{
    long long links = (long long)topology->routers * topology->global_links;

    return topology->groups > 1 ? (int)(links / (topology->groups - 1)) : 0;
}

static int local_links(const struct topology *keys)
{
    return keys->groups * keys->routers * keys->routers;
}

static int dragonfly_links(struct topology_of topology)
{
    const struct topology *keys = topology.keys;

    return local_links(keys) + keys->groups * keys->routers * keys->global_links;
}

static void local(const struct topology *keys, int group, int from, int to, struct topology_way *way)
{
    if (from == to)
        return;
    way_through(way, (group * keys->routers + from) * keys->routers + to);
    way->latency += keys->hop_time;
}

/* Adds the way from a router to another group, by one of the links between the groups; sets *router to the router where
 * it ends. */
static void global(const struct topology *keys, int from, int to, int which, int *router, struct topology_way *way)
{
    int others = keys->groups - 1, each = keys->global_links;
    int up = which * others + (to > from ? to - 1 : to), down = which * others + (from > to ? from - 1 : from);

    local(keys, from, *router, up / each, way);
    way_through(way, local_links(keys) + from * keys->routers * each + up);
    way->latency += keys->hop_time;
    *router = down / each;
}

/* Messages between two groups are dealt out over the links between them by the numbers of their nodes, and with
 * Valiant's routing over the other groups. */
static void dragonfly_way(struct topology_of topology, struct topology_end src, struct topology_end dst,
                          struct topology_way *way)
{
    const struct topology *keys = topology.keys;
    int each = keys->nodes_per_router, links = dragonfly_pair_links(keys);
    int from = src.node / each / keys->routers, to = dst.node / each / keys->routers;
    int router = src.node / each % keys->routers;

    BUG_IF(links < 1);
    if (from != to && keys->routing == ROUTING_VALIANT && keys->groups > 2) {
        int low = from < to ? from : to, high = from < to ? to : from;
        int third = (int)(((long long)src.node * 7 + dst.node) % (keys->groups - 2));

        third += third >= low;
        third += third >= high;
        global(keys, from, third, (src.node + dst.node) % links, &router, way);
        from = third;
    }
    if (from != to)
        global(keys, from, to, (src.node + dst.node) % links, &router, way);
    local(keys, to, router, dst.node / each % keys->routers, way);
}

static struct topology_link dragonfly_link(struct topology_of topology, int link)
{
    const struct topology *keys = topology.keys;
    bool global_one = link >= local_links(keys);
    double bandwidth = global_one && !isnan(keys->global_link) ? keys->global_link : keys->link;
    int group = global_one ? (link - local_links(keys)) / (keys->routers * keys->global_links)
                           : link / keys->routers / keys->routers;

    return (struct topology_link){bandwidth, 1, keys->hop_time, group * keys->routers * keys->nodes_per_router, 1,
                                  true};
}

static void dragonfly_name(struct topology_of topology, int link, char *buffer, size_t size)
{
    const struct topology *keys = topology.keys;
    int past = link - local_links(keys), each = keys->routers * keys->global_links;

    if (past < 0)
        snprintf(buffer, size, "router%d.to%d", link / keys->routers,
                 link / keys->routers / keys->routers * keys->routers + link % keys->routers);
    else
        snprintf(buffer, size, "group%d.global%d", past / each, past % each);
}

static int dragonfly_block(struct topology_of topology)
{
    return topology.keys->nodes_per_router;
}

/* If all nodes send to all: the bytes that a group sends over its global links. Valiant's routing doubles them. */
static double dragonfly_crowding(struct topology_of topology, int node, int other, double nic)
{
    const struct topology *keys = topology.keys;
    int nodes = keys->routers * keys->nodes_per_router, used = dragonfly_pair_links(keys) * (keys->groups - 1);
    double link = isnan(keys->global_link) ? keys->link : keys->global_link;
    double sent = (double)nodes * topology.nics * (keys->routing == ROUTING_VALIANT ? 2 : 1);

    if (node / nodes == other / nodes)
        return 1;
    return fmax(1, isnan(link) ? sent / topology.nics / used : sent * nic / (used * link));
}

const struct topology_class topology_dragonfly = {
    dragonfly_links, dragonfly_way, dragonfly_link, dragonfly_name, dragonfly_block, dragonfly_crowding,
};
