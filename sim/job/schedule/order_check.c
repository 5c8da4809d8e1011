/* Checks that an order has all work of a schedule exactly once. */
#include "schedule/order_internal.h"

#include <stdlib.h>

#include "base/base.h"

static int by_work(const void *a, const void *b)
{
    const struct order_cell *x = *(struct order_cell *const *)a, *y = *(struct order_cell *const *)b;
    const int differences[] = {x->direction - y->direction, x->stage - y->stage, x->mb - y->mb, x->rank - y->rank};

    for (size_t i = 0; i < COUNT(differences); i++)
        if (differences[i])
            return differences[i];
    return x->at < y->at ? -1 : x->at > y->at;
}

/* Refuses a stage without work, or with work on several ranks. Sets the order's number of stages. */
static int check_stages(struct order *order, struct order_cell *const *sorted, struct error *err)
{
    const struct order_cell *holder = NULL, *last = sorted[0];
    char text[CELL_SIZE];
    int rc = 0, stages[2] = {0, 0};
    bool reported = false;

    for (size_t i = 0; i < order->count; i++) {
        const struct order_cell *cell = sorted[i];
        int *next = &stages[cell->direction];

        last = cell->stage > last->stage ? cell : last;
        if (cell->stage > *next)
            return error_add(err, EXIT_INPUT, cell_loc(order, cell),
                             "%s: stages count from 0, but stage %d is missing", cell_text(order, cell, text), *next);
        if (cell->stage == *next) {
            holder = cell;
            reported = false;
            ++*next;
        }
        BUG_IF(!holder);
        if (cell->rank == holder->rank || reported)
            continue;
        rc = error_add(err, EXIT_INPUT, cell_loc(order, cell), "%s: stage %d is on rank %d (line %d, column %d); "
                       "expected all its work there", cell_text(order, cell, text), cell->stage, holder->rank,
                       holder->line, holder->column);
        reported = true;
    }
    order->stages = last->stage + 1;
    if (order->directed && stages[0] != stages[1])
        return error_add(err, EXIT_INPUT, cell_loc(order, last), "%s: stage %d of direction %d is missing; expected "
                         "the same stages in both directions", cell_text(order, last, text),
                         stages[0] < stages[1] ? stages[0] : stages[1], stages[0] > stages[1]);
    return rc;
}

/* Refuses a micro-batch without work. Sets the order's number of micro-batches. */
static int check_micro_batches(struct order *order, struct error *err)
{
    bool *seen = xcalloc(order->count + 1, sizeof *seen);
    const struct order_cell *last = &order->cells[0];
    size_t next = 0;
    char text[CELL_SIZE];

    for (size_t i = 0; i < order->count; i++) {
        if (order->cells[i].mb > last->mb)
            last = &order->cells[i];
        if ((size_t)order->cells[i].mb < order->count)
            seen[order->cells[i].mb] = true;
    }
    while (seen[next])
        next++;
    free(seen);
    order->micro_batches = (last->mb + 1) * order->directions;
    if (next > (size_t)last->mb)
        return 0;
    return error_add(err, EXIT_INPUT, cell_loc(order, last), "%s: micro-batches count from 0, but micro-batch %zu is "
                     "missing", cell_text(order, last, text), next);
}

/* All cells of one stage and micro-batch. */
struct group {
    const struct order_cell *of[WORK_KIND_COUNT];
    const struct order_cell *first;
};

static int missing(const struct order *order, const struct order_cell *beside, const char *text, enum work_kind kind,
                   struct error *err)
{
    struct order_cell absent = *beside;
    char cell[2][CELL_SIZE];

    absent.kind = kind;
    return error_add(err, EXIT_INPUT, cell_loc(order, beside), "%s: %s is missing on rank %d%s",
                     cell_text(order, beside, cell[0]), cell_text(order, &absent, cell[1]), beside->rank, text);
}

static int twice(const struct order *order, const struct order_cell *cell, const struct order_cell *before,
                 struct error *err)
{
    char text[2][CELL_SIZE];

    return error_add(err, EXIT_INPUT, cell_loc(order, cell), "%s: %s was given before (line %d, column %d)%s",
                     cell_text(order, cell, text[0]), cell_text(order, before, text[1]), before->line, before->column,
                     cell->kind == before->kind ? "" : "; expected a backward whole (B) or in two halves (I and W)");
}

static int check_group(const struct order *order, const struct group *group, struct error *err)
{
    const struct order_cell *whole = group->of[BACKWARD], *input = group->of[BACKWARD_INPUT];
    const struct order_cell *weight = group->of[BACKWARD_WEIGHT], *half = input ? input : weight;

    if (!group->of[FORWARD])
        return missing(order, group->first, "", FORWARD, err);
    if (whole && half)
        return twice(order, whole->at > half->at ? whole : half, whole->at > half->at ? half : whole, err);
    if (!whole && !half)
        return missing(order, group->of[FORWARD], ", or its halves I and W", BACKWARD, err);
    if (half && !input)
        return missing(order, weight, "", BACKWARD_INPUT, err);
    if (half && !weight)
        return missing(order, input, "", BACKWARD_WEIGHT, err);
    return 0;
}

/* Reports that a stage has no cell of the micro-batch, at the place of another stage's cell. */
static int check_absent(const struct order *order, const struct order_cell *wanted, struct error *err)
{
    const struct order_cell *found = &order->cells[0];
    char text[2][CELL_SIZE];

    for (size_t i = 0; i < order->count; i++)
        if (order->cells[i].mb == wanted->mb) {
            found = &order->cells[i];
            break;
        }
    return error_add(err, EXIT_INPUT, cell_loc(order, found),
                     "%s: micro-batch %d has no work on stage %d: %s is missing", cell_text(order, found, text[0]),
                     wanted->mb, wanted->stage, cell_text(order, wanted, text[1]));
}

/* Checks the cells from `at` on that have the same stage and micro-batch as `wanted`. */
static int read_group(const struct order *order, struct order_cell *const *sorted, size_t *at,
                      const struct order_cell *wanted, struct error *err)
{
    struct group group = {{NULL}, NULL};
    int rc = 0;

    for (; *at < order->count; ++*at) {
        const struct order_cell *cell = sorted[*at];

        if (cell->direction != wanted->direction || cell->stage != wanted->stage || cell->mb != wanted->mb)
            break;
        group.first = group.first ? group.first : cell;
        if (group.of[cell->kind])
            rc = twice(order, cell, group.of[cell->kind], err);
        else
            group.of[cell->kind] = cell;
    }
    if (!group.first)
        return check_absent(order, wanted, err);
    return check_group(order, &group, err) || rc ? -1 : 0;
}

int order_complete(struct order *order, struct order_cell ***sorted, struct error *err)
{
    size_t at = 0;
    int rc;

    *sorted = xcalloc(order->count, sizeof **sorted);
    for (size_t i = 0; i < order->count; i++)
        (*sorted)[i] = &order->cells[i];
    array_sort(*sorted, order->count, sizeof **sorted, by_work);
    rc = check_stages(order, *sorted, err);
    if (check_micro_batches(order, err) || rc)
        return -1;
    for (int direction = 0; direction < order->directions; direction++)
        for (int stage = 0; stage < order->stages; stage++)
            for (int mb = 0; mb < order->micro_batches / order->directions; mb++) {
                struct order_cell wanted = {.kind = FORWARD, .direction = direction, .stage = stage, .mb = mb};

                if (read_group(order, *sorted, &at, &wanted, err))
                    rc = -1;
                if (err->count == ERROR_MAX)
                    return -1;
            }
    return rc;
}
