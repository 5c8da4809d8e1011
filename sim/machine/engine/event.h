/* event: the ends of one or more operations, for which others wait; for example of the transfers of all flows of a
 * boundary. An operation that waits for an event waits for all these ends. */
#ifndef DTSIM_EVENT_H
#define DTSIM_EVENT_H

#include "base/base.h"

#define NO_OP UINT32_MAX

/* `count` 0: an empty event, which has not been lowered yet or never happens. An event of one operation needs no memory
 * of its own. */
struct event {
    uint32_t count, id;      /* the number of operations; the operation, if there is one */
    const uint32_t *ids;     /* all operations, if there are several; in an arena */
};

/* The end of one operation; empty for NO_OP. */
static inline struct event event_of(uint32_t id)
{
    return (struct event){.count = id != NO_OP, .id = id};
}

/* The ends of all ids that are not NO_OP. The ids are copied. */
struct event event_all(struct arena *arena, const uint32_t *ids, size_t count);
/* The ends of both events. */
struct event event_both(struct arena *arena, struct event a, struct event b);
struct waits;
/* The ends of a list of waits, which is released. */
struct event event_taken(struct arena *arena, struct waits *waits);

static inline const uint32_t *event_ids(const struct event *event)
{
    return event->count == 1 ? &event->id : event->ids;
}

/* The operation that one flow of a tensor group waits for: its own, if the event has one for each flow. */
static inline uint32_t event_flow(const struct event *event, int flow)
{
    return event->count == 1 ? event->id : event->ids[flow];
}

/* The operations that the next operation waits for, in addition to its predecessor in its lane. Zero-initialise; free
 * the items. */
struct waits { uint32_t *items; size_t count, capacity; };
static inline void wait_for(struct waits *waits, struct event event)
{
    for (uint32_t i = 0; i < event.count; i++)
        *GROW(waits) = event_ids(&event)[i];
}

#endif
