/* One cell of a row: its operation or operations, what they wait for, and what may wait for them. */
#include "lower_internal.h"

size_t lowering_cell(const struct lowering *lowering, int direction, int stage, int mb)
{
    const struct plan *plan = lowering->plan;

    return ((size_t)direction * (size_t)plan_global_stages(plan) + (size_t)stage) * (size_t)plan->micro_batches + (size_t)mb;
}

struct place lowering_place(const struct lowering *lowering, int rank, struct work work)
{
    int stage = plan_global_stage(lowering->plan, rank, work.chunk);
    int direction = plan_direction(lowering->plan, work.chunk);

    return (struct place){rank, stage, direction, lowering_cell(lowering, direction, stage, work.mb)};
}

/* The boundary to another stage: nothing when they share a rank, else a transfer for each flow of the tensor group. */
static struct arrival send(struct lowering *lowering, int replica, struct place from, int to, int mb, uint32_t after)
{
    const struct scenario *scenario = lowering->scenario;
    int dst = plan_rank(lowering->plan, from.direction, to, NULL), flows = lowering->program->flows;
    int sender = program_rank(lowering, replica, from.rank);
    bool next = to > from.stage;
    const uint32_t *lanes = (next ? lowering->next_lane : lowering->previous_lane) + (size_t)sender * (size_t)flows;
    struct arrival arrival = {.first = after, .count = 1};

    for (int t = 0; from.rank != dst && t < flows; t++) {
        uint32_t id = program_add(lowering->program, (struct op){
            .kind = OP_TRANSFER, .what = next ? WHAT_ACTIVATION : WHAT_GRADIENT, .lane = lanes[t],
            .amount = lowering->stages[next ? from.stage : to].boundary, .mb = mb, .stage = from.stage,
            .src = (uint32_t)scenario_gpu(scenario, t, replica, from.rank),
            .dst = (uint32_t)scenario_gpu(scenario, t, replica, dst),
        }, &after, 1);

        if (t == 0)
            arrival = (struct arrival){.first = id, .count = (uint32_t)flows};
    }
    return arrival;
}

/* The operation of one cell, or of one piece of it. */
static uint32_t compute(struct lowering *lowering, int replica, int rank, struct work work, struct stage_work cost,
                        struct op op, const uint32_t *deps, size_t ndeps)
{
    static const enum op_what whats[] = {
        [FORWARD] = WHAT_FORWARD, [BACKWARD] = WHAT_BACKWARD, [BACKWARD_INPUT] = WHAT_BACKWARD_INPUT,
        [BACKWARD_WEIGHT] = WHAT_BACKWARD_WEIGHT, [RECOMPUTE] = WHAT_RECOMPUTE,
    };
    int prank = program_rank(lowering, replica, rank);
    const struct tensor_cost *tensor = &lowering->tensor[prank * lowering->plan->chunks + work.chunk];

    op.kind = OP_COMPUTE;
    op.what = (uint8_t)whats[work.kind];
    op.lane = lowering->compute_lane[prank];
    op.communication = cost.all_reduces * tensor->seconds;
    op.sent = cost.all_reduces * tensor->bytes_sent;
    op.amount = cost.seconds + op.communication;
    op.mb = work.mb;
    op.stage = plan_global_stage(lowering->plan, rank, work.chunk);
    return program_add(lowering->program, op, deps, ndeps);
}

/* A chunk's last backward is cut where gradient buckets become ready, so that their all-reduce overlaps with the rest. */
static uint32_t sliced_backward(struct lowering *lowering, int replica, int rank, struct work work, double frees,
                                const uint32_t *deps, size_t ndeps)
{
    int stage = plan_global_stage(lowering->plan, rank, work.chunk);
    const struct stage *costs = &lowering->stages[stage];
    const struct buckets *buckets = &lowering->buckets[stage];
    uint32_t *ready = lowering->ready[program_rank(lowering, replica, rank) * lowering->plan->chunks + work.chunk];
    struct stage_work piece = {0};
    uint32_t id = NO_OP;
    size_t bucket = 0;

    for (size_t i = 0; i < costs->nslices; i++) {
        struct stage_work slice = work.kind == BACKWARD ? costs->slices[i].backward : costs->slices[i].backward_weight;
        bool last = i + 1 == costs->nslices;

        piece.seconds += slice.seconds;
        piece.all_reduces += slice.all_reduces;
        if (!last && (bucket == buckets->count || buckets->items[bucket].slice > i))
            continue;
        id = compute(lowering, replica, rank, work, piece, (struct op){.continues = id != NO_OP, .frees = last ? frees : 0},
                     deps, id == NO_OP ? ndeps : 0);
        for (; bucket < buckets->count && buckets->items[bucket].slice <= i; bucket++)
            ready[bucket] = id;
        piece = (struct stage_work){0};
    }
    return id;
}

/* A backward before which the previous stage recomputes just in time: cut where that has to begin to end together. */
static uint32_t timed_backward(struct lowering *lowering, int replica, struct place here, struct work work, double frees,
                               const uint32_t *deps, size_t ndeps)
{
    struct stage_work before = lowering->stages[here.stage].work[work.kind], after = {0};
    double again = lowering->stages[here.stage - 1].work[RECOMPUTE].seconds;

    after.seconds = again < before.seconds ? again : before.seconds;
    before.seconds -= after.seconds;
    lowering->due[lowering_cell(lowering, here.direction, here.stage - 1, work.mb)] =
        compute(lowering, replica, here.rank, work, before, (struct op){0}, deps, ndeps);
    return compute(lowering, replica, here.rank, work, after, (struct op){.continues = true, .frees = frees}, NULL, 0);
}

struct waits { uint32_t *ids; size_t count; };

static void wait_for(struct waits *waits, struct arrival arrival)
{
    for (uint32_t i = 0; i < arrival.count; i++)
        waits->ids[waits->count++] = arrival.first + i;
}

/* Adds what a cell waits for beside its lane; false when some of it has not been lowered yet. */
static bool dependencies(const struct lowering *lowering, struct place here, struct work work, struct waits *waits)
{
    enum recompute_rule rule = scenario_strategy(lowering->scenario)->recompute;
    bool first = here.stage == 0, last = here.stage == plan_global_stages(lowering->plan) - 1;
    struct arrival arrival = {.first = NO_OP};
    bool wanted = false;
    uint32_t own = NO_OP;

    if (work.kind == FORWARD) {
        arrival = lowering->activation[here.at];
        wanted = !first;
    } else if (work.kind == BACKWARD_WEIGHT) {
        own = lowering->backwarded[here.at];
    } else if (work.kind == RECOMPUTE) {
        own = lowering->forwarded[here.at];
        wanted = rule != RECOMPUTE_EARLY && !last;
        if (rule == RECOMPUTE_WITH_GRADIENT)
            arrival = lowering->gradient[here.at];
        else if (rule == RECOMPUTE_JUST_IN_TIME)
            arrival = (struct arrival){.first = lowering->due[here.at], .count = 1};
    } else {
        own = lowering->recomputes[here.at] ? lowering->recomputed[here.at] : lowering->forwarded[here.at];
        arrival = lowering->gradient[here.at];
        wanted = !last;
    }
    if ((work.kind != FORWARD && own == NO_OP) || (wanted && arrival.first == NO_OP))
        return false;
    if (own != NO_OP)
        wait_for(waits, (struct arrival){own, 1});
    if (arrival.first != NO_OP)
        wait_for(waits, arrival);
    return true;
}

static uint32_t lower_work(struct lowering *lowering, int replica, struct place here, struct work work, bool last,
                           const struct waits *waits)
{
    const struct stage *costs = &lowering->stages[here.stage];
    bool again = lowering->recomputes[here.at];
    double kept = again ? costs->checkpoint : costs->activation, frees = 0, takes = 0;

    if (work.kind == FORWARD)
        takes = kept;
    else if (work.kind == RECOMPUTE)
        takes = costs->working;
    else if (work.kind != BACKWARD_INPUT)
        frees = kept + (again ? costs->working : 0);
    bool in_time = work.kind == BACKWARD && here.stage > 0 &&
                   scenario_strategy(lowering->scenario)->recompute == RECOMPUTE_JUST_IN_TIME;
    /* cut for its buckets, a last backward is not cut for the recomputation, which may begin with it */
    if (last && in_time && lowering->buckets[here.stage].count)
        lowering->due[lowering_cell(lowering, here.direction, here.stage - 1, work.mb)] = waits->ids[0];
    if (last && lowering->buckets[here.stage].count)
        return sliced_backward(lowering, replica, here.rank, work, frees, waits->ids, waits->count);
    if (in_time)
        return timed_backward(lowering, replica, here, work, frees, waits->ids, waits->count);
    return compute(lowering, replica, here.rank, work, costs->work[work.kind],
                   (struct op){.takes = takes, .frees = frees}, waits->ids, waits->count);
}

/* What others may now wait for: `id` is the operation after which the cell's result is there. */
static void finish(struct lowering *lowering, int replica, struct place here, struct work work, uint32_t id)
{
    if (work.kind == RECOMPUTE) {
        lowering->recomputed[here.at] = id;
    } else if (work.kind == FORWARD) {
        lowering->forwarded[here.at] = id;
        if (here.stage + 1 < plan_global_stages(lowering->plan))
            lowering->activation[lowering_cell(lowering, here.direction, here.stage + 1, work.mb)] =
                send(lowering, replica, here, here.stage + 1, work.mb, id);
    } else if (work.kind != BACKWARD_WEIGHT) {
        lowering->backwarded[here.at] = id;
        if (here.stage == 0)
            return;
        size_t before = lowering_cell(lowering, here.direction, here.stage - 1, work.mb);
        lowering->gradient[before] = send(lowering, replica, here, here.stage - 1, work.mb, id);
        if (lowering->due[before] == NO_OP)
            lowering->due[before] = id;
    }
}

/* What is overlapped begins when all of it can, and hands over its results when all of it has ended. */
bool lower_cell(struct lowering *lowering, int replica, int rank, uint32_t *scratch)
{
    const struct row *row = &lowering->rows[rank];
    size_t first = lowering->cursor[rank], last = first;
    struct waits waits = {.ids = scratch};
    uint32_t id = NO_OP;

    while (row->items[last].with_next)
        last++;
    for (size_t i = first; i <= last; i++)
        if (!dependencies(lowering, lowering_place(lowering, rank, row->items[i]), row->items[i], &waits))
            return false;
    for (size_t i = first; i <= last; i++) {
        struct work work = row->items[i];
        size_t final = lowering->last_backward[rank * lowering->plan->chunks + work.chunk];

        id = lower_work(lowering, replica, lowering_place(lowering, rank, work), work,
                        i == final && (work.kind == BACKWARD || work.kind == BACKWARD_WEIGHT), &waits);
        waits.count = 0;
    }
    for (size_t i = first; i <= last; i++)
        finish(lowering, replica, lowering_place(lowering, rank, row->items[i]), row->items[i], id);
    lowering->cursor[rank] = last + 1;
    return true;
}
