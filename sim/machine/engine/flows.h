/* flows: bytes under way on the links of a cluster. Flows share links by max-min fairness: no flow can be made faster
 * without making another slower that is not faster than it. The rates follow from progressive filling (Bertsekas and
 * Gallager, Data Networks, 1992, section 6.5.2): the rates of all flows rise together; when a link is full, its flows
 * keep their rates, and the others rise on.
 *
 * Amounts are in units of the caller's choice. The arithmetic is SimGrid's, operation by operation, because simulations
 * with contention are chaotic: a difference in the last digit can decide which of two transfers goes first. */
#ifndef DTSIM_FLOWS_H
#define DTSIM_FLOWS_H

#include "engine/event_heap.h"
#include "engine/sharing.h"
#include "hardware/cluster.h"

struct flow_ids { uint32_t *items; size_t count, capacity; };

/* Zero-initialise; flows_init, flows_release. */
struct flows {
    const struct sharing *sharing;
    struct event_heap *ends;
    double unit;                     /* units in a byte */
    double together;                 /* s: flows that end no further apart may end together */
    char *items;                     /* struct flow, by id: flow_of() */
    size_t flow_size;                /* B of one, with its hops */
    struct flow_link *links;         /* by their numbers in `sharing` */
    unsigned shift;                  /* a flow has room for 1 << shift links */
    struct flow_ids
        started, changed,            /* flows, links: since links were shared last */
        open, filling, full;         /* flows and links of the component whose rates are being found */
    double lowest_cap;               /* of its flows that still rise */
    double moved;                    /* of the time, for the component's flows (timeline.moved) */
    bool unclear;                    /* flows of a component came or went together whose times change differently */
    uint32_t round;                  /* counts how often links were shared */
};

/* `ids`: the most flows at once, numbered from 0. `ends` is told when flows will end, by their ids. Of flows whose
 * rates depend on each other, it hears of the first that end, and of all that end at most `together` (s) later. The
 * sharing is used until the release. */
void flows_init(struct flows *flows, const struct sharing *sharing, const struct cluster *cluster, size_t ids, double unit,
                double together, struct event_heap *ends);
/* The shared links from one GPU to another. */
struct flow_route {
    double cap;                      /* units/s of the narrowest of all links */
    uint32_t first;                  /* its first link among sharing.crossed */
    uint8_t hops;                    /* links */
};
/* Of a transfer of these traits, with the bandwidth of its cost. */
struct flow_route flows_route(struct flows *flows, uint32_t traits, double bandwidth);
/* Begins a flow on a route at `now` (s), which changes by `moved` (timeline.moved). Its end is known after flows_share. */
void flows_start(struct flows *flows, uint32_t id, struct flow_route route, double units, double now, double moved);
/* Takes a flow away, whatever it has left. If `ends` still has its end, it stays there. Returns by how much its end
 * changes. */
double flows_stop(struct flows *flows, uint32_t id);
/* Shares the links anew between the flows that are there at `now`, and writes changed ends to `ends`. */
void flows_share(struct flows *flows, double now);
void flows_release(struct flows *flows);

#endif
