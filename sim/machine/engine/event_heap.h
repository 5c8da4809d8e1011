/* event_heap: the times of things that will happen, the earliest first. A 4-ary heap that knows where each thing
 * stands, so that its time can change. Much happens at the very same time in programs whose ranks do the same: of
 * things that get the same time one after another, only one stands in the heap; the others are in a ring with it. */
#ifndef DTSIM_EVENT_HEAP_H
#define DTSIM_EVENT_HEAP_H

#include "base/base.h"

struct event_heap {
    struct event_entry { double time; uint32_t id; } *entries;
    uint32_t *place;                 /* by id: 1 + its index in `entries`; 0: it stands in none */
    struct event_ring { uint32_t next, previous; } *rings;   /* by id: another id of the same time; the id itself where
                                                                it is alone */
    size_t count;                    /* entries */
    uint32_t latest;                 /* the id that stood in an entry when it got its time last */
};

/* For ids below `ids`; event_heap_release when done. */
void event_heap_init(struct event_heap *heap, size_t ids);
/* Gives the id a time, or changes the time that it has. */
void event_heap_set(struct event_heap *heap, uint32_t id, double time);
/* Takes the id out, if it is there. */
void event_heap_unset(struct event_heap *heap, uint32_t id);
/* Removes the earliest entry, which must be there, and writes its ids, whose time is entries[0].time. These may be all
 * ids. Returns their number. */
size_t event_heap_pop(struct event_heap *heap, uint32_t *ids);
void event_heap_release(struct event_heap *heap);

#endif
