/* Lists that are read end in the arena, some of them sorted. */
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "evidence/evidence_internal.h"

enum { DIGIT = 11 };             /* bits that a pass sorts by */

void *evidence_list(struct arena *arena, void *items, size_t bytes)
{
    void *settled = bytes ? memcpy(arena_alloc(arena, bytes), items, bytes) : NULL;

    free(items);
    return settled;
}

/* Sorts `order` by one digit of the keys, from the bit `shift` on. */
static void sort_digit(const uint64_t *keys, const uint32_t *order, uint32_t *sorted, size_t count, int shift)
{
    enum { DIGITS = 1 << DIGIT };
    size_t starts[DIGITS + 1] = {0};

    for (size_t i = 0; i < count; i++)
        starts[(keys[i] >> shift & (DIGITS - 1)) + 1]++;
    for (int digit = 0; digit < DIGITS; digit++)
        starts[digit + 1] += starts[digit];
    for (size_t i = 0; i < count; i++)
        sorted[starts[keys[order[i]] >> shift & (DIGITS - 1)]++] = order[i];
}

/* The bits of doubles that are not negative have the order of the doubles. */
void *evidence_settle_sorted(struct arena *arena, void *items, size_t count, size_t size, double (*key)(const void *item))
{
    uint64_t *keys = xcalloc(count, sizeof *keys);
    uint32_t *order = xcalloc(count, sizeof *order), *sorted = xcalloc(count, sizeof *sorted);
    char *settled = count ? arena_alloc(arena, count * size) : NULL;

    for (size_t i = 0; i < count; i++) {
        double value = key((char *)items + i * size);

        memcpy(&keys[i], &value, sizeof value);
        order[i] = (uint32_t)i;
    }
    for (int shift = 0; shift < 64; shift += DIGIT) {
        uint32_t *before = order;

        sort_digit(keys, order, sorted, count, shift);
        order = sorted;
        sorted = before;
    }
    for (size_t i = 0; i < count; i++)
        memcpy(settled + i * size, (char *)items + order[i] * size, size);
    free(sorted);
    free(order);
    free(keys);
    free(items);
    return settled;
}
