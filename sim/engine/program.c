#include "engine/program.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const op_what_names[] = {
    [WHAT_FORWARD] = "forward", [WHAT_BACKWARD] = "backward", [WHAT_BACKWARD_INPUT] = "backward-input",
    [WHAT_BACKWARD_WEIGHT] = "backward-weight", [WHAT_RECOMPUTE] = "recompute", [WHAT_PACK] = "pack",
    [WHAT_UPDATE] = "update", [WHAT_ACTIVATION] = "activation", [WHAT_GRADIENT] = "gradient", [WHAT_SYNC] = "sync",
    [WHAT_WEIGHTS] = "weights", [WHAT_OFFLOAD] = "offload", [WHAT_PREFETCH] = "prefetch",
    [WHAT_HOST_UPDATE] = "host-update", NULL,
};
_Static_assert(COUNT(op_what_names) == WHAT_COUNT + 1, "a name for every op_what");

const char *const payload_names[] = {
    [PAYLOAD_ACTIVATIONS] = "activations", [PAYLOAD_WEIGHTS] = "weights",
    [PAYLOAD_ACTIVATION_GRADIENTS] = "activation_gradients", [PAYLOAD_WEIGHT_GRADIENTS] = "weight_gradients", NULL,
};
_Static_assert(COUNT(payload_names) == PAYLOAD_COUNT + 1, "a name for every payload");

enum payload op_payload(enum op_what what)
{
    static const enum payload payloads[WHAT_COUNT] = {
        [WHAT_FORWARD] = PAYLOAD_ACTIVATIONS,
        [WHAT_RECOMPUTE] = PAYLOAD_ACTIVATIONS,
        [WHAT_ACTIVATION] = PAYLOAD_ACTIVATIONS,
        [WHAT_BACKWARD] = PAYLOAD_ACTIVATION_GRADIENTS,
        [WHAT_BACKWARD_INPUT] = PAYLOAD_ACTIVATION_GRADIENTS,
        [WHAT_BACKWARD_WEIGHT] = PAYLOAD_ACTIVATION_GRADIENTS,
        [WHAT_GRADIENT] = PAYLOAD_ACTIVATION_GRADIENTS,
        [WHAT_PACK] = PAYLOAD_WEIGHT_GRADIENTS,
        [WHAT_UPDATE] = PAYLOAD_WEIGHTS,
        [WHAT_WEIGHTS] = PAYLOAD_WEIGHTS,
        [WHAT_SYNC] = PAYLOAD_WEIGHT_GRADIENTS,
    };

    return payloads[what];
}

const char *const lane_kind_names[] = {
    [LANE_COMPUTE] = "compute", [LANE_SEND_NEXT] = "send-next", [LANE_SEND_PREVIOUS] = "send-previous",
    [LANE_COLLECTIVE] = "collective", [LANE_TO_HOST] = "to-host", [LANE_FROM_HOST] = "from-host", [LANE_HOST] = "host",
    [LANE_COPY] = "copy", NULL,
};
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
    BUG_IF(op.kind == OP_TRANSFER &&
           (!(op.transfer.overhead > -1) || isinf(op.transfer.overhead) || isnan(op.transfer.delay)));
    op.first_dep = (uint32_t)program->deps.count;
    op.ndeps = (uint32_t)ndeps;
    for (size_t i = 0; i < ndeps; i++) {
        BUG_IF(deps[i] >= id);
        *GROW(&program->deps) = deps[i];
    }
    *GROW(&program->ops) = op;
    return id;
}

void program_choose(struct program *program, struct choice choice)
{
    BUG_IF(choice.op + 1 != program->ops.count || choice.first + choice.count > choice.op);
    *GROW(&program->choices) = choice;
}

static int by_operation(const void *a, const void *b)
{
    const struct choice *x = a, *y = b;

    return x->op < y->op ? -1 : x->op > y->op;
}

const struct choice *program_choice(const struct program *program, uint32_t id)
{
    const struct choices *choices = &program->choices;

    return choices->count ? bsearch(&(struct choice){.op = id}, choices->items, choices->count, sizeof *choices->items,
                                    by_operation) : NULL;
}

void program_release(struct program *program)
{
    free(program->choices.items);
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

static int by_start(const void *a, const void *b, void *context)
{
    const struct timeline *timeline = context;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    if (timeline->start[x] != timeline->start[y])
        return timeline->start[x] < timeline->start[y] ? -1 : 1;
    if (timeline->end[x] != timeline->end[y])
        return timeline->end[x] < timeline->end[y] ? -1 : 1;
    return x < y ? -1 : x > y;
}

uint32_t *timeline_order(const struct timeline *timeline)
{
    size_t count = timeline->program->ops.count;
    uint32_t *order = xcalloc(count + 1, sizeof *order);

    for (uint32_t i = 0; i < count; i++)
        order[i] = i;
    if (timeline->program->choices.count)
        qsort_r(order, count, sizeof *order, by_start, (void *)timeline);
    return order;
}

double timeline_difference(const struct timeline *timeline, const struct timeline *other)
{
    double most = 0;

    for (size_t i = 0; i < timeline->program->ops.count; i++)
        most = fmax(most, fmax(fabs(timeline->start[i] - other->start[i]), fabs(timeline->end[i] - other->end[i])));
    return timeline->makespan > 0 ? most / timeline->makespan : most;
}

void timeline_release(struct timeline *timeline)
{
    free(timeline->start);
    free(timeline->end);
    memset(timeline, 0, sizeof *timeline);
}
