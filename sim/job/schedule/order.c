#include "schedule/order_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"

/* The rows of the order. Under full recomputation, if the order has no recomputations, one is added right before each
 * backward. */
static void order_rows(struct row *rows, const struct plan *plan)
{
    const struct order *order = plan->options;
    bool fill = plan->recompute && !order->recomputes;

    for (int rank = 0; rank < order->ranks; rank++)
        for (size_t i = order->first[rank], last; i < order->first[rank + 1]; i = last + 1) {
            for (last = i; order->cells[last].with_next; last++)
                ;
            for (size_t k = i; fill && k <= last; k++)
                if (order->cells[k].kind == BACKWARD || order->cells[k].kind == BACKWARD_INPUT)
                    recompute(&rows[rank], order->cells[k].chunk, order->cells[k].mb);
            for (size_t k = i; k <= last; k++)
                *GROW(&rows[rank]) = (struct work){order->cells[k].kind, order->cells[k].chunk, order->cells[k].mb,
                                                   order->cells[k].with_next};
        }
}

enum { MOST_CHUNKS = 1024 };     /* as in strategy.chunks */

/* Numbers each rank's chunks by direction and stage. Returns the places of all stages; NULL if a rank has too many. */
static struct stage_table *place_stages(struct arena *arena, struct order *order, struct order_cell *const *sorted)
{
    struct stage_table *table = ARENA_ARRAY(arena, struct stage_table, 1);
    int stages = order->directions * order->stages, *chunks = ARENA_ARRAY(arena, int, order->ranks);
    int *rank = ARENA_ARRAY(arena, int, stages), *chunk = ARENA_ARRAY(arena, int, stages), *stage, *direction;

    for (size_t i = 0; i < order->count; i++) {
        int at = sorted[i]->direction * order->stages + sorted[i]->stage;

        if (i == 0 || sorted[i]->stage != sorted[i - 1]->stage || sorted[i]->direction != sorted[i - 1]->direction) {
            rank[at] = sorted[i]->rank;
            chunk[at] = chunks[rank[at]]++;
            order->chunks = chunks[rank[at]] > order->chunks ? chunks[rank[at]] : order->chunks;
        }
        sorted[i]->chunk = chunk[at];
    }
    if (order->chunks > MOST_CHUNKS)
        return NULL;
    stage = ARENA_ARRAY(arena, int, (size_t)order->ranks * (size_t)order->chunks);
    direction = ARENA_ARRAY(arena, int, (size_t)order->ranks * (size_t)order->chunks);
    for (int i = 0; i < stages; i++) {
        stage[rank[i] * order->chunks + chunk[i]] = i % order->stages;
        direction[rank[i] * order->chunks + chunk[i]] = i / order->stages;
    }
    *table = (struct stage_table){
        .stages = order->stages, .directions = order->directions, .rank = rank, .chunk = chunk, .stage = stage,
        .direction = direction, .chunks = chunks,
    };
    return table;
}

/* The copies of a stage in both directions sum their gradients between ranks, so they must be on different ranks. */
static int check_copies(const struct order *order, const struct stage_table *table, struct error *err)
{
    char text[CELL_SIZE];

    for (size_t i = 0; order->directed && i < order->count; i++) {
        const struct order_cell *cell = &order->cells[i];

        if (table->rank[(1 - cell->direction) * order->stages + cell->stage] == cell->rank)
            return error_add(err, EXIT_INPUT, cell_loc(order, cell), "%s: rank %d has stage %d of both directions; "
                             "expected them on different ranks", cell_text(order, cell, text), cell->rank, cell->stage);
    }
    return 0;
}

/* Whether that placement puts all stages where the table has them. */
static bool placed_by(enum placement placement, const struct order *order, const struct stage_table *table)
{
    struct plan plan = {.stages = order->ranks, .chunks = order->chunks, .placement = placement};

    if ((placement != PLACEMENT_LOOP && order->chunks != 2) || plan_directions(&plan) != order->directions ||
        plan_virtual_stages(&plan) != order->stages)
        return false;
    for (int rank = 0; rank < order->ranks; rank++)
        for (int chunk = 0; chunk < order->chunks; chunk++)
            if (table->chunks[rank] != order->chunks ||
                table->stage[rank * order->chunks + chunk] != plan_virtual_stage(&plan, rank, chunk) ||
                table->direction[rank * order->chunks + chunk] != plan_direction(&plan, rank, chunk))
                return false;
    return true;
}

int order_parse(struct arena *arena, const char *file, const char *text, size_t length, enum recompute_rule rule,
                struct order *order, struct error *err)
{
    const struct stage_table *table = NULL;
    struct order_cell **sorted = NULL;
    int rc;

    *order = (struct order){
        .file = arena_strdup(arena, file),
        .schedule = {.name = "csv", .recompute = rule, .rows = order_rows, .placement = PLACEMENT_TABLE,
                     .title = arena_printf(arena, "the order of %s", file)},
    };
    if (order_read(arena, text, length, order, err))
        return -1;
    rc = order_complete(order, &sorted, err);
    if (!rc && !(table = place_stages(arena, order, sorted)))
        rc = error_add(err, EXIT_INPUT, (struct loc){order->file, 1, 1}, "a rank has %d stages; expected at most %d",
                       order->chunks, MOST_CHUNKS);
    if (!rc)
        rc = check_copies(order, table, err);
    if (!rc) {
        for (enum placement placement = PLACEMENT_LOOP; placement < PLACEMENT_TABLE; placement++)
            if (order->schedule.placement == PLACEMENT_TABLE && placed_by(placement, order, table))
                order->schedule.placement = placement;
        order->table = order->schedule.placement == PLACEMENT_TABLE ? table : NULL;
        for (size_t i = 0; i < order->count; i++)
            order->recomputes |= order->cells[i].kind == RECOMPUTE;
        rc = order_deadlock(order, err);
    }
    free(sorted);
    return rc;
}

int order_load(struct arena *arena, const char *path, struct loc loc, enum recompute_rule rule, struct order *order,
               struct error *err)
{
    size_t length;
    char *text = file_read(path, "order", ORDER_MAX_BYTES, loc, &length, err);
    int rc = text ? order_parse(arena, path, text, length, rule, order, err) : -1;

    free(text);
    return rc;
}
