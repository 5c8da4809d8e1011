#include "import/remarks.h"

#include <stdlib.h>

#include "base/base.h"

/* FNV-1a (Fowler, Noll, Vo), over both texts. */
static uint32_t hash(const char *name, const char *why)
{
    uint32_t value = 2166136261u;

    for (; *name; name++)
        value = (value ^ (unsigned char)*name) * 16777619u;
    for (; *why; why++)
        value = (value ^ (unsigned char)*why) * 16777619u;
    return value;
}

/* The slot of an item, or the free slot where it would stand. At least half of the slots are free. */
static uint32_t *slot_of(const struct remarks *remarks, const char *name, const char *why)
{
    size_t at = hash(name, why) & (remarks->slots.count - 1);
    uint32_t item;

    while ((item = remarks->slots.items[at]) &&
           (!text_same(remarks->items[item - 1].name, name) || !text_same(remarks->items[item - 1].why, why)))
        at = (at + 1) & (remarks->slots.count - 1);
    return &remarks->slots.items[at];
}

static void make_room(struct remarks *remarks)
{
    if (2 * (remarks->count + 1) <= remarks->slots.count)
        return;
    free(remarks->slots.items);
    remarks->slots.count = remarks->slots.count ? 2 * remarks->slots.count : 64;
    remarks->slots.items = xcalloc(remarks->slots.count, sizeof *remarks->slots.items);
    for (size_t i = 0; i < remarks->count; i++)
        *slot_of(remarks, remarks->items[i].name, remarks->items[i].why) = (uint32_t)i + 1;
}

const char *remark_add(struct remarks *remarks, const char *name, const char *why, size_t count, double us)
{
    uint32_t *slot;

    make_room(remarks);
    slot = slot_of(remarks, name, why);
    if (!*slot) {
        *GROW(remarks) = (struct remark){.name = arena_strdup(&remarks->arena, name), .why = why};
        *slot = (uint32_t)remarks->count;
    }
    remarks->items[*slot - 1].count += count;
    remarks->items[*slot - 1].us += us;
    return remarks->items[*slot - 1].name;
}

static int by_time(const void *a, const void *b)
{
    const struct remark *x = a, *y = b;
    int order = x->us > y->us ? -1 : x->us < y->us;

    order = order ? order : strcmp(x->name, y->name);
    return order ? order : strcmp(x->why, y->why);
}

void remarks_sort(struct remarks *remarks)
{
    if (!remarks->count)
        return;
    array_sort(remarks->items, remarks->count, sizeof *remarks->items, by_time);
    memset(remarks->slots.items, 0, remarks->slots.count * sizeof *remarks->slots.items);
    for (size_t i = 0; i < remarks->count; i++)
        *slot_of(remarks, remarks->items[i].name, remarks->items[i].why) = (uint32_t)i + 1;
}

void remarks_release(struct remarks *remarks)
{
    free(remarks->items);
    free(remarks->slots.items);
    arena_release(&remarks->arena);
    *remarks = (struct remarks){0};
}
