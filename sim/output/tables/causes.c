/* The column `after` of spans.tsv. */
#include "tables/tables_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/cells.h"
#include "base/decimal.h"
#include "engine/event.h"

void causes_init(struct causes *causes, const struct run *run)
{
    size_t count = run->lowered.program.ops.count;

    BUG_IF(count >= SPAN_PART);
    *causes = (struct causes){.run = run, .spans = xcalloc(count + 1, sizeof *causes->spans)};
}

static int rank_of(const struct causes *causes, uint32_t id)
{
    const struct program *program = &causes->run->lowered.program;

    return program->lanes.items[program->ops.items[id].lane].rank;
}

static int by_rank(const void *a, const void *b, void *context)
{
    const struct causes *causes = context;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    int left = rank_of(causes, x), right = rank_of(causes, y);

    if (left != right)
        return left < right ? -1 : 1;
    return x < y ? -1 : x > y;
}

static int by_op(const void *id, const void *join)
{
    uint32_t x = *(const uint32_t *)id, y = ((const struct join *)join)->op;

    return x < y ? -1 : x > y;
}

/* NULL: the operation joins nothing. */
static const struct join *find_join(const struct causes *causes, uint32_t id)
{
    return array_find(&id, causes->joins.items, causes->joins.count, sizeof *causes->joins.items, by_op);
}

/* Adds a join's operations on a rank to a list, and the operation that ended last of all; `last` may be NO_OP. */
static void add_joined(const struct causes *causes, const struct join *join, int rank, struct join_ids *list)
{
    const uint32_t *ids = causes->ids.items + join->first;
    size_t low = 0, high = join->count;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (rank_of(causes, ids[middle]) < rank)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < join->count && rank_of(causes, causes->ids.items[join->first + low]) == rank; low++) {
        uint32_t id = causes->ids.items[join->first + low];

        *GROW(list) = id;
    }
    if (join->last != NO_OP)
        *GROW(list) = join->last;
}

void causes_join(struct causes *causes, uint32_t id)
{
    const struct program *program = &causes->run->lowered.program;
    const double *end = causes->run->timeline.end;
    struct dep_list deps = program_deps(program, &program->ops.items[id]);
    struct join join = {.op = id, .last = NO_OP, .first = causes->ids.count};

    causes->spans[id] = NO_OP;
    for (size_t i = 0; i < deps.count; i++) {
        const struct join *inner = causes->spans[deps.items[i]] == NO_OP ? find_join(causes, deps.items[i]) : NULL;

        if (inner) {
            add_joined(causes, inner, rank_of(causes, deps.items[i]), &causes->ids);
            if (rank_of(causes, deps.items[i]) != rank_of(causes, id))
                add_joined(causes, inner, rank_of(causes, id), &causes->ids);
        } else {
            *GROW(&causes->ids) = deps.items[i];
        }
    }
    join.count = causes->ids.count - join.first;
    if (join.count > 1)
        array_sort_by(causes->ids.items + join.first, join.count, sizeof *causes->ids.items, by_rank, causes);
    for (size_t i = 0; i < join.count; i++) {
        uint32_t item = causes->ids.items[join.first + i];

        if (join.last == NO_OP || end[item] > end[join.last])
            join.last = item;
    }
    *GROW(&causes->joins) = join;
}

/* Sorts a few ids, which are nearly in order. */
static void sort_ids(uint32_t *ids, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        uint32_t id = ids[i];
        size_t k = i;

        for (; k && ids[k - 1] > id; k--)
            ids[k] = ids[k - 1];
        ids[k] = id;
    }
}

void causes_cell(struct causes *causes, struct cells *cells, uint32_t id)
{
    const struct program *program = &causes->run->lowered.program;
    const struct timeline *timeline = &causes->run->timeline;
    uint32_t lane = program->ops.items[id].lane;
    struct dep_list deps = program_deps(program, &program->ops.items[id]);
    struct join_ids *found = &causes->found;
    char text[2 * DECIMAL_SIZE + 2], *end;
    bool any = false;

    cells_text(cells, "");
    found->count = 0;
    for (size_t i = 0; i < deps.count; i++)
        if (causes->spans[deps.items[i]] == NO_OP)
            add_joined(causes, find_join(causes, deps.items[i]), rank_of(causes, id), found);
        else
            *GROW(found) = deps.items[i];
    sort_ids(found->items, found->count);
    for (size_t i = 0; i < found->count; i++) {
        uint32_t op = found->items[i], span = causes->spans[op] & ~SPAN_PART;

        if ((i && op == found->items[i - 1]) || program->ops.items[op].lane == lane)
            continue;
        text[0] = ',';
        end = decimal_integer(span, text + any);
        if (causes->spans[op] & SPAN_PART) {
            *end = '+';
            end = strchr(decimal_text(timeline->end[op] - timeline->start[span], end + 1), '\0');
        }
        cells_more(cells, text, (size_t)(end - text));
        any = true;
    }
}

void causes_release(struct causes *causes)
{
    free(causes->spans);
    free(causes->joins.items);
    free(causes->ids.items);
    free(causes->found.items);
}
