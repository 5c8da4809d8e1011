/* Only links that bind are looked at. A flow is at best as fast as the narrowest link of its route: its cap. A link
 * that could carry all of its flows at their caps never makes one slower; most links carry one flow and are such.
 * A link binds if its flows may want more than it has. Flows that are connected by links that bind are a component:
 * when one of them starts or stops, the rates of these flows may change, and those of no others.
 *
 *     flows       a   b   c   d        links that bind: L, M. Component {a, b, c}, filled in two rounds:
 *     link L (6)  +---+---+            level 2: L is full, a, b and c have 2. M has 6 - 2 = 4 left for ...
 *     link M (6)          +   ...      d is alone on its links: it has its cap, and nothing is solved.
 */
#include "flows/flows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const uint32_t NONE = UINT32_MAX;

struct flow {
    double left, rate, since;        /* units that were left at `since` (s), and the rate from then on */
    double cap;                      /* units/s of the narrowest link */
    double level;                    /* the rate that is being found; 0: it is still rising */
    uint32_t links[ROUTE_MAX];
    uint32_t next[ROUTE_MAX], previous[ROUTE_MAX];   /* of the link's flows: ROUTE_MAX * flow + hop, or NONE */
    uint32_t round;                  /* the last search that found it */
    uint8_t hops;                    /* links of its route; 0: there is no flow */
};

struct flow_link {
    double capacity;                 /* units/s; 0: the link has not been used yet */
    double room;                     /* of it, while rates are found: not taken by flows whose rates are known */
    uint32_t open;                   /* flows whose rates are not */
    uint32_t first, count;           /* its flows */
    uint32_t most;                   /* flows that it carries at their caps */
    uint32_t round;                  /* the last search that found it */
    bool bound;                      /* it did when links were shared last */
    bool changed;                    /* it has got or lost a flow since */
};

struct flow_place { int node, nic, leaf; };      /* the node counts from 1; 0: not filled in */

static void append(struct flow_ids *ids, uint32_t id)
{
    *GROW(ids) = id;
}

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

        *place = (struct flow_place){node + 1, cluster_nic_of(flows->cluster, gpu), cluster_leaf_of(flows->cluster, node)};
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

/* Its neighbours in the list of a link's flows. */
static uint32_t *next_of(struct flows *flows, uint32_t at)
{
    return &flows->items[at / ROUTE_MAX].next[at % ROUTE_MAX];
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

static bool binds(const struct flow_link *link)
{
    return link->count > link->most;
}

/* Adds a flow to the component, and the links that it shares with others. */
static void reach(struct flows *flows, uint32_t id)
{
    struct flow *flow = &flows->items[id];

    if (flow->round == flows->round)
        return;
    flow->round = flows->round;
    flow->level = 0;
    flows->lowest_cap = flow->cap < flows->lowest_cap ? flow->cap : flows->lowest_cap;
    append(&flows->open, id);
    for (uint32_t hop = 0; hop < flow->hops; hop++) {
        struct flow_link *link = &flows->links[flow->links[hop]];

        if (!binds(link) || link->round == flows->round)
            continue;
        link->round = flows->round;
        link->room = link->capacity;
        link->open = link->count;
        append(&flows->filling, flow->links[hop]);
    }
}

/* The component of a flow: flows->open, and flows->filling, its links that bind. */
static void find_component(struct flows *flows, uint32_t id)
{
    flows->open.count = flows->filling.count = 0;
    flows->lowest_cap = INFINITY;
    reach(flows, id);
    for (size_t i = 0; i < flows->filling.count; i++) {
        uint32_t at = flows->links[flows->filling.items[i]].first;

        for (; at != NONE; at = *next_of(flows, at))
            reach(flows, at / ROUTE_MAX);
    }
}

/* The flow's rate is known. */
static void fix(struct flows *flows, struct flow *flow, double level)
{
    flow->level = level;
    for (uint32_t hop = 0; hop < flow->hops; hop++) {
        struct flow_link *link = &flows->links[flow->links[hop]];

        if (link->round == flows->round) {
            link->room -= level;
            link->open--;
        }
    }
}

/* How far all rates can rise until the first link is full; INFINITY: there is none. Forgets links without flows that
 * rise. */
static double lowest_level(struct flows *flows)
{
    struct flow_ids *filling = &flows->filling;
    double level = INFINITY;
    size_t kept = 0;

    for (size_t i = 0; i < filling->count; i++) {
        const struct flow_link *link = &flows->links[filling->items[i]];

        if (!link->open)
            continue;
        level = fmin(level, link->room / link->open);
        filling->items[kept++] = filling->items[i];
    }
    filling->count = kept;
    return level;
}

/* The lowest cap of the flows that still rise. */
static double lowest_cap(const struct flows *flows)
{
    double cap = INFINITY;

    for (size_t i = 0; i < flows->open.count; i++) {
        const struct flow *flow = &flows->items[flows->open.items[i]];

        if (flow->level == 0)
            cap = fmin(cap, flow->cap);
    }
    return cap;
}

/* Gives this rate to the flows that still rise and cannot rise further because of their routes. Returns how many they
 * are; the same holds for the two functions below. */
static size_t fix_capped(struct flows *flows, double cap)
{
    size_t fixed = 0;

    for (size_t i = 0; i < flows->open.count; i++) {
        struct flow *flow = &flows->items[flows->open.items[i]];

        if (flow->level == 0 && flow->cap == cap) {
            fix(flows, flow, cap);
            fixed++;
        }
    }
    return fixed;
}

/* To all of them: the one link that is left is full. Nobody asks what room is left. */
static size_t fix_rest(struct flows *flows, double level)
{
    size_t fixed = 0;

    for (size_t i = 0; i < flows->open.count; i++) {
        struct flow *flow = &flows->items[flows->open.items[i]];

        if (flow->level == 0) {
            flow->level = level;
            fixed++;
        }
    }
    return fixed;
}

/* To those of full links. A link is full if its level is exactly this one, and its flows get this one. */
static size_t fix_full(struct flows *flows, double level)
{
    size_t fixed = 0;

    flows->full.count = 0;
    for (size_t i = 0; i < flows->filling.count; i++) {
        const struct flow_link *link = &flows->links[flows->filling.items[i]];

        if (link->room / link->open == level)
            append(&flows->full, flows->filling.items[i]);
    }
    for (size_t i = 0; i < flows->full.count; i++)
        for (uint32_t at = flows->links[flows->full.items[i]].first; at != NONE; at = *next_of(flows, at)) {
            struct flow *flow = &flows->items[at / ROUTE_MAX];

            if (flow->level == 0) {
                fix(flows, flow, level);
                fixed++;
            }
        }
    return fixed;
}

/* All flows of the component have rates: counts what they have left, and tells when they will end. What has been sent is
 * counted for each of them, even where its rate stays: SimGrid rounds at these times. */
static void tell_ends(struct flows *flows, double now)
{
    const struct flow_ids *open = &flows->open;
    bool many = open->count > 8 && open->count > flows->ends->count / 8;

    for (size_t i = 0; i < open->count; i++) {
        struct flow *flow = &flows->items[open->items[i]];
        double left = flow->left - flow->rate * (now - flow->since);

        flow->left = left > 0 ? left : 0;
        flow->since = now;
        flow->rate = flow->level;
        (many ? event_heap_set_unordered : event_heap_set)(flows->ends, open->items[i], now + flow->left / flow->rate);
    }
    if (many)
        event_heap_order(flows->ends);
}

/* Shares the links of one component, and tells when its flows will end. */
static void share_component(struct flows *flows, uint32_t id, double now)
{
    find_component(flows, id);
    for (size_t rising = flows->open.count; rising;) {
        double level = lowest_level(flows), cap = flows->lowest_cap;

        if (cap <= level) {
            rising -= fix_capped(flows, cap);
            flows->lowest_cap = lowest_cap(flows);
        } else if (flows->filling.count == 1) {
            rising -= fix_rest(flows, level);
        } else {
            rising -= fix_full(flows, level);
        }
    }
    tell_ends(flows, now);
}

/* A link got or lost flows. If it binds, its flows are one component; if it did and does not any more, each of them is
 * of a component of its own, or of another link's. */
static void share_link(struct flows *flows, struct flow_link *link, double now)
{
    bool did = link->bound;

    link->changed = false;
    link->bound = binds(link);
    if (link->bound && link->round != flows->round)
        share_component(flows, link->first / ROUTE_MAX, now);
    for (uint32_t at = did && !link->bound ? link->first : NONE; at != NONE; at = *next_of(flows, at))
        if (flows->items[at / ROUTE_MAX].round != flows->round)
            share_component(flows, at / ROUTE_MAX, now);
}

void flows_share(struct flows *flows, double now)
{
    flows->round++;
    for (size_t i = 0; i < flows->changed.count; i++)
        share_link(flows, &flows->links[flows->changed.items[i]], now);
    for (size_t i = 0; i < flows->started.count; i++) {
        uint32_t id = flows->started.items[i];

        if (flows_has(flows, id) && flows->items[id].round != flows->round)
            share_component(flows, id, now);
    }
    flows->changed.count = flows->started.count = 0;
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
