#include "engine/event_heap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

enum { ARITY = 4 };              /* earliest() knows it */

void event_heap_init(struct event_heap *heap, size_t ids)
{
    heap->entries = xcalloc(ids + ARITY, sizeof *heap->entries);
    heap->place = xcalloc(ids + 1, sizeof *heap->place);
    heap->rings = xcalloc(ids + 1, sizeof *heap->rings);
    for (uint32_t id = 0; id < ids; id++)
        heap->rings[id] = (struct event_ring){id, id};
    for (size_t at = 0; at < ids + ARITY; at++)
        heap->entries[at].time = INFINITY;
    heap->count = 0;
    heap->latest = 0;
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

/* The earliest of the ARITY entries from `first` on, the first one of several. Entries behind the heap's end never
 * come. */
static size_t earliest(const struct event_heap *heap, size_t first)
{
    const struct event_entry *entries = heap->entries;
    size_t left = first, right = first + 2;

    left += entries[left + 1].time < entries[left].time;
    right += entries[right + 1].time < entries[right].time;
    return entries[right].time < entries[left].time ? right : left;
}

/* The same with entries from below that are earlier. */
static void sink(struct event_heap *heap, size_t at, struct event_entry entry)
{
    for (size_t first = ARITY * at + 1; first < heap->count; first = ARITY * at + 1) {
        size_t least = earliest(heap, first);

        if (heap->entries[least].time >= entry.time)
            break;
        put(heap, at, heap->entries[least]);
        at = least;
    }
    put(heap, at, entry);
}

/* Takes the id out of its ring. If it stood in the heap, the next of the ring stands there now. */
static void leave_ring(struct event_heap *heap, uint32_t id)
{
    struct event_ring *ring = &heap->rings[id];

    if (heap->place[id]) {
        heap->entries[heap->place[id] - 1].id = ring->next;
        heap->place[ring->next] = heap->place[id];
        heap->place[id] = 0;
    }
    heap->rings[ring->next].previous = ring->previous;
    heap->rings[ring->previous].next = ring->next;
    *ring = (struct event_ring){id, id};
}

static void join_ring(struct event_heap *heap, uint32_t id, uint32_t other)
{
    uint32_t next = heap->rings[other].next;

    heap->rings[id] = (struct event_ring){next, other};
    heap->rings[next].previous = heap->rings[other].next = id;
}

/* Whether the id needs no entry of its own, because its predecessor got this time. */
static bool joins_latest(struct event_heap *heap, uint32_t id, double time)
{
    uint32_t latest = heap->latest;

    if (latest == id || !heap->place[latest] || heap->entries[heap->place[latest] - 1].time != time || heap->place[id])
        return false;
    join_ring(heap, id, latest);
    return true;
}

/* Gives a time to an id that stands in no entry and no ring. */
static void add(struct event_heap *heap, uint32_t id, double time)
{
    if (joins_latest(heap, id, time))
        return;
    heap->latest = id;
    rise(heap, heap->count++, (struct event_entry){time, id});
}

/* The entry at `at` has another time now. */
static void move(struct event_heap *heap, size_t at, struct event_entry entry)
{
    if (at && heap->entries[(at - 1) / ARITY].time > entry.time)
        rise(heap, at, entry);
    else
        sink(heap, at, entry);
}

void event_heap_set(struct event_heap *heap, uint32_t id, double time)
{
    if (heap->rings[id].next != id)
        leave_ring(heap, id);
    if (!heap->place[id]) {
        add(heap, id, time);
        return;
    }
    heap->latest = id;
    move(heap, heap->place[id] - 1, (struct event_entry){time, id});
}

void event_heap_unset(struct event_heap *heap, uint32_t id)
{
    struct event_entry last;
    size_t at;

    if (heap->rings[id].next != id)
        leave_ring(heap, id);
    if (!heap->place[id])
        return;
    at = heap->place[id] - 1;
    heap->place[id] = 0;
    last = heap->entries[--heap->count];
    heap->entries[heap->count].time = INFINITY;
    if (at < heap->count)
        move(heap, at, last);
}

size_t event_heap_pop(struct event_heap *heap, uint32_t *ids)
{
    uint32_t first = heap->entries[0].id, id = first;
    size_t count = 0;

    BUG_IF(!heap->count);
    do {
        uint32_t next = heap->rings[id].next;

        heap->rings[id] = (struct event_ring){id, id};
        ids[count++] = id;
        id = next;
    } while (id != first);
    heap->place[first] = 0;
    heap->count--;
    if (heap->count)
        sink(heap, 0, heap->entries[heap->count]);
    heap->entries[heap->count].time = INFINITY;
    return count;
}

void event_heap_release(struct event_heap *heap)
{
    free(heap->entries);
    free(heap->place);
    free(heap->rings);
    memset(heap, 0, sizeof *heap);
}
