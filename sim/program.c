#include "program.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const op_what_names[] = {
    "forward", "backward", "backward-input", "backward-weight", "recompute", "update",
    "activation", "gradient", "sync", NULL,
};
_Static_assert(COUNT(op_what_names) == WHAT_COUNT + 1, "a name for every op_what");

const char *const lane_kind_names[] = {"compute", "send-next", "send-previous", "collective", NULL};
_Static_assert(COUNT(lane_kind_names) == LANE_KIND_COUNT + 1, "a name for every lane_kind");

uint32_t program_lane(struct program *program, int rank, enum lane_kind kind, int index)
{
    BUG_IF(rank < 0 || rank >= program->ranks);
    *GROW(&program->lanes) = (struct lane){.rank = rank, .kind = kind, .index = index};
    return (uint32_t)(program->lanes.count - 1);
}

uint32_t program_add(struct program *program, struct op op, const uint32_t *deps, size_t ndeps)
{
    uint32_t id = (uint32_t)program->ops.count;

    BUG_IF(op.lane >= program->lanes.count);
    BUG_IF(!(op.amount >= 0) || isinf(op.amount));
    BUG_IF(!(op.overhead > -1) || isinf(op.overhead) || isnan(op.delay));
    op.first_dep = (uint32_t)program->deps.count;
    op.ndeps = (uint32_t)ndeps;
    for (size_t i = 0; i < ndeps; i++) {
        BUG_IF(deps[i] >= id);
        *GROW(&program->deps) = deps[i];
    }
    *GROW(&program->ops) = op;
    return id;
}

void program_release(struct program *program)
{
    free(program->ops.items);
    free(program->deps.items);
    free(program->lanes.items);
    memset(program, 0, sizeof *program);
}

void timeline_init(struct timeline *timeline, const struct program *program)
{
    size_t count = program->ops.count ? program->ops.count : 1;

    timeline->program = program;
    timeline->start = xcalloc(count, sizeof *timeline->start);
    timeline->end = xcalloc(count, sizeof *timeline->end);
    timeline->makespan = 0;
}

void timeline_release(struct timeline *timeline)
{
    free(timeline->start);
    free(timeline->end);
    memset(timeline, 0, sizeof *timeline);
}
