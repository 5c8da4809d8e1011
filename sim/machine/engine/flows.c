#include "engine/flows_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "hardware/cluster.h"

/* The largest number n of flows that a link can carry without slowing any of them down: capacity / n is not less than
 * `widest`, the speed of the fastest route. */
static uint32_t most_flows(double capacity, double widest)
{
    uint32_t most = (uint32_t)fmin(capacity / widest + 1, 1e9);

    while (most > 1 && capacity / most < widest)
        most--;
    return most;
}

void flows_init(struct flows *flows, const struct cluster *cluster, size_t ids, double unit, double together,
                struct event_heap *ends)
{
    size_t gpus = (size_t)cluster_gpus(cluster), nics = (size_t)cluster_nics(cluster);
    size_t between = (size_t)cluster_between_links(cluster), count = 0;
    const size_t links[] = {gpus, gpus, nics, nics, between};    /* in the order of enum link_kind */

    *flows = (struct flows){.cluster = cluster, .ends = ends, .unit = unit, .together = together};
    for (size_t kind = 0; kind < COUNT(links); kind++) {
        flows->first[kind] = count;
        count += links[kind];
    }
    while (1 << flows->shift < cluster_longest_route(cluster))
        flows->shift++;
    flows->flow_size = sizeof(struct flow) + (sizeof(struct flow_hop) << flows->shift);
    BUG_IF(ids >> (32 - flows->shift));      /* at[] are named by 32 bits */
    flows->items = xcalloc(ids + 1, flows->flow_size);
    flows->links = xcalloc(count + 1, sizeof *flows->links);
}

/* The next link of a route. */
static void add_hop(struct flows *flows, struct flow_route *route, struct link hop)
{
    uint32_t id = (uint32_t)(flows->first[hop.kind] + (size_t)hop.index);
    struct flow_link *link = &flows->links[id];

    if (link->capacity == 0) {
        enum link_kind end = hop.kind == LINK_BETWEEN ? LINK_NIC_UP : hop.kind;

        link->capacity = cluster_link_bandwidth(flows->cluster, hop) * flows->unit;
        link->most = most_flows(link->capacity,
                                fmin(link->capacity, cluster_widest(flows->cluster, end) * flows->unit));
        link->first = NONE;
    }
    append(&flows->route_links, id);
    route->hops++;
}

struct flow_route flows_route(struct flows *flows, const struct sharing *sharing, int src, int dst)
{
    struct route links = cluster_route(flows->cluster, src, dst);
    struct flow_route route = {.cap = links.bandwidth * flows->unit, .first = (uint32_t)flows->route_links.count};

    for (int i = 0; i < links.count; i++)
        if (sharing_has(sharing, links.links[i]))
            add_hop(flows, &route, links.links[i]);
    return route;
}

static void note_change(struct flows *flows, uint32_t id, double moved)
{
    struct flow_link *link = &flows->links[id];

    flows->unclear |= link->changed && link->moved != moved;
    if (link->changed)
        return;
    append(&flows->changed, id);
    link->changed = true;
    link->moved = moved;
}

void flows_start(struct flows *flows, uint32_t id, const struct flow_route *route, double units, double now, double moved)
{
    struct flow *flow = flow_of(flows, id);

    BUG_IF(flow->there);
    append(&flows->started, id);
    flow->left = units;
    flow->cap = route->cap;
    flow->hops = route->hops;
    flow->there = true;
    flow->since = now;
    flow->rate = flow->level = 0;
    flow->moved.left = 0;
    flow->moved.since = moved;
    for (uint32_t hop = 0; hop < flow->hops; hop++) {
        uint32_t number = flows->route_links.items[route->first + hop], at = (id << flows->shift) | hop;
        struct flow_link *link = &flows->links[number];

        flow->at[hop] = (struct flow_hop){number, link->first, NONE};
        if (link->first != NONE)
            hop_of(flows, link->first)->previous = at;
        link->first = at;
        link->count++;
        note_change(flows, number, moved);
    }
}

double flows_stop(struct flows *flows, uint32_t id)
{
    struct flow *flow = flow_of(flows, id);

    for (uint32_t hop = 0; hop < flow->hops; hop++) {
        struct flow_hop own = flow->at[hop];
        struct flow_link *link = &flows->links[own.link];

        if (own.next != NONE)
            hop_of(flows, own.next)->previous = own.previous;
        if (own.previous != NONE)
            hop_of(flows, own.previous)->next = own.next;
        else
            link->first = own.next;
        link->count--;
        note_change(flows, own.link, flow->moved.end);
    }
    flow->there = false;
    return flow->moved.end;
}

void flows_release(struct flows *flows)
{
    free(flows->items);
    free(flows->links);
    free(flows->route_links.items);
    free(flows->started.items);
    free(flows->changed.items);
    free(flows->open.items);
    free(flows->filling.items);
    free(flows->full.items);
    memset(flows, 0, sizeof *flows);
}
