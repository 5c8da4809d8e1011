/* Only links that bind are looked at. A flow is at best as fast as the narrowest link of its route: its cap. A link
 * that could carry all of its flows at their caps never makes one slower; most links carry one flow and are such. A
 * link binds if its flows may want more than it has. Flows that are connected by links that bind are a component: when
 * one of them starts or stops, the rates of these flows may change, and no others.
 *
 *     flows       a   b   c   d        links that bind: L, M. Component {a, b, c}, filled in two rounds:
 *     link L (6)  +---+---+            level 2: L is full, a, b and c have 2. M has 6 - 2 = 4 left for ...
 *     link M (6)          +   ...      d is alone on its links: it has its cap, and nothing is solved.
 */
#include "engine/flows_internal.h"

#include <math.h>

#include "base/base.h"

/* No number here is NaN: fmin() would ask for that, in a call. */
static double lower(double a, double b)
{
    return a < b ? a : b;
}

static bool binds(const struct flow_link *link)
{
    return link->count > link->most;
}

/* Adds a flow to the component, and the links that it shares with others. */
static void reach(struct flows *flows, uint32_t id)
{
    struct flow *flow = flow_of(flows, id);

    if (flow->round == flows->round)
        return;
    flow->round = flows->round;
    flow->level = 0;
    flows->lowest_cap = lower(flows->lowest_cap, flow->cap);
    append(&flows->open, id);
    for (uint32_t hop = 0; hop < flow->hops; hop++) {
        struct flow_link *link = &flows->links[flow->at[hop].link];

        if (!binds(link) || link->round == flows->round)
            continue;
        flows->unclear |= link->changed && link->moved != flows->moved;
        link->round = flows->round;
        link->room = link->capacity;
        link->open = link->count;
        append(&flows->filling, flow->at[hop].link);
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

        for (; at != NONE; at = next_of(flows, at))
            reach(flows, at >> flows->shift);
    }
}

/* The flow's rate is known. */
static void fix(struct flows *flows, struct flow *flow, double level)
{
    flow->level = level;
    for (uint32_t hop = 0; hop < flow->hops; hop++) {
        struct flow_link *link = &flows->links[flow->at[hop].link];

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
        level = lower(level, link->room / link->open);
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
        const struct flow *flow = flow_of(flows, flows->open.items[i]);

        if (flow->level == 0)
            cap = lower(cap, flow->cap);
    }
    return cap;
}

/* Gives this rate to the flows that still rise and cannot rise further because of their routes. Returns how many they
 * are; the same holds for the two functions below. */
static size_t fix_capped(struct flows *flows, double cap)
{
    size_t fixed = 0;

    for (size_t i = 0; i < flows->open.count; i++) {
        struct flow *flow = flow_of(flows, flows->open.items[i]);

        if (flow->level == 0 && flow->cap == cap) {
            fix(flows, flow, cap);
            fixed++;
        }
    }
    return fixed;
}

/* Fills the last link that is left, for all of its flows. Its remaining room is not needed. */
static size_t fix_rest(struct flows *flows, double level)
{
    size_t fixed = 0;

    for (size_t i = 0; i < flows->open.count; i++) {
        struct flow *flow = flow_of(flows, flows->open.items[i]);

        if (flow->level == 0) {
            flow->level = level;
            fixed++;
        }
    }
    return fixed;
}

/* Gives this level to the flows of full links. A link is full if its level equals this one exactly. */
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
        for (uint32_t at = flows->links[flows->full.items[i]].first; at != NONE; at = next_of(flows, at)) {
            struct flow *flow = flow_of(flows, at >> flows->shift);

            if (flow->level == 0) {
                fix(flows, flow, level);
                fixed++;
            }
        }
    return fixed;
}

/* A flow's rate is known. What has been sent is counted even where its rate stays: SimGrid rounds at these times.
 * `moved`: of the time when links are shared; a flow that begins at that time does so when it does. */
static void go_on(struct flow *flow, double now, double moved)
{
    double left = flow->left - flow->rate * (now - flow->since);

    if (flow->rate > 0) {
        flow->moved.left -= flow->rate * (moved - flow->moved.since);
        flow->moved.since = moved;
    }
    flow->left = left > 0 ? left : 0;
    flow->since = now;
    flow->rate = flow->level;
    flow->end = now + flow->left / flow->rate;
    flow->moved.end = flow->moved.since + flow->moved.left / flow->rate;
}

static void announce(struct flows *flows, uint32_t id)
{
    struct flow *flow = flow_of(flows, id);

    event_heap_set(flows->ends, id, flow->end);
    flow->announced = true;
}

/* All flows of the component have rates. Tells those ends alone that come first, and together: when they have come, all
 * flows get new rates. */
static void announce_ends(struct flows *flows, double now)
{
    const struct flow_ids *open = &flows->open;
    double first = INFINITY;

    for (size_t i = 0; i < open->count; i++) {
        struct flow *flow = flow_of(flows, open->items[i]);

        go_on(flow, now, flows->moved);
        first = lower(first, flow->end);
    }
    for (size_t i = 0; i < open->count; i++) {
        struct flow *flow = flow_of(flows, open->items[i]);

        if (flow->end - first <= flows->together) {
            announce(flows, open->items[i]);
        } else if (flow->announced) {
            event_heap_unset(flows->ends, open->items[i]);
            flow->announced = false;
        }
    }
}

/* Whether the flow shares none of its links with flows that could make it slower. */
static bool unhindered(const struct flows *flows, const struct flow *flow)
{
    for (uint32_t hop = 0; hop < flow->hops; hop++)
        if (binds(&flows->links[flow->at[hop].link]))
            return false;
    return true;
}

/* Shares the links of one component, and tells when its flows will end. */
static void share_component(struct flows *flows, uint32_t id, double now, double moved)
{
    flows->moved = moved;
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
    announce_ends(flows, now);
}

/* A flow that starts now, a component of its own: what share_component() would do. */
static void begin_alone(struct flows *flows, uint32_t id, double now)
{
    struct flow *flow = flow_of(flows, id);

    flow->round = flows->round;
    flow->level = flow->cap;
    flow->rate = 0;
    go_on(flow, now, 0);
    announce(flows, id);
}

/* A link got or lost flows. If it binds, its flows are one component; if it did and does not any more, each of them is
 * of a component of its own, or of another link's. */
static void share_link(struct flows *flows, struct flow_link *link, double now)
{
    bool did = link->bound;

    link->changed = false;
    link->bound = binds(link);
    if (link->bound && link->round != flows->round)
        share_component(flows, link->first >> flows->shift, now, link->moved);
    for (uint32_t at = did && !link->bound ? link->first : NONE; at != NONE; at = next_of(flows, at))
        if (flow_of(flows, at >> flows->shift)->round != flows->round)
            share_component(flows, at >> flows->shift, now, link->moved);
}

void flows_share(struct flows *flows, double now)
{
    flows->round++;
    for (size_t i = 0; i < flows->changed.count; i++)
        share_link(flows, &flows->links[flows->changed.items[i]], now);
    for (size_t i = 0; i < flows->started.count; i++) {
        uint32_t id = flows->started.items[i];
        const struct flow *flow = flow_of(flows, id);

        if (!flow->there || flow->round == flows->round)
            continue;
        if (unhindered(flows, flow))
            begin_alone(flows, id, now);
        else
            share_component(flows, id, now, flow->moved.since);
    }
    flows->changed.count = flows->started.count = 0;
}
