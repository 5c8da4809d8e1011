#include "lower_internal.h"

#include <stdlib.h>
#include <string.h>

struct row *rows_build(const struct scenario *scenario)
{
    const struct strategy *strategy = scenario_strategy(scenario);
    struct row *rows = xcalloc((size_t)scenario->plan.stages, sizeof *rows);

    if (strategy->rows)
        strategy->rows(rows, &scenario->plan);
    for (int rank = 0; !strategy->rows && rank < scenario->plan.stages; rank++)
        strategy->row(&rows[rank], &scenario->plan, rank);
    return rows;
}

void rows_release(struct row *rows, int count)
{
    for (int rank = 0; rank < count; rank++)
        free(rows[rank].items);
    free(rows);
}

/* What a first look at the rows tells: which forwards are recomputed, and which backward is a chunk's last. */
static void scan_rows(struct lowering *lowering)
{
    for (int rank = 0; rank < lowering->plan->stages; rank++) {
        for (size_t i = 0; i < lowering->rows[rank].count; i++) {
            struct work work = lowering->rows[rank].items[i];

            if (work.kind == RECOMPUTE)
                lowering->recomputes[lowering_place(lowering, rank, work).at] = true;
            if (work.kind == BACKWARD || work.kind == BACKWARD_WEIGHT)
                lowering->last_backward[rank * lowering->plan->chunks + work.chunk] = i;
        }
    }
}

static void forget(struct lowering *lowering)
{
    size_t cells = lowering_cell(lowering, plan_directions(lowering->plan), 0, 0);

    for (size_t i = 0; i < cells; i++) {
        lowering->activation[i] = lowering->gradient[i] = (struct arrival){.first = NO_OP};
        lowering->forwarded[i] = lowering->recomputed[i] = lowering->backwarded[i] = lowering->due[i] = NO_OP;
    }
    memset(lowering->cursor, 0, (size_t)lowering->plan->stages * sizeof *lowering->cursor);
}

/* Walks all rows of a replica together: each as far as its neighbours let it, until all are done. */
static void lower_replica(struct lowering *lowering, int replica)
{
    uint32_t *scratch = xcalloc(2 * ((size_t)lowering->program->flows + 1), sizeof *scratch);
    bool moved = true, waiting = true;

    forget(lowering);
    while (moved && waiting) {
        moved = waiting = false;
        for (int rank = 0; rank < lowering->plan->stages; rank++) {
            while (lowering->cursor[rank] < lowering->rows[rank].count && lower_cell(lowering, replica, rank, scratch))
                moved = true;
            waiting |= lowering->cursor[rank] < lowering->rows[rank].count;
        }
    }
    if (waiting)
        BUG("the rows of %s wait for each other", scenario_strategy(lowering->scenario)->name);
    free(scratch);
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
    if (what == LOWER_COMPUTE || spec->data * plan_directions(&scenario->plan) == 1)
        return;
    lowered->measured = mode == COLLECTIVES_MEASURED || (mode == COLLECTIVES_AUTO && work + messages > FEW);
    lowered->folded = lowered->measured && scenario->simulation.fold == FOLD_AUTO && replicas_alike(scenario) &&
                      plan_directions(&scenario->plan) == 1;
    if (lowered->folded)
        lowered->replicas = 1;
}

/* Every operation takes some hundred bytes until it is replayed: more would take all of a machine's memory. */
static int check_operations(const struct scenario *scenario, const struct lowered *lowered, struct error *err)
{
    enum { MOST = 1 << 26 };
    const struct strategy_spec *spec = &scenario->strategy;
    double n = spec->data, stages = plan_global_stages(&scenario->plan);
    double work = 4.0 * lowered->replicas * stages * scenario->plan.micro_batches;
    double messages = lowered->measured || lowered->replicas == 1 ? 0 :
                      2 * n * scenario_all_reduce(scenario)->chunks(spec->data) * stages * lowered->program.flows;

    if (work + messages <= MOST)
        return 0;
    return error_add(err, EXIT_INPUT, scenario->simulation.node ? scenario->simulation.node->loc : scenario->node->loc,
                     "simulation: up to %.2g operations; expected at most %.2g: 'collectives: auto' and 'fold: auto' need "
                     "the fewest", work + messages, (double)MOST);
}

static void allocate(struct lowering *lowering)
{
    size_t ranks = (size_t)lowering->program->ranks, flows = (size_t)lowering->program->flows;
    size_t stages = (size_t)plan_global_stages(lowering->plan), chunks = (size_t)lowering->plan->chunks;
    size_t cells = lowering_cell(lowering, plan_directions(lowering->plan), 0, 0);

    lowering->rows = rows_build(lowering->scenario);
    lowering->buckets = xcalloc(stages, sizeof *lowering->buckets);
    lowering->compute_lane = xcalloc(ranks, sizeof(uint32_t));
    lowering->next_lane = xcalloc(ranks * flows, sizeof(uint32_t));
    lowering->previous_lane = xcalloc(ranks * flows, sizeof(uint32_t));
    lowering->ready = xcalloc(ranks * chunks, sizeof *lowering->ready);
    lowering->tensor = xcalloc(ranks * chunks, sizeof *lowering->tensor);
    lowering->activation = xcalloc(cells, sizeof *lowering->activation);
    lowering->gradient = xcalloc(cells, sizeof *lowering->gradient);
    lowering->forwarded = xcalloc(cells, sizeof(uint32_t));
    lowering->recomputed = xcalloc(cells, sizeof(uint32_t));
    lowering->backwarded = xcalloc(cells, sizeof(uint32_t));
    lowering->due = xcalloc(cells, sizeof(uint32_t));
    lowering->recomputes = xcalloc(cells, sizeof(bool));
    lowering->cursor = xcalloc((size_t)lowering->plan->stages, sizeof(size_t));
    lowering->last_backward = xcalloc((size_t)lowering->plan->stages * chunks, sizeof(size_t));
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
    free(lowering->collective_lane);
    free(lowering->synced);
    free(lowering->activation);
    free(lowering->gradient);
    free(lowering->forwarded);
    free(lowering->recomputed);
    free(lowering->backwarded);
    free(lowering->due);
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
    if (check_operations(scenario, lowered, err))
        return -1;
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
