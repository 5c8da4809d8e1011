/* flows_internal: what starts and stops flows, and what shares links between them, have in common. */
#ifndef DTSIM_FLOWS_INTERNAL_H
#define DTSIM_FLOWS_INTERNAL_H

#include "flows/flows.h"

static const uint32_t NONE = UINT32_MAX;

struct flow {
    double left, rate, since;        /* units that were left at `since` (s), and the rate from then on */
    double cap;                      /* units/s of the narrowest link */
    double level;                    /* the rate that is being found; 0: it is still rising */
    double end;                      /* s: when it will end if its rate stays */
    uint32_t round;                  /* the last search that found it */
    uint8_t hops;                    /* links of its route */
    bool there;                      /* there is such a flow */
    bool told;                       /* `ends` may know its end */
    uint32_t links[ROUTE_MAX];
    uint32_t next[ROUTE_MAX], previous[ROUTE_MAX];   /* of the link's flows: ROUTE_MAX * flow + hop, or NONE */
};

struct flow_link {
    double capacity;                 /* units/s; 0: the link has not been used yet */
    double room;                     /* of it, while rates are found: not taken by flows whose rates are known */
    uint32_t open;                   /* flows whose rates are not */
    uint32_t first, count;           /* its flows */
    uint32_t most;                   /* flows that it carries at their caps */
    uint32_t planned;                /* flows that may be there at once (flows_plan) */
    uint32_t round;                  /* the last search that found it */
    bool bound;                      /* it did when links were shared last */
    bool changed;                    /* it has got or lost a flow since */
};

static inline void append(struct flow_ids *ids, uint32_t id)
{
    *GROW(ids) = id;
}

/* The next of a link's flows. */
static inline uint32_t *next_of(struct flows *flows, uint32_t at)
{
    return &flows->items[at / ROUTE_MAX].next[at % ROUTE_MAX];
}

#endif
