/* flows_internal: what starts and stops flows, and what shares links between them, have in common. */
#ifndef DTSIM_FLOWS_INTERNAL_H
#define DTSIM_FLOWS_INTERNAL_H

#include "engine/flows.h"

static const uint32_t NONE = UINT32_MAX;

struct flow {
    double left, rate, since;        /* units that were left at `since` (s), and the rate from then on */
    double cap;                      /* units/s of the narrowest link */
    double level;                    /* the rate that is being found; 0: it is still rising */
    double end;                      /* s: when it will end if its rate stays */
    struct { double left, since, end; } moved;       /* how these change with a change of durations (timeline.moved) */
    uint32_t round;                  /* the last search that found it */
    uint8_t hops;                    /* links of its route */
    bool there;                      /* there is such a flow */
    bool announced;                       /* `ends` may know its end */
    struct flow_hop {
        uint32_t link;
        uint32_t next, previous;     /* of the link's flows: flow << shift | hop, or NONE */
    } at[];                          /* by hop */
};

struct flow_link {
    double capacity;                 /* units/s */
    double room;                     /* of it, while rates are found: not taken by flows whose rates are known */
    double moved;                    /* of the time when it first got or lost a flow since links were shared */
    uint32_t open;                   /* flows whose rates are not */
    uint32_t first, count;           /* its flows */
    uint32_t most;                   /* flows that it carries at their caps */
    uint32_t round;                  /* the last search that found it */
    bool bound;                      /* it did when links were shared last */
    bool changed;                    /* it has got or lost a flow since */
};

static inline struct flow *flow_of(const struct flows *flows, uint32_t id)
{
    return (struct flow *)(void *)(flows->items + id * flows->flow_size);
}

static inline void append(struct flow_ids *ids, uint32_t id)
{
    *GROW(ids) = id;
}

/* The hop of a flow that `at` names, and the next of its link's flows. */
static inline struct flow_hop *hop_of(const struct flows *flows, uint32_t at)
{
    return &flow_of(flows, at >> flows->shift)->at[at & ((1u << flows->shift) - 1)];
}

static inline uint32_t next_of(const struct flows *flows, uint32_t at)
{
    return hop_of(flows, at)->next;
}

#endif
