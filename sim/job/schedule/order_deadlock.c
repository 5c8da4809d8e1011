/* Finds out which work of an order waits for which, as lower_work.c has it, and whether there is a cycle. */
#include "schedule/order_internal.h"

#include <stdlib.h>

#include "base/base.h"

/* All ranks go through their rows. */
struct walk {
    const struct order *order;
    /* The cell of each direction, stage and micro-batch (place), or NULL; backwards: B or I. */
    const struct order_cell **forwards, **recomputes, **backwards;
    size_t *cursor;              /* [rank]: number of cells done */
};

static size_t place(const struct order *order, int direction, int stage, int mb)
{
    size_t of_direction = (size_t)direction * (size_t)order->stages + (size_t)stage;

    return of_direction * (size_t)(order->micro_batches / order->directions) + (size_t)mb;
}

static struct walk walk_begin(const struct order *order)
{
    size_t places = place(order, order->directions, 0, 0);
    struct walk walk = {
        .order = order, .forwards = xcalloc(places, sizeof *walk.forwards),
        .recomputes = xcalloc(places, sizeof *walk.recomputes), .backwards = xcalloc(places, sizeof *walk.backwards),
        .cursor = xcalloc((size_t)order->ranks, sizeof *walk.cursor),
    };

    for (size_t i = 0; i < order->count; i++) {
        const struct order_cell *cell = &order->cells[i];
        size_t at = place(order, cell->direction, cell->stage, cell->mb);

        if (cell->kind == FORWARD)
            walk.forwards[at] = cell;
        else if (cell->kind == RECOMPUTE)
            walk.recomputes[at] = cell;
        else if (cell->kind != BACKWARD_WEIGHT)
            walk.backwards[at] = cell;
    }
    return walk;
}

static void walk_end(struct walk *walk)
{
    free(walk->forwards);
    free(walk->recomputes);
    free(walk->backwards);
    free(walk->cursor);
}

static bool done(const struct walk *walk, const struct order_cell *cell)
{
    return !cell || cell->at < walk->cursor[cell->rank];
}

/* A cell that this one waits for and that has not been done, or NULL. */
static const struct order_cell *awaited(const struct walk *walk, const struct order_cell *cell)
{
    const struct order *order = walk->order;
    size_t here = place(order, cell->direction, cell->stage, cell->mb);
    const struct order_cell *own = walk->forwards[here], *other = NULL;
    bool early = cell->kind == RECOMPUTE && order->schedule.recompute == RECOMPUTE_EARLY;

    if (cell->kind == FORWARD)
        own = cell->stage ? walk->forwards[place(order, cell->direction, cell->stage - 1, cell->mb)] : NULL;
    else if (cell->kind == BACKWARD_WEIGHT)
        own = walk->backwards[here];
    else if (cell->kind != RECOMPUTE && walk->recomputes[here])
        own = walk->recomputes[here];
    if (cell->kind != FORWARD && cell->kind != BACKWARD_WEIGHT && !early && cell->stage + 1 < order->stages)
        other = walk->backwards[place(order, cell->direction, cell->stage + 1, cell->mb)];
    return !done(walk, own) ? own : !done(walk, other) ? other : NULL;
}

/* The cell of the rank's next action that has to wait, or NULL; `last`: the action's last cell. */
static const struct order_cell *waiting(const struct walk *walk, int rank, const struct order_cell **last)
{
    const struct order_cell *cell = &walk->order->cells[walk->order->first[rank] + walk->cursor[rank]];
    const struct order_cell *waits = NULL;

    for (*last = cell; ; ++*last) {
        if (!waits && awaited(walk, *last))
            waits = *last;
        if (!(*last)->with_next)
            return waits;
    }
}

static bool finished(const struct walk *walk, int rank)
{
    return walk->order->first[rank] + walk->cursor[rank] == walk->order->first[rank + 1];
}

/* Follows from each waiting rank to the rank that it waits for. At the first rank that is met twice a cycle begins; the
 * message describes it. */
static int explain(const struct walk *walk, int rank, struct error *err)
{
    const struct order *order = walk->order;
    const struct order_cell *waits, *wanted, *last, *from = NULL;
    bool *met = xcalloc((size_t)order->ranks, sizeof *met), recomputes = false;
    char *text = NULL, cells[2][CELL_SIZE];
    size_t size;
    FILE *out = text_open(&text, &size);
    int start, rc;

    for (; !met[rank]; rank = awaited(walk, waiting(walk, rank, &last))->rank)
        met[rank] = true;
    start = rank;
    do {
        waits = waiting(walk, rank, &last);
        wanted = awaited(walk, waits);
        recomputes |= waits->kind == RECOMPUTE && wanted->kind != FORWARD;
        if (from)
            fprintf(out, ", which waits at %s (line %d, column %d)", cell_text(order, waits, cells[0]), waits->line,
                    waits->column);
        else
            fprintf(out, "rank %d waits at %s", rank, cell_text(order, waits, cells[0]));
        if (wanted->rank == rank)
            fprintf(out, " for %s, which %s (line %d, column %d)", cell_text(order, wanted, cells[1]),
                    wanted->at <= last->at ? "is part of the same action" : "it would do later", wanted->line,
                    wanted->column);
        else
            fprintf(out, " for rank %d (%s)", wanted->rank, cell_text(order, wanted, cells[1]));
        from = from ? from : waits;
        rank = wanted->rank;
    } while (rank != start);
    text_close(out, &text);
    rc = error_add(err, EXIT_INPUT, cell_loc(order, from), "the order deadlocks: %s%s", text, recomputes ?
                   "; a recomputation waits for its gradient: 'recomputation: early' lets it begin at once" : "");
    free(text);
    free(met);
    return rc;
}

int order_deadlock(const struct order *order, struct error *err)
{
    struct walk walk = walk_begin(order);
    const struct order_cell *last;
    int stuck = -1, rc = 0;

    for (bool moved = true; moved;) {
        moved = false;
        stuck = -1;
        for (int rank = order->ranks - 1; rank >= 0; rank--) {
            while (!finished(&walk, rank) && !waiting(&walk, rank, &last)) {
                walk.cursor[rank] = last->at + 1;
                moved = true;
            }
            stuck = finished(&walk, rank) ? stuck : rank;
        }
    }
    if (stuck >= 0)
        rc = explain(&walk, stuck, err);
    walk_end(&walk);
    return rc;
}
