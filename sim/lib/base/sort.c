#include "base/base.h"

struct sorting {
    size_t size;
    int (*compare)(const void *, const void *, void *);
    void *context;
    char *room;                      /* for half of the items */
};

static inline char *copied(char *to, const char **from, size_t size)
{
    if (size == sizeof(uint32_t))
        memcpy(to, *from, sizeof(uint32_t));
    else if (size == sizeof(uint64_t))
        memcpy(to, *from, sizeof(uint64_t));
    else
        memcpy(to, *from, size);
    *from += size;
    return to + size;
}

static void merge_sort(const struct sorting *sorting, char *items, size_t count)
{
    size_t size = sorting->size, half = count / 2 * size;
    const char *left = sorting->room, *left_end = left + half, *right = items + half, *end = items + count * size;

    if (count < 2)
        return;
    merge_sort(sorting, items, count / 2);
    merge_sort(sorting, items + half, count - count / 2);
    if (sorting->compare(right - size, right, sorting->context) <= 0)
        return;
    memcpy(sorting->room, items, half);
    while (left < left_end && right < end)
        items = copied(items, sorting->compare(left, right, sorting->context) <= 0 ? &left : &right, size);
    memcpy(items, left, (size_t)(left_end - left));
}

void array_sort_by(void *items, size_t count, size_t size, int (*compare)(const void *, const void *, void *), void *context)
{
    struct sorting sorting = {size, compare, context, NULL};

    if (count < 2)
        return;
    sorting.room = xcalloc(count / 2, size);
    merge_sort(&sorting, items, count);
    free(sorting.room);
}

struct plain { int (*compare)(const void *, const void *); };

static int without_context(const void *a, const void *b, void *context)
{
    return ((const struct plain *)context)->compare(a, b);
}

void array_sort(void *items, size_t count, size_t size, int (*compare)(const void *, const void *))
{
    array_sort_by(items, count, size, without_context, &(struct plain){compare});
}
