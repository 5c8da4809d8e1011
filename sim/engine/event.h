/* event: what an operation waits for. An event is the end of one operation or of many, such as the transfers of all
 * flows of a boundary: it is made once, and whoever waits for it waits for all of it. */
#ifndef DTSIM_EVENT_H
#define DTSIM_EVENT_H

#include "base/base.h"

#define NO_OP UINT32_MAX

/* `count` 0: nothing, as it has not been lowered yet or never happens. An event of one operation takes no memory
 * beside itself. */
struct event {
    uint32_t count, id;      /* how many operations; the only one */
    const uint32_t *ids;     /* all of them, where they are several; in an arena */
};

/* The end of one operation; of NO_OP: nothing. */
static inline struct event event_of(uint32_t id)
{
    return (struct event){.count = id != NO_OP, .id = id};
}

/* The ends of all of them that are not NO_OP; they are copied. */
struct event event_all(struct arena *arena, const uint32_t *ids, size_t count);
/* The ends of both. */
struct event event_both(struct arena *arena, struct event a, struct event b);
struct waits;
/* The ends of a list of waits, which is released. */
struct event event_taken(struct arena *arena, struct waits *waits);

static inline const uint32_t *event_ids(const struct event *event)
{
    return event->count == 1 ? &event->id : event->ids;
}

/* What one flow of a tensor group does after the event: the end of that flow, where each has one of its own. */
static inline uint32_t event_flow(const struct event *event, int flow)
{
    return event->count == 1 ? event->id : event->ids[flow];
}

/* What the next operation waits for beside the operation before it in its lane. Zero-initialise; free the items. */
struct waits { uint32_t *items; size_t count, capacity; };
static inline void wait_for(struct waits *waits, struct event event)
{
    for (uint32_t i = 0; i < event.count; i++)
        *GROW(waits) = event_ids(&event)[i];
}

#endif
