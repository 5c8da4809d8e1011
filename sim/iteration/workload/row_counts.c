#include "workload/row_counts.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/cache.h"
#include "config/field.h"
#include "schedule/schedule.h"

static bool is_backward(const struct work *work)
{
    return work->kind == BACKWARD || work->kind == BACKWARD_INPUT;
}

/* Works of one action begin and end together: between them nothing is counted. */
static int most_flying(const struct row *row)
{
    int now = 0, most = 0;

    for (size_t i = 0; i < row->count; i++) {
        now += row->items[i].kind == FORWARD ? 1 : is_backward(&row->items[i]) ? -1 : 0;
        most = now > most && !row->items[i].with_next ? now : most;
    }
    return most;
}

static void count_row(const struct row *row, struct row_counts *counts, int *before, int *behind)
{
    size_t last = row->count ? row->count - 1 : 0;

    counts->count = row->count;
    counts->flying = most_flying(row);
    for (size_t i = 0; i < row->count; i++)
        counts->overlaps |= row->items[i].with_next && row->items[i].kind != row->items[i + 1].kind;
    while (last > 0 && !is_backward(&row->items[last]))
        last--;
    for (size_t i = 0; i < row->count; i++)
        (i <= last ? before : behind)[row->items[i].chunk * WORK_KIND_COUNT + (int)row->items[i].kind]++;
    if (row->count) {
        counts->first = row->items[0].chunk;
        counts->last = row->items[last].chunk;
    }
}

const struct row_counts *rows_count(struct arena *arena, const struct row *rows, const struct plan *plan)
{
    size_t numbers = (size_t)plan->chunks * WORK_KIND_COUNT;
    struct row_counts *all = ARENA_ARRAY(arena, struct row_counts, plan->stages);
    int *own = NULL;                 /* room for the numbers of a rank */

    for (int rank = 0; rank < plan->stages; rank++) {
        struct row_counts *counts = &all[rank];

        if (own)
            memset(own, 0, 2 * numbers * sizeof *own);
        else
            own = ARENA_ARRAY(arena, int, 2 * numbers);
        count_row(&rows[rank], counts, own, own + numbers);
        if (rank > 0 && !memcmp(own, counts[-1].before, 2 * numbers * sizeof *own)) {
            counts->before = counts[-1].before;
            counts->behind = counts[-1].behind;
        } else {
            counts->before = own;
            counts->behind = own + numbers;
            own = NULL;
        }
    }
    return all;
}

/* Whether it is one of the schedules that the program has, not an order from a file. */
static bool is_listed(const struct schedule *schedule)
{
    size_t i = 0;

    while (schedule_at(i) && schedule_at(i) != schedule)
        i++;
    return schedule_at(i) != NULL;
}

/* What the rows depend on. */
static struct cache_key counts_key(const struct schedule *schedule, const struct plan *plan)
{
    const int numbers[] = {plan->stages, plan->chunks, plan->micro_batches, plan->flush, plan->batches, (int)plan->placement,
                           plan->recompute, plan->pairs};
    struct cache_key key = {0};

    cache_key_text(&key, schedule->name);
    cache_key_add(&key, numbers, sizeof numbers);
    if (schedule->options)
        field_key(schedule->options, plan->options, &key);
    return key;
}

static const struct row_counts *counts_made(struct arena *arena, const struct schedule *schedule, const struct plan *plan)
{
    struct row *rows = rows_of(schedule, plan);
    const struct row_counts *counts = rows_count(arena, rows, plan);

    rows_release(rows, plan->stages);
    return counts;
}

const struct row_counts *schedule_counts(struct arena *arena, const struct schedule *schedule, const struct plan *plan)
{
    struct cache *cache = arena->cache;
    const struct row_counts *counts;
    struct cache_key key;

    if (schedule->timed || plan->placement == PLACEMENT_TABLE || !is_listed(schedule))
        return NULL;
    if (!cache)
        return counts_made(arena, schedule, plan);
    key = counts_key(schedule, plan);
    counts = cache_find(cache, CACHE_COUNTS, key.items, key.count);
    if (!counts) {
        struct arena own = {.cache = cache};

        counts = counts_made(&own, schedule, plan);
        if (!cache_put(cache, CACHE_COUNTS, key.items, key.count, counts, &own))
            arena_join(arena, &own);
    }
    free(key.items);
    return counts;
}
