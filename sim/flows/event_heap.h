/* event_heap: the times of things that will happen, the earliest first. A 4-ary heap that knows where each thing stands,
 * so that its time can change. */
#ifndef DTSIM_EVENT_HEAP_H
#define DTSIM_EVENT_HEAP_H

#include "base/base.h"

struct event_heap {
    struct event_entry { double time; uint32_t id; } *entries;
    uint32_t *place;                 /* by id: 1 + its index in `entries`; 0: it has no time */
    size_t count;
};

/* For ids below `ids`; event_heap_release when done. */
void event_heap_init(struct event_heap *heap, size_t ids);
/* Gives the id a time, or changes the time that it has. */
void event_heap_set(struct event_heap *heap, uint32_t id, double time);
/* Removes the earliest entry and returns its id; there must be one. Its time is entries[0].time. */
uint32_t event_heap_pop(struct event_heap *heap);
void event_heap_release(struct event_heap *heap);

#endif
