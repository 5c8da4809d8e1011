#include "engine/program.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL           /* short keys: the call would cost as much as the hash */
#include <xxhash.h>

#include "base/base.h"

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

/* The bytes of traits that an operation of the kind has: up to its last member. */
static size_t traits_size(enum op_kind kind)
{
    return kind == OP_COMPUTE ? offsetof(struct traits, compute) + sizeof(struct op_compute)
                              : offsetof(struct traits, transfer.buffered) + sizeof(bool);
}

static void grow_slots(struct traits_slots *slots)
{
    struct traits_slots grown = {.count = slots->count ? 4 * slots->count : 64};

    grown.items = xcalloc(grown.count, sizeof *grown.items);
    for (size_t i = 0; i < slots->count; i++) {
        struct traits_slot slot = slots->items[i];
        size_t at = slot.hash & (grown.count - 1);

        while (slot.index && grown.items[at].index)
            at = (at + 1) & (grown.count - 1);
        grown.items[at] = slot.index ? slot : grown.items[at];
    }
    free(slots->items);
    *slots = grown;
}

/* The index of the traits of an operation of this kind, which begin at `bytes`: new ones, or an earlier one's. */
static uint32_t find_traits(struct program *program, enum op_kind kind, const double *bytes)
{
    struct traits_slots *slots = &program->slots;
    size_t size = traits_size(kind), at;
    uint32_t hash = (uint32_t)XXH3_64bits(bytes, size);

    if (2 * program->traits.count >= slots->count)
        grow_slots(slots);
    for (at = hash & (slots->count - 1); slots->items[at].index; at = (at + 1) & (slots->count - 1))
        if (slots->items[at].hash == hash &&
            !memcmp(&program->traits.items[slots->items[at].index - 1], bytes, size))
            return slots->items[at].index - 1;
    memcpy(memset(GROW(&program->traits), 0, sizeof(struct traits)), bytes, size);
    slots->items[at] = (struct traits_slot){.index = (uint32_t)program->traits.count, .hash = hash};
    return slots->items[at].index - 1;
}

/* The same for a new operation, which usually has the traits of its predecessor of the same lane and purpose. */
static uint32_t traits_of(struct program *program, const struct new_op *op)
{
    uint32_t *recent = &program->slots.recent[(op->lane * WHAT_COUNT + op->what) % COUNT(program->slots.recent)];

    if (!*recent || memcmp(&program->traits.items[*recent - 1], &op->takes, traits_size(op->kind)))
        *recent = find_traits(program, op->kind, &op->takes) + 1;
    return *recent - 1;
}

static void add_deps(struct program *program, const uint32_t *deps, size_t ndeps)
{
    for (size_t i = 0; i < ndeps; i++) {
        BUG_IF(deps[i] >= program->ops.count - 1);
        *GROW(&program->deps) = deps[i];
    }
}

uint32_t program_append(struct program *program, const struct new_op *op, const uint32_t *deps, size_t ndeps)
{
    bool finite = isfinite(op->amount);

    BUG_IF(op->lane >= program->lanes.count);
    BUG_IF(op->amount < 0);
    program->endless |= !finite;
    BUG_IF(op->kind == OP_TRANSFER &&
           (!(op->transfer.overhead > -1) || isinf(op->transfer.overhead) || isnan(op->transfer.delay) ||
            !(op->transfer.stands >= -1) || !(op->transfer.protocol >= 0) || !(op->transfer.most >= 0)));
    *GROW(&program->ops) = (struct op){
        .amount = finite ? op->amount : 0, .lane = op->lane, .mb = op->mb, .stage = op->stage, .kind = op->kind,
        .what = op->what, .continues = op->continues, .advances = op->advances, .exchange = op->exchange,
        .first_dep = (uint32_t)program->deps.count, .traits = traits_of(program, op),
    };
    program->stages = op->stage < program->stages ? program->stages : op->stage + 1;
    add_deps(program, deps, ndeps);
    return (uint32_t)(program->ops.count - 1);
}

uint32_t program_repeat(struct program *program, uint32_t like, int32_t mb, const uint32_t *deps, size_t ndeps)
{
    struct op *op = GROW(&program->ops);

    *op = program->ops.items[like];
    op->mb = mb;
    op->first_dep = (uint32_t)program->deps.count;
    add_deps(program, deps, ndeps);
    return (uint32_t)(program->ops.count - 1);
}

uint32_t program_resize(struct program *program, uint32_t like, double amount, const uint32_t *deps, size_t ndeps)
{
    BUG_IF(!(amount >= 0) || isinf(amount));
    program_repeat(program, like, program->ops.items[like].mb, deps, ndeps);
    program->ops.items[program->ops.count - 1].amount = amount;
    return (uint32_t)(program->ops.count - 1);
}

void program_scale(struct program *program, uint32_t id, double factor)
{
    struct op *op = &program->ops.items[id];
    struct traits traits = *op_traits(program, op);

    BUG_IF(op->kind != OP_COMPUTE);
    traits.compute.communication *= factor;
    for (int with = 0; with < PEERS_COUNT; with++)
        traits.compute.with[with] *= factor;
    op->amount *= factor;
    op->traits = find_traits(program, OP_COMPUTE, &traits.takes);
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

    return array_find(&(struct choice){.op = id}, choices->items, choices->count, sizeof *choices->items,
                      by_operation);
}

static void *copy_of(const void *items, size_t count, size_t size)
{
    void *copy = xcalloc(count, size);

    if (count)
        memcpy(copy, items, count * size);
    return copy;
}

struct program program_copy(const struct program *program)
{
    struct program copy = *program;

    copy.ops.items = copy_of(copy.ops.items, copy.ops.count, sizeof *copy.ops.items);
    copy.deps.items = copy_of(copy.deps.items, copy.deps.count, sizeof *copy.deps.items);
    copy.traits.items = copy_of(copy.traits.items, copy.traits.count, sizeof *copy.traits.items);
    copy.slots.items = copy_of(copy.slots.items, copy.slots.count, sizeof *copy.slots.items);
    copy.lanes.items = copy_of(copy.lanes.items, copy.lanes.count, sizeof *copy.lanes.items);
    copy.choices.items = copy_of(copy.choices.items, copy.choices.count, sizeof *copy.choices.items);
    copy.ops.capacity = copy.ops.count;
    copy.deps.capacity = copy.deps.count;
    copy.traits.capacity = copy.traits.count;
    copy.lanes.capacity = copy.lanes.count;
    copy.choices.capacity = copy.choices.count;
    return copy;
}

void program_release(struct program *program)
{
    free(program->traits.items);
    free(program->slots.items);
    free(program->choices.items);
    free(program->ops.items);
    free(program->deps.items);
    free(program->lanes.items);
    memset(program, 0, sizeof *program);
}

void timeline_init(struct timeline *timeline, const struct program *program)
{
    size_t count = program->ops.count ? program->ops.count : 1;

    *timeline = (struct timeline){.program = program};
    timeline->start = xrealloc(NULL, count, sizeof *timeline->start);
    timeline->end = xrealloc(NULL, count, sizeof *timeline->end);
}

void timeline_watch(struct timeline *timeline)
{
    timeline->moved = xcalloc(timeline->program->ops.count + 1, sizeof *timeline->moved);
}

/* By splitmix64 (Steele, Lea and Flood 2014); from -sqrt(3) to sqrt(3). */
double timeline_longer(uint32_t id)
{
    uint64_t state = (id + 1) * UINT64_C(0x9E3779B97F4A7C15);

    state = (state ^ (state >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    state = (state ^ (state >> 27)) * UINT64_C(0x94D049BB133111EB);
    return 0x1.bb67ae8584caap-63 * (double)(int64_t)(state ^ (state >> 31));
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
    uint32_t *order;

    if (!timeline->program->choices.count)
        return NULL;
    order = xcalloc(count, sizeof *order);
    for (uint32_t i = 0; i < count; i++)
        order[i] = i;
    array_sort_by(order, count, sizeof *order, by_start, (void *)timeline);
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
    free(timeline->repeats);
    free(timeline->moved);
    memset(timeline, 0, sizeof *timeline);
}
