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

void flows_init(struct flows *flows, const struct sharing *sharing, const struct cluster *cluster, size_t ids, double unit,
                double together, struct event_heap *ends)
{
    size_t count = sharing->links.count;

    *flows = (struct flows){.sharing = sharing, .ends = ends, .unit = unit, .together = together};
    while (1 << flows->shift < cluster_longest_route(cluster))
        flows->shift++;
    flows->flow_size = sizeof(struct flow) + (sizeof(struct flow_hop) << flows->shift);
    BUG_IF(ids >> (32 - flows->shift));      /* at[] are named by 32 bits */
    flows->items = xcalloc(ids + 1, flows->flow_size);
    flows->links = xcalloc(count + 1, sizeof *flows->links);
    for (size_t i = 0; i < count; i++) {
        const struct shared_link *shared = &sharing->links.items[i];
        enum link_kind end = shared->link.kind == LINK_BETWEEN ? LINK_NIC_UP : shared->link.kind;
        double capacity = shared->capacity * unit;

        flows->links[i] = (struct flow_link){.capacity = capacity, .first = NONE};
        flows->links[i].most = most_flows(capacity, fmin(capacity, cluster_widest(cluster, end) * unit));
    }
}

struct flow_route flows_route(struct flows *flows, uint32_t traits, double bandwidth)
{
    const struct shared_route *own = &flows->sharing->routes[traits];

    return (struct flow_route){bandwidth * flows->unit, own->first, (uint8_t)own->hops};
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

void flows_start(struct flows *flows, uint32_t id, struct flow_route route, double units, double now, double moved)
{
    struct flow *flow = flow_of(flows, id);

    BUG_IF(flow->there);
    append(&flows->started, id);
    flow->left = units;
    flow->cap = route.cap;
    flow->hops = route.hops;
    flow->there = true;
    flow->since = now;
    flow->rate = flow->level = 0;
    flow->moved.left = 0;
    flow->moved.since = moved;
    for (uint32_t hop = 0; hop < flow->hops; hop++) {
        uint32_t number = flows->sharing->crossed.items[route.first + hop], at = (id << flows->shift) | hop;
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
    free(flows->started.items);
    free(flows->changed.items);
    free(flows->open.items);
    free(flows->filling.items);
    free(flows->full.items);
    memset(flows, 0, sizeof *flows);
}
