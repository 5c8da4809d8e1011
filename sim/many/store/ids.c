#include "store/ids.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"

enum { DIGITS = 8 };             /* hexadecimal digits of a number of 32 bits */

static struct id_entry entry_of(const char *id)
{
    struct id_entry entry = {.there = 1};

    for (size_t i = 0; i < COUNT(entry.digits); i++) {
        char text[DIGITS + 1] = {0};

        memcpy(text, id + i * DIGITS, DIGITS);
        entry.digits[i] = (uint32_t)strtoull(text, NULL, 16);
    }
    return entry;
}

/* The place of the entry, or where it belongs; the table is never full. The hash is Knuth's, multiplicative, so that
 * ids whose first digits are alike do not stand together. */
static struct id_entry *slot(const struct ids *ids, const struct id_entry *entry)
{
    uint32_t hash = (entry->digits[0] + entry->digits[1]) * 2654435769u;
    size_t i = (size_t)(((uint64_t)hash * ids->capacity) >> 32);

    while (ids->items[i].there && memcmp(ids->items[i].digits, entry->digits, sizeof entry->digits))
        i = i + 1 < ids->capacity ? i + 1 : 0;
    return &ids->items[i];
}

/* By half each time, so that little is empty. */
static void grow(struct ids *ids)
{
    struct ids larger = {.count = ids->count, .capacity = ids->capacity ? ids->capacity + ids->capacity / 2 : 64};

    larger.items = xcalloc(larger.capacity, sizeof *larger.items);
    for (size_t i = 0; i < ids->capacity; i++)
        if (ids->items[i].there)
            *slot(&larger, &ids->items[i]) = ids->items[i];
    free(ids->items);
    *ids = larger;
}

struct id_entry *ids_put(struct ids *ids, const char *id)
{
    const struct id_entry entry = entry_of(id);
    struct id_entry *place;

    if (4 * ids->count >= 3 * ids->capacity)
        grow(ids);
    place = slot(ids, &entry);
    if (!place->there) {
        *place = entry;
        ids->count++;
    }
    return place;
}

struct id_entry *ids_find(const struct ids *ids, const char *id)
{
    const struct id_entry entry = entry_of(id);
    struct id_entry *place = ids->count ? slot(ids, &entry) : NULL;

    return place && place->there ? place : NULL;
}

void ids_release(struct ids *ids)
{
    free(ids->items);
    *ids = (struct ids){0};
}
