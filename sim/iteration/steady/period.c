#include "steady/period.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "schedule/schedule.h"

/* Whether work b is work a, `later` micro-batches later. */
static bool same_later(struct work a, struct work b, int later)
{
    return a.kind == b.kind && a.chunk == b.chunk && a.with_next == b.with_next && b.mb == a.mb + later;
}

/* A period is repeated so often at least. From the middle of a row on as large a part of the row repeats it: within a
 * chunk forwards and backwards seem to alternate for ever. A row is looked at LOOKS times before it counts as one
 * without a period. */
enum { REPEATS = 4, LOOKS = 4 };

/* The stretch around the middle of a row, and by how many micro-batches later a period's works are. 0: none. */
static int find_in_row(const struct row *row, struct stretch_of_row *stretch)
{
    const struct work *items = row->items;
    size_t middle = row->count / 2, end, looked = 0;

    for (size_t works = 1; works <= row->count / REPEATS && looked < LOOKS * row->count; works++) {
        int later = items[middle + works].mb - items[middle].mb;

        if (later <= 0)
            continue;
        for (end = middle; end + works < row->count && same_later(items[end], items[end + works], later);)
            end++;
        looked += end - middle;
        if (end < middle + row->count / REPEATS)
            continue;
        *stretch = (struct stretch_of_row){middle, end + works, works};
        while (stretch->first > 0 && same_later(items[stretch->first - 1], items[stretch->first - 1 + works], later))
            stretch->first--;
        return later;
    }
    return 0;
}

bool period_find(const struct row *rows, const struct plan *plan, struct period *period)
{
    int *later = xcalloc((size_t)plan->stages, sizeof *later), all = 1;

    *period = (struct period){.rows = xcalloc((size_t)plan->stages, sizeof *period->rows), .spare = INT_MAX};
    for (int rank = 0; rank < plan->stages && all; rank++) {
        later[rank] = rows[rank].count ? find_in_row(&rows[rank], &period->rows[rank]) : 0;
        all = later[rank] ? lcm(all, later[rank], plan_micro_batches(plan) / REPEATS) : 0;
    }
    for (int rank = 0; rank < plan->stages && all; rank++) {
        struct stretch_of_row *stretch = &period->rows[rank];
        int periods;

        stretch->works *= (size_t)(all / later[rank]);
        periods = (int)((stretch->end - stretch->first) / stretch->works);
        period->spare = periods * all < period->spare ? periods * all : period->spare;
    }
    free(later);
    period->micro_batches = all;
    return all > 0 && period->spare >= REPEATS * all;
}

void period_release(struct period *period)
{
    free(period->rows);
    memset(period, 0, sizeof *period);
}

struct plan period_plan(const struct plan *plan, int taken)
{
    struct plan shorter = *plan;

    shorter.micro_batches -= taken * plan_directions(plan);
    return shorter;
}

/* Whether each kind of work that a chunk has is there for every micro-batch once at most, and for no other. */
static bool well_numbered(const struct row *row, int chunks, int micro_batches)
{
    bool *there = xcalloc((size_t)chunks * WORK_KIND_COUNT * (size_t)micro_batches, sizeof *there), good = true;

    for (size_t i = 0; i < row->count && good; i++) {
        struct work work = row->items[i];
        size_t stream = (size_t)work.chunk * WORK_KIND_COUNT + work.kind;
        bool *own = &there[stream * (size_t)micro_batches + (size_t)work.mb];

        good = work.mb >= 0 && work.mb < micro_batches && !*own;
        if (good)
            *own = true;
    }
    free(there);
    return good;
}

size_t period_end(const struct period *period, int rank, int taken)
{
    return period->rows[rank].end - period->rows[rank].works * (size_t)(taken / period->micro_batches);
}

struct row *period_take(const struct period *period, const struct row *rows, const struct plan *plan, int taken)
{
    struct row *shorter = xcalloc((size_t)plan->stages, sizeof *shorter);
    struct plan left = period_plan(plan, taken);
    bool good = true;

    for (int rank = 0; rank < plan->stages; rank++) {
        size_t end = period_end(period, rank, taken), fewer = period->rows[rank].end - end;
        size_t count = rows[rank].count - fewer;
        struct work *items = xcalloc(count + 1, sizeof *items);

        memcpy(items, rows[rank].items, end * sizeof *items);
        for (size_t i = end; i < count; i++) {
            items[i] = rows[rank].items[i + fewer];
            items[i].mb -= taken;
        }
        shorter[rank] = (struct row){items, count, count + 1};
        good = good && well_numbered(&shorter[rank], plan->chunks, plan_micro_batches(&left));
    }
    if (good && !rows_deadlock(shorter, &left))
        return shorter;
    rows_release(shorter, plan->stages);
    return NULL;
}
