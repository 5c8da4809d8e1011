#include "lower_internal.h"

#include <stdlib.h>
#include <string.h>

struct row *rows_build(const struct scenario *scenario)
{
    const struct strategy *strategy = scenario_strategy(scenario);
    struct row *rows = xcalloc((size_t)scenario->plan.stages, sizeof *rows);

    for (int rank = 0; rank < scenario->plan.stages; rank++)
        strategy->row(&rows[rank], &scenario->plan, rank);
    return rows;
}

void rows_release(struct row *rows, int count)
{
    for (int rank = 0; rank < count; rank++)
        free(rows[rank].items);
    free(rows);
}

static size_t cell(const struct lowering *lowering, int stage, int mb)
{
    return (size_t)stage * (size_t)lowering->plan->micro_batches + (size_t)mb;
}

/* What a first look at the rows tells: which forwards are recomputed, and which backward is a stage's last. */
static void scan_rows(struct lowering *lowering)
{
    for (int rank = 0; rank < lowering->plan->stages; rank++) {
        for (size_t i = 0; i < lowering->rows[rank].count; i++) {
            struct work work = lowering->rows[rank].items[i];
            int stage = plan_global_stage(lowering->plan, rank, work.chunk);

            if (work.kind == RECOMPUTE)
                lowering->recomputes[cell(lowering, stage, work.mb)] = true;
            if (work.kind == BACKWARD || work.kind == BACKWARD_WEIGHT)
                lowering->last_backward[stage] = i;
        }
    }
}

/* The boundary between two stages: nothing when they share a rank, else a transfer for each flow of the tensor group. */
static struct arrival send(struct lowering *lowering, int replica, int from, int to, int mb, uint32_t after)
{
    const struct scenario *scenario = lowering->scenario;
    int src = plan_rank(lowering->plan, from), dst = plan_rank(lowering->plan, to), flows = lowering->program->flows;
    int sender = program_rank(lowering, replica, src);
    bool next = to > from;
    const uint32_t *lanes = (next ? lowering->next_lane : lowering->previous_lane) + (size_t)sender * (size_t)flows;
    struct arrival arrival = {.first = after, .count = 1};

    for (int t = 0; src != dst && t < flows; t++) {
        uint32_t id = program_add(lowering->program, (struct op){
            .kind = OP_TRANSFER, .what = next ? WHAT_ACTIVATION : WHAT_GRADIENT, .lane = lanes[t],
            .amount = lowering->stages[next ? from : to].boundary, .mb = mb, .stage = from,
            .src = (uint32_t)scenario_gpu(scenario, t, replica, src),
            .dst = (uint32_t)scenario_gpu(scenario, t, replica, dst),
        }, &after, 1);

        if (t == 0)
            arrival = (struct arrival){.first = id, .count = (uint32_t)flows};
    }
    return arrival;
}

/* The operation of one cell, or of one slice of it. */
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

/* A stage's last backward is cut where gradient buckets become ready, so that their all-reduce overlaps with the rest. */
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

/* What a cell waits for beside its lane; false when some of it has not been lowered yet. */
static bool dependencies(const struct lowering *lowering, int stage, struct work work, uint32_t *deps, size_t *ndeps)
{
    size_t at = cell(lowering, stage, work.mb);
    bool first = stage == 0, last = stage == plan_global_stages(lowering->plan) - 1;
    struct arrival arrival = {.first = NO_OP};
    uint32_t own = NO_OP;

    if (work.kind == FORWARD) {
        arrival = lowering->activation[at];
        if (!first && arrival.first == NO_OP)
            return false;
    } else if (work.kind == BACKWARD_WEIGHT) {
        own = lowering->backwarded[at];
    } else {
        own = work.kind != RECOMPUTE && lowering->recomputes[at] ? lowering->recomputed[at] : lowering->forwarded[at];
        if (work.kind != RECOMPUTE || scenario_strategy(lowering->scenario)->recompute == RECOMPUTE_WITH_GRADIENT) {
            arrival = lowering->gradient[at];
            if (!last && arrival.first == NO_OP)
                return false;
        }
    }
    if (work.kind != FORWARD && own == NO_OP)
        return false;
    *ndeps = 0;
    if (own != NO_OP)
        deps[(*ndeps)++] = own;
    for (uint32_t i = 0; arrival.first != NO_OP && i < arrival.count; i++)
        deps[(*ndeps)++] = arrival.first + i;
    return true;
}

/* Lowers the next cell of a rank's row, if all it waits for has been lowered. */
static bool lower_cell(struct lowering *lowering, int replica, int rank, uint32_t *deps)
{
    struct work work = lowering->rows[rank].items[lowering->cursor[rank]];
    int stage = plan_global_stage(lowering->plan, rank, work.chunk);
    const struct stage *costs = &lowering->stages[stage];
    size_t at = cell(lowering, stage, work.mb), ndeps;
    bool again = lowering->recomputes[at];
    double kept = again ? costs->checkpoint : costs->activation, frees = 0, takes = 0;
    uint32_t id;

    if (!dependencies(lowering, stage, work, deps, &ndeps))
        return false;
    if (work.kind == FORWARD)
        takes = kept;
    else if (work.kind == RECOMPUTE)
        takes = costs->working;
    else if (work.kind != BACKWARD_INPUT)
        frees = kept + (again ? costs->working : 0);
    if (lowering->cursor[rank] == lowering->last_backward[stage] && lowering->buckets[stage].count)
        id = sliced_backward(lowering, replica, rank, work, frees, deps, ndeps);
    else
        id = compute(lowering, replica, rank, work, costs->work[work.kind], (struct op){.takes = takes, .frees = frees},
                     deps, ndeps);
    if (work.kind == FORWARD) {
        lowering->forwarded[at] = id;
        if (stage + 1 < plan_global_stages(lowering->plan))
            lowering->activation[cell(lowering, stage + 1, work.mb)] = send(lowering, replica, stage, stage + 1, work.mb, id);
    } else if (work.kind == RECOMPUTE) {
        lowering->recomputed[at] = id;
    } else if (work.kind != BACKWARD_WEIGHT) {
        lowering->backwarded[at] = id;
        if (stage > 0)
            lowering->gradient[cell(lowering, stage - 1, work.mb)] = send(lowering, replica, stage, stage - 1, work.mb, id);
    }
    lowering->cursor[rank]++;
    return true;
}

static void forget(struct lowering *lowering)
{
    size_t cells = (size_t)plan_global_stages(lowering->plan) * (size_t)lowering->plan->micro_batches;

    for (size_t i = 0; i < cells; i++) {
        lowering->activation[i] = lowering->gradient[i] = (struct arrival){.first = NO_OP};
        lowering->forwarded[i] = lowering->recomputed[i] = lowering->backwarded[i] = NO_OP;
    }
    memset(lowering->cursor, 0, (size_t)lowering->plan->stages * sizeof *lowering->cursor);
}

/* Walks all rows of a replica together: each as far as its neighbours let it, until all are done. */
static void lower_replica(struct lowering *lowering, int replica)
{
    uint32_t *deps = xcalloc((size_t)lowering->program->flows + 1, sizeof *deps);
    bool moved = true, waiting = true;

    forget(lowering);
    while (moved && waiting) {
        moved = waiting = false;
        for (int rank = 0; rank < lowering->plan->stages; rank++) {
            while (lowering->cursor[rank] < lowering->rows[rank].count && lower_cell(lowering, replica, rank, deps))
                moved = true;
            waiting |= lowering->cursor[rank] < lowering->rows[rank].count;
        }
    }
    if (waiting)
        BUG("the rows of %s wait for each other", scenario_strategy(lowering->scenario)->name);
    free(deps);
}

static void make_lanes(struct lowering *lowering)
{
    int flows = lowering->program->flows, ranks = lowering->program->ranks;

    for (int rank = 0; rank < ranks; rank++) {
        lowering->compute_lane[rank] = program_lane(lowering->program, rank, LANE_COMPUTE, 0);
        for (int t = 0; t < flows && lowering->plan->stages > 1; t++) {
            lowering->next_lane[rank * flows + t] = program_lane(lowering->program, rank, LANE_SEND_NEXT, t);
            lowering->previous_lane[rank * flows + t] = program_lane(lowering->program, rank, LANE_SEND_PREVIOUS, t);
        }
    }
}

/* Messages, or durations and one replica for all? A person may say; else by the number of operations it would take. */
static void choose_mode(const struct scenario *scenario, enum lower_what what, struct lowered *lowered)
{
    enum { FEW = 200000 };
    const struct strategy_spec *spec = &scenario->strategy;
    double n = spec->data, work = n * spec->pipeline * scenario->plan.micro_batches * 4;
    double messages = n * (n - 1) * 2 * spec->pipeline * lowered->program.flows;
    int mode = scenario->simulation.collectives;

    lowered->replicas = what == LOWER_COMPUTE ? 1 : spec->data;
    if (what == LOWER_COMPUTE || spec->data == 1)
        return;
    lowered->measured = mode == COLLECTIVES_MEASURED || (mode == COLLECTIVES_AUTO && work + messages > FEW);
    lowered->folded = lowered->measured && scenario->simulation.fold == FOLD_AUTO && replicas_alike(scenario);
    if (lowered->folded)
        lowered->replicas = 1;
}

static void allocate(struct lowering *lowering)
{
    size_t ranks = (size_t)lowering->program->ranks, flows = (size_t)lowering->program->flows;
    size_t stages = (size_t)plan_global_stages(lowering->plan), cells = stages * (size_t)lowering->plan->micro_batches;

    lowering->rows = rows_build(lowering->scenario);
    lowering->buckets = xcalloc(stages, sizeof *lowering->buckets);
    lowering->compute_lane = xcalloc(ranks, sizeof(uint32_t));
    lowering->next_lane = xcalloc(ranks * flows, sizeof(uint32_t));
    lowering->previous_lane = xcalloc(ranks * flows, sizeof(uint32_t));
    lowering->ready = xcalloc(ranks * (size_t)lowering->plan->chunks, sizeof *lowering->ready);
    lowering->tensor = xcalloc(ranks * (size_t)lowering->plan->chunks, sizeof *lowering->tensor);
    lowering->activation = xcalloc(cells, sizeof *lowering->activation);
    lowering->gradient = xcalloc(cells, sizeof *lowering->gradient);
    lowering->forwarded = xcalloc(cells, sizeof(uint32_t));
    lowering->recomputed = xcalloc(cells, sizeof(uint32_t));
    lowering->backwarded = xcalloc(cells, sizeof(uint32_t));
    lowering->recomputes = xcalloc(cells, sizeof(bool));
    lowering->cursor = xcalloc((size_t)lowering->plan->stages, sizeof(size_t));
    lowering->last_backward = xcalloc(stages, sizeof(size_t));
}

static void lowering_release(struct lowering *lowering)
{
    for (int s = 0; s < plan_global_stages(lowering->plan); s++)
        free(lowering->buckets[s].items);
    for (int i = 0; i < lowering->program->ranks * lowering->plan->chunks; i++)
        free(lowering->ready[i]);
    rows_release(lowering->rows, lowering->plan->stages);
    free(lowering->buckets);
    free(lowering->compute_lane);
    free(lowering->next_lane);
    free(lowering->previous_lane);
    free(lowering->ready);
    free(lowering->tensor);
    free(lowering->activation);
    free(lowering->gradient);
    free(lowering->forwarded);
    free(lowering->recomputed);
    free(lowering->backwarded);
    free(lowering->recomputes);
    free(lowering->cursor);
    free(lowering->last_backward);
}

int lower(const struct scenario *scenario, const struct stage *stages, enum lower_what what, struct measure *measure,
          struct lowered *lowered, struct error *err)
{
    struct lowering lowering = {
        .scenario = scenario, .plan = &scenario->plan, .stages = stages, .measure = measure, .out = lowered,
        .program = &lowered->program,
    };
    int rc;

    *lowered = (struct lowered){.program = {.flows = tensor_flows(scenario)}};
    choose_mode(scenario, what, lowered);
    lowered->program.ranks = lowered->replicas * scenario->plan.stages;
    allocate(&lowering);
    scan_rows(&lowering);
    if (what == LOWER_ITERATION)
        buckets_build(&lowering);
    rc = tensor_costs(&lowering, err);
    if (!rc) {
        make_lanes(&lowering);
        for (int replica = 0; replica < lowered->replicas; replica++)
            lower_replica(&lowering, replica);
        if (what == LOWER_ITERATION)
            rc = lower_sync(&lowering, err);
    }
    lowering_release(&lowering);
    return rc;
}

void lowered_release(struct lowered *lowered)
{
    program_release(&lowered->program);
}
