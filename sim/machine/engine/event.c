#include "engine/event.h"

#include <stdlib.h>

#include "base/base.h"

struct event event_all(struct arena *arena, const uint32_t *ids, size_t count)
{
    struct event event = {0};
    uint32_t *copy = NULL;

    for (size_t i = 0; i < count; i++) {
        if (ids[i] == NO_OP)
            continue;
        if (event.count == 1) {
            copy = ARENA_ARRAY(arena, uint32_t, count);
            copy[0] = event.id;
        }
        if (event.count++ == 0)
            event.id = ids[i];
        else
            copy[event.count - 1] = ids[i];
    }
    event.ids = copy;
    return event;
}

struct event event_taken(struct arena *arena, struct waits *waits)
{
    struct event event = event_all(arena, waits->items, waits->count);

    free(waits->items);
    *waits = (struct waits){0};
    return event;
}

struct event event_both(struct arena *arena, struct event a, struct event b)
{
    struct waits waits = {0};

    if (!a.count || !b.count)
        return a.count ? a : b;
    wait_for(&waits, a);
    wait_for(&waits, b);
    return event_taken(arena, &waits);
}
