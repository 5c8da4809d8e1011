/* V-shaped schedules of controlled memory. A pattern of forwards and input gradients is repeated every 6 slots; it
 * determines the number of micro-batches in flight. Weight gradients go into idle slots. Works at the beginning and at
 * the end of the pipeline move to earlier slots, as long as no rank holds more than the fullest rank did. As in
 * sail-sg's zero-bubble-pipeline-parallelism (zbv_greedy.py). */
#include "zb_v.h"

#include <stdlib.h>

#include "base/base.h"

enum { F_DOWN, F_UP, I_DOWN, I_UP, W, W_UP, TYPES, IDLE = TYPES };
enum { INTERVAL = 6 };

/* The slots of a rank's works, by type. W is for both legs, unless it is split into W (of I_DOWN) and W_UP. */
struct lane { struct slots { int *at, count; } slots[TYPES]; };

/* A work with its slot, for a walk through all ranks in the order of time. */
struct step { int at, rank, type, mb; };
struct steps { struct step *items; size_t count, capacity; };

static int by_time(const void *a, const void *b)
{
    const struct step *x = a, *y = b;
    int order[] = {x->at - y->at, x->rank - y->rank, x->type - y->type, x->mb - y->mb};

    for (size_t i = 0; i < COUNT(order); i++)
        if (order[i])
            return order[i];
    return 0;
}

static struct steps in_order(const struct lane *lanes, int first, int last)
{
    struct steps steps = {0};

    for (int rank = first; rank <= last; rank++)
        for (int type = 0; type < TYPES; type++)
            for (int mb = 0; mb < lanes[rank].slots[type].count; mb++)
                *GROW(&steps) = (struct step){lanes[rank].slots[type].at[mb], rank, type, mb};
    array_sort(steps.items, steps.count, sizeof *steps.items, by_time);
    return steps;
}

static bool is_backward(int type)
{
    return type == I_DOWN || type == I_UP;
}

/* Puts weight gradients into the idle slots of a rank; with `split` the weight gradients of I_DOWN first. */
static void put_weights(struct lane *lanes, int rank, bool split)
{
    struct steps steps;
    int waiting[2] = {0}, next = 0;

    lanes[rank].slots[W].count = lanes[rank].slots[W_UP].count = 0;
    steps = in_order(lanes, rank, rank);
    for (size_t i = 0; i <= steps.count; next++) {
        bool done = i == steps.count;

        if (done && !waiting[0] && !waiting[1])
            break;
        if (!done && steps.items[i].at == next) {
            waiting[split && steps.items[i].type == I_UP] += is_backward(steps.items[i].type);
            i++;
        } else if (waiting[0] || waiting[1]) {
            struct slots *slots = &lanes[rank].slots[waiting[0] ? W : W_UP];

            slots->at[slots->count++] = next;
            waiting[waiting[0] ? 0 : 1]--;
        }
    }
    free(steps.items);
}

/* The memory of a rank, slot by slot. Weight gradients without slots count as done in idle ones. */
struct memory {
    int *type;               /* a slot: the type of its work */
    int *held, *late;        /* after a slot: activations held, weight gradients that wait */
    int length, most;
    bool weights;            /* weight gradients have slots */
};

static void slot_memory(const struct memory *memory, int type, int *held, int *late)
{
    *held += type == F_DOWN || type == F_UP ? 1 : type == W ? -1 : 0;
    if (memory->weights)
        return;
    *late += is_backward(type);
    if (type == IDLE && *late > 0) {
        (*late)--;
        (*held)--;
    }
}

static void memory_init(struct memory *memory, const struct lane *lane, bool weights)
{
    int held = 0, late = 0;

    *memory = (struct memory){.weights = weights};
    for (int type = 0; type < TYPES; type++)
        for (int i = 0; i < lane->slots[type].count; i++)
            if (lane->slots[type].at[i] >= memory->length)
                memory->length = lane->slots[type].at[i] + 1;
    memory->type = xcalloc((size_t)memory->length, sizeof(int));
    memory->held = xcalloc((size_t)memory->length, sizeof(int));
    memory->late = xcalloc((size_t)memory->length, sizeof(int));
    for (int slot = 0; slot < memory->length; slot++)
        memory->type[slot] = IDLE;
    for (int type = 0; type < TYPES; type++)
        for (int i = 0; i < lane->slots[type].count; i++)
            memory->type[lane->slots[type].at[i]] = type;
    for (int slot = 0; slot < memory->length; slot++) {
        slot_memory(memory, memory->type[slot], &held, &late);
        memory->held[slot] = held;
        memory->late[slot] = late;
        memory->most = held > memory->most ? held : memory->most;
    }
}

static void memory_release(struct memory *memory)
{
    free(memory->type);
    free(memory->held);
    free(memory->late);
}

/* Whether the work in slot `from` may move to the earlier idle slot `to`, if at most `most` activations may be held.
 * With `really`, moves it. */
static bool move(struct memory *memory, int from, int to, int most, bool really)
{
    int held = to ? memory->held[to - 1] : 0, late = to ? memory->late[to - 1] : 0, type = memory->type[from];

    if (really) {
        memory->type[to] = type;
        memory->type[from] = IDLE;
    }
    for (int slot = to; slot < memory->length; slot++) {
        slot_memory(memory, slot == to ? type : slot == from ? IDLE : memory->type[slot], &held, &late);
        if (held > most)
            return false;
        if (slot >= from && held == memory->held[slot] && late == memory->late[slot])
            break;
        if (really) {
            memory->held[slot] = held;
            memory->late[slot] = late;
        }
    }
    return true;
}

struct reorder {
    struct lane *lanes;
    int ranks, micro_batches, most;
    bool weights;
    struct memory *memory;   /* a rank */
    struct slots *backwards; /* a rank: slots of its I so far, in the order of time */
};

static int later(int a, int b)
{
    return a > b ? a : b;
}

/* The earliest slot after all works that a work waits for; the n-th W waits for the n-th I. */
static int earliest(const struct reorder *reorder, struct step step)
{
    const struct lane *lane = &reorder->lanes[step.rank];
    int from = step.type == W ? -1 : leg_from(reorder->ranks, step.rank, step.type % LEGS), after = -1;

    if (from >= 0)
        after = reorder->lanes[from].slots[step.type].at[step.mb];
    if (step.type != F_DOWN && step.type != W)
        after = later(after, lane->slots[step.type - 1].at[step.mb]);
    if (step.type == W)
        after = later(after, reorder->backwards[step.rank].at[step.mb]);
    if (step.mb > 0)
        after = later(after, lane->slots[step.type].at[step.mb - 1]);
    return after + 1;
}

static void remember_backward(struct slots *slots, int at)
{
    int i = slots->count++;

    for (; i > 0 && slots->at[i - 1] > at; i--)
        slots->at[i] = slots->at[i - 1];
    slots->at[i] = at;
}

static void walk(struct reorder *reorder)
{
    enum { BEGINNING, MIDDLE, END } phase = BEGINNING;
    struct steps steps = in_order(reorder->lanes, 0, reorder->ranks - 1);

    for (size_t i = 0; i < steps.count; i++) {
        struct step step = steps.items[i];
        struct memory *memory = &reorder->memory[step.rank];
        int *at = &reorder->lanes[step.rank].slots[step.type].at[step.mb], to = *at;

        if (step.type == I_UP && step.rank == 0 && phase == BEGINNING)
            phase = MIDDLE;      /* nothing moves between the first micro-batch's end and the last one's beginning */
        if (phase == END || (phase == BEGINNING && reorder->weights))
            for (to = earliest(reorder, step); to < *at; to++)
                if (memory->type[to] == IDLE && move(memory, *at, to, reorder->most, false))
                    break;
        if (to < *at)
            move(memory, *at, to, reorder->most, true);
        *at = to;
        if (is_backward(step.type))
            remember_backward(&reorder->backwards[step.rank], to);
        if (phase == MIDDLE && step.type == F_DOWN && step.mb == reorder->micro_batches - 1)
            phase = END;
    }
    free(steps.items);
}

/* Moves every work to the earliest slot that the order on its rank allows. */
static void squeeze(struct lane *lanes, int ranks)
{
    struct steps steps = in_order(lanes, 0, ranks - 1);
    int *next = xcalloc((size_t)ranks, sizeof *next);

    for (size_t i = 0; i < steps.count; i++) {
        struct step step = steps.items[i];
        int from = step.type >= W ? -1 : leg_from(ranks, step.rank, step.type % LEGS), at = next[step.rank];

        if (from >= 0)
            at = later(at, lanes[from].slots[step.type].at[step.mb] + 1);
        lanes[step.rank].slots[step.type].at[step.mb] = at;
        next[step.rank] = at + 1;
    }
    free(next);
    free(steps.items);
}

/* Moves the works at the beginning and at the end of the pipeline; `weights`: weight gradients have slots meanwhile. */
static void move_earlier(struct lane *lanes, const struct plan *plan, bool weights)
{
    size_t ranks = (size_t)plan->stages, works = 2 * (size_t)plan->micro_batches;
    struct reorder reorder = {
        .lanes = lanes, .ranks = plan->stages, .micro_batches = plan->micro_batches, .weights = weights,
    };

    reorder.memory = xcalloc(ranks, sizeof *reorder.memory);
    reorder.backwards = xcalloc(ranks, sizeof *reorder.backwards);
    for (int rank = 0; rank < plan->stages; rank++) {
        if (weights)
            put_weights(lanes, rank, false);
        else
            lanes[rank].slots[W].count = 0;
        memory_init(&reorder.memory[rank], &lanes[rank], weights);
        reorder.backwards[rank].at = xcalloc(works, sizeof(int));
        reorder.most = later(reorder.most, reorder.memory[rank].most);
    }
    walk(&reorder);
    for (int rank = 0; rank < plan->stages; rank++) {
        if (!weights)
            put_weights(lanes, rank, false);
        memory_release(&reorder.memory[rank]);
        free(reorder.backwards[rank].at);
    }
    free(reorder.memory);
    free(reorder.backwards);
    squeeze(lanes, plan->stages);
}

static void lanes_init(struct lane *lanes, const struct plan *plan, struct pattern (*pattern)(int ranks, int rank))
{
    for (int rank = 0; rank < plan->stages; rank++) {
        struct pattern first = pattern(plan->stages, rank);
        int offsets[] = {first.forwards[DOWN], first.forwards[UP], first.backwards[DOWN], first.backwards[UP]};

        for (int type = 0; type < TYPES; type++)
            lanes[rank].slots[type].at = xcalloc(2 * (size_t)plan->micro_batches, sizeof(int));
        for (int type = 0; type < W; type++)
            for (int mb = 0; mb < plan->micro_batches; mb++)
                lanes[rank].slots[type].at[lanes[rank].slots[type].count++] = offsets[type] + INTERVAL * mb;
    }
}

static void emit(struct row *row, const struct plan *plan, const struct steps *steps)
{
    static const enum work_kind kinds[TYPES] = {FORWARD, FORWARD, BACKWARD_INPUT, BACKWARD_INPUT, BACKWARD_WEIGHT,
                                                BACKWARD_WEIGHT};

    for (size_t i = 0; i < steps->count; i++) {
        enum work_kind kind = kinds[steps->items[i].type];

        zb_v_append(row, plan, kind, leg_chunk(kind, steps->items[i].type % LEGS), steps->items[i].mb);
    }
}

void v_pattern_rows(struct row *rows, const struct plan *plan, struct pattern (*pattern)(int ranks, int rank))
{
    struct lane *lanes = xcalloc((size_t)plan->stages, sizeof *lanes);

    lanes_init(lanes, plan, pattern);
    move_earlier(lanes, plan, true);
    move_earlier(lanes, plan, false);
    for (int rank = 0; rank < plan->stages; rank++) {
        struct steps steps;

        lanes[rank].slots[W].count = 0;
        put_weights(lanes, rank, true);
        steps = in_order(lanes, rank, rank);
        emit(&rows[rank], plan, &steps);
        free(steps.items);
        for (int type = 0; type < TYPES; type++)
            free(lanes[rank].slots[type].at);
    }
    free(lanes);
}
