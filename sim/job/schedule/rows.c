/* Rows of all ranks: what a schedule writes, again for each flush. */
#include "schedule/schedule.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"

/* Each backward, and the forward that followed it, change places and become one action. */
static void pair_works(struct row *row)
{
    for (size_t i = 0; i + 1 < row->count; i++) {
        struct work work = row->items[i];

        if (work.kind != BACKWARD || row->items[i + 1].kind != FORWARD)
            continue;
        row->items[i] = row->items[i + 1];
        row->items[i].with_next = true;
        row->items[++i] = work;
    }
}

struct plan plan_of_flush(const struct plan *plan)
{
    struct plan part = *plan;

    part.flush = 0;
    part.micro_batches = plan->flush ? plan->flush : plan->micro_batches;
    return part;
}

int plan_flushes(const struct plan *plan)
{
    return plan->flush ? plan->micro_batches / plan->flush : 1;
}

/* Appends the row's works again, for the micro-batches behind them, as often as there are further flushes. */
static void repeat_row(struct row *row, int flushes, int micro_batches)
{
    size_t count = row->count;

    row->capacity = (size_t)flushes * count + 1;
    row->items = xrealloc(row->items, row->capacity, sizeof *row->items);
    for (; row->count < (size_t)flushes * count; row->count++) {
        row->items[row->count] = row->items[row->count - count];
        row->items[row->count].mb += micro_batches;
    }
}

static struct row *rows_between_flushes(const struct schedule *schedule, const struct plan *plan)
{
    struct row *rows = xcalloc((size_t)plan->stages, sizeof *rows);

    if (schedule->rows)
        schedule->rows(rows, plan);
    for (int rank = 0; !schedule->rows && rank < plan->stages; rank++) {
        if (rank > 0)                /* rows are about as long as each other */
            rows[rank] = (struct row){xmalloc(rows[rank - 1].count * sizeof *rows->items), 0, rows[rank - 1].count};
        schedule->row(&rows[rank], plan, rank);
    }
    for (int rank = 0; plan->pairs && rank < plan->stages; rank++)
        pair_works(&rows[rank]);
    return rows;
}

struct row *rows_of(const struct schedule *schedule, const struct plan *plan)
{
    struct plan part = plan_of_flush(plan);
    struct row *rows = rows_between_flushes(schedule, &part);

    for (int rank = 0; rank < plan->stages && plan_flushes(plan) > 1; rank++)
        repeat_row(&rows[rank], plan_flushes(plan), plan_micro_batches(&part));
    return rows;
}

void rows_release(struct row *rows, int count)
{
    for (int rank = 0; rank < count; rank++)
        free(rows[rank].items);
    free(rows);
}

struct row *rows_copy(const struct row *rows, int count)
{
    struct row *copy = xcalloc((size_t)count, sizeof *copy);

    for (int rank = 0; rank < count; rank++) {
        size_t cells = rows[rank].count;

        copy[rank] = (struct row){xcalloc(cells + 1, sizeof *copy[rank].items), cells, cells + 1};
        if (cells)
            memcpy(copy[rank].items, rows[rank].items, cells * sizeof *copy[rank].items);
    }
    return copy;
}

void rows_strip_updates(struct row *rows, int count)
{
    for (int rank = 0; rank < count; rank++) {
        size_t kept = 0;

        for (size_t i = 0; i < rows[rank].count; i++)
            if (rows[rank].items[i].kind != UPDATE)
                rows[rank].items[kept++] = rows[rank].items[i];
        rows[rank].count = kept;
    }
}
