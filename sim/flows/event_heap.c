#include "flows/event_heap.h"

#include <stdlib.h>
#include <string.h>

enum { ARITY = 4 };

void event_heap_init(struct event_heap *heap, size_t ids)
{
    heap->entries = xcalloc(ids + 1, sizeof *heap->entries);
    heap->place = xcalloc(ids + 1, sizeof *heap->place);
    heap->count = 0;
}

static void put(struct event_heap *heap, size_t at, struct event_entry entry)
{
    heap->entries[at] = entry;
    heap->place[entry.id] = (uint32_t)at + 1;
}

/* The place at `at` is free: fills it with `entry`, or with an entry from above that is later. */
static void rise(struct event_heap *heap, size_t at, struct event_entry entry)
{
    while (at && heap->entries[(at - 1) / ARITY].time > entry.time) {
        put(heap, at, heap->entries[(at - 1) / ARITY]);
        at = (at - 1) / ARITY;
    }
    put(heap, at, entry);
}

/* The same with entries from below that are earlier. */
static void sink(struct event_heap *heap, size_t at, struct event_entry entry)
{
    for (;;) {
        size_t first = ARITY * at + 1, end = first + ARITY < heap->count ? first + ARITY : heap->count, least = first;

        for (size_t child = first + 1; child < end; child++)
            if (heap->entries[child].time < heap->entries[least].time)
                least = child;
        if (first >= heap->count || heap->entries[least].time >= entry.time)
            break;
        put(heap, at, heap->entries[least]);
        at = least;
    }
    put(heap, at, entry);
}

void event_heap_set(struct event_heap *heap, uint32_t id, double time)
{
    size_t at = heap->place[id] ? heap->place[id] - 1 : heap->count++;

    if (heap->place[id] && heap->entries[at].time < time)
        sink(heap, at, (struct event_entry){time, id});
    else
        rise(heap, at, (struct event_entry){time, id});
}

uint32_t event_heap_pop(struct event_heap *heap)
{
    uint32_t id = heap->entries[0].id;

    BUG_IF(!heap->count);
    heap->place[id] = 0;
    heap->count--;
    if (heap->count)
        sink(heap, 0, heap->entries[heap->count]);
    return id;
}

void event_heap_release(struct event_heap *heap)
{
    free(heap->entries);
    free(heap->place);
    memset(heap, 0, sizeof *heap);
}
