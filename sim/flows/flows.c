#include "flows/flows_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct flow_place { int node, nic, leaf; };      /* the node counts from 1; 0: not filled in */

/* Flows of this many a link carries at the speed of their routes, whichever they are: the largest n for which
 * capacity / n is not less than the speed of the fastest, `widest`. */
static uint32_t most_flows(double capacity, double widest)
{
    uint32_t most = (uint32_t)fmin(capacity / widest + 1, 1e9);

    while (most > 1 && capacity / most < widest)
        most--;
    return most;
}

void flows_init(struct flows *flows, const struct cluster *cluster, size_t ids, double unit, struct event_heap *ends)
{
    size_t gpus = (size_t)cluster_gpus(cluster), nics = (size_t)(cluster->nodes * cluster->network.nics);
    size_t leaves = (size_t)cluster_leaf_of(cluster, cluster->nodes - 1) + 1, count = 0;
    const size_t links[] = {gpus, gpus, nics, nics, leaves, leaves};      /* in the order of enum link_kind */

    *flows = (struct flows){.cluster = cluster, .ends = ends, .unit = unit};
    for (size_t kind = 0; kind < COUNT(links); kind++) {
        flows->first[kind] = count;
        count += links[kind];
    }
    flows->items = xcalloc(ids + 1, sizeof *flows->items);
    flows->links = xcalloc(count + 1, sizeof *flows->links);
    flows->places = xcalloc(gpus + 1, sizeof *flows->places);
}

static const struct flow_place *place_of(struct flows *flows, int gpu)
{
    struct flow_place *place = &flows->places[gpu];

    if (!place->node) {
        int node = cluster_node_of(flows->cluster, gpu);

        *place = (struct flow_place){
            node + 1, cluster_nic_of(flows->cluster, gpu), cluster_leaf_of(flows->cluster, node),
        };
    }
    return place;
}

double flows_latency(struct flows *flows, int src, int dst)
{
    bool inside = place_of(flows, src)->node == place_of(flows, dst)->node;

    return inside ? flows->cluster->inside.latency : flows->cluster->network.latency;
}

/* The next link of the flow's route. */
static void add_hop(struct flows *flows, struct flow *flow, enum link_kind kind, int index)
{
    uint32_t id = (uint32_t)(flows->first[kind] + (size_t)index);
    struct flow_link *link = &flows->links[id];

    if (link->capacity == 0) {
        enum link_kind end = kind == LINK_LEAF_UP || kind == LINK_LEAF_DOWN ? LINK_NIC_UP : kind;

        link->capacity = cluster_link_bandwidth(flows->cluster, (struct link){kind, index}) * flows->unit;
        link->most = most_flows(link->capacity,
                                fmin(link->capacity, cluster_usual_bandwidth(flows->cluster, end) * flows->unit));
        link->first = NONE;
    }
    flow->links[flow->hops++] = id;
    flow->cap = fmin(flow->cap, link->capacity);
}

/* The links of cluster_route(). */
static void find_route(struct flows *flows, struct flow *flow, int src, int dst)
{
    const struct flow_place *from = place_of(flows, src), *to = place_of(flows, dst);

    flow->cap = INFINITY;
    if (from->node == to->node) {
        add_hop(flows, flow, LINK_PORT_UP, src);
        add_hop(flows, flow, LINK_PORT_DOWN, dst);
        return;
    }
    add_hop(flows, flow, LINK_NIC_UP, from->nic);
    if (from->leaf != to->leaf) {
        add_hop(flows, flow, LINK_LEAF_UP, from->leaf);
        add_hop(flows, flow, LINK_LEAF_DOWN, to->leaf);
    }
    add_hop(flows, flow, LINK_NIC_DOWN, to->nic);
}

static void note_change(struct flows *flows, uint32_t id)
{
    struct flow_link *link = &flows->links[id];

    if (!link->changed)
        append(&flows->changed, id);
    link->changed = true;
}

static uint32_t *previous_of(struct flows *flows, uint32_t at)
{
    return &flows->items[at / ROUTE_MAX].previous[at % ROUTE_MAX];
}

void flows_start(struct flows *flows, uint32_t id, int src, int dst, double units, double now)
{
    struct flow *flow = &flows->items[id];

    BUG_IF(flow->hops);
    *flow = (struct flow){.left = units, .since = now, .round = flow->round};
    find_route(flows, flow, src, dst);
    for (uint32_t hop = 0; hop < flow->hops; hop++) {
        struct flow_link *link = &flows->links[flow->links[hop]];
        uint32_t at = ROUTE_MAX * id + hop;

        flow->previous[hop] = NONE;
        flow->next[hop] = link->first;
        if (link->first != NONE)
            *previous_of(flows, link->first) = at;
        link->first = at;
        link->count++;
        note_change(flows, flow->links[hop]);
    }
    append(&flows->started, id);
}

void flows_stop(struct flows *flows, uint32_t id)
{
    struct flow *flow = &flows->items[id];

    for (uint32_t hop = 0; hop < flow->hops; hop++) {
        struct flow_link *link = &flows->links[flow->links[hop]];
        uint32_t next = flow->next[hop], previous = flow->previous[hop];

        if (next != NONE)
            *previous_of(flows, next) = previous;
        if (previous != NONE)
            *next_of(flows, previous) = next;
        else
            link->first = next;
        link->count--;
        note_change(flows, flow->links[hop]);
    }
    flow->hops = 0;
}

bool flows_has(const struct flows *flows, uint32_t id)
{
    return flows->items[id].hops;
}

void flows_release(struct flows *flows)
{
    free(flows->items);
    free(flows->links);
    free(flows->places);
    free(flows->started.items);
    free(flows->changed.items);
    free(flows->open.items);
    free(flows->filling.items);
    free(flows->full.items);
    memset(flows, 0, sizeof *flows);
}
