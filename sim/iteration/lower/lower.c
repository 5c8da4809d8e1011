#include "base/progress.h"
#include "lower/party.h"

#include <stdlib.h>

#include "alike/alike.h"
#include "engine/program.h"
#include "exchange/exchange.h"
#include "lower/script.h"
#include "scenario/scenario.h"
#include "schedule/schedule.h"
#include "workload/workload.h"

/* Whether the budget is spent. Asks once every PROGRESS_OPERATIONS operations; `told`: operations at the last time. */
static bool stopped(const struct lowering *lowering, size_t *reported)
{
    size_t count = lowering->program->ops.count;

    if (count - *reported < PROGRESS_OPERATIONS)
        return false;
    *reported = count;
    return progress_step(lowering->scenario->progress, "lowering", count, 0, 0) &&
           progress_check(lowering->scenario->progress, lowering->err);
}

static void lower_step(struct lowering *lowering, const struct script_step *step)
{
    int replicas = lowering->exchanges.alike.replicas, at = (int)step->at, number = (int)step->number;
    int rank = (int)step->row / replicas, replica = (int)step->row % replicas;

    switch ((enum step_kind)step->kind) {
    case STEP_WORKS: lower_works(lowering, replica, rank, step->at); break;
    case STEP_MEET: lower_meeting(lowering, replica / number * number, number, rank, step->at); break;
    case STEP_REPLICATE: replicate_before(lowering, step->at); break;
    case STEP_SUM: lower_sum(lowering, at, number); break;
    case STEP_JOIN: lower_join(lowering, at); break;
    case STEP_TIE: lower_tie(lowering, number); break;
    case STEP_UPDATE: lower_update(lowering, replica, rank); break;
    case STEP_GATHER: lower_gather(lowering, at); break;
    case STEP_RENEW: lower_renewal(lowering, replica, rank); break;
    case STEP_ARRIVE: case STEP_COUNT: break;
    }
}

/* Finds the order of all steps, and lowers each in its turn. */
static int lower_rows(struct lowering *lowering)
{
    struct script script;
    int rc = 0;
    const struct labels *labels = script_write(&lowering->rows, &lowering->exchanges, false, &lowering->arena, &script);
    size_t count, reported = 0;
    const struct script_step **order = script_order(&lowering->rows, &script, labels, &count);

    RESERVE(&lowering->program->ops, lowering->program->ops.count + 2 * count);  /* most works: with a transfer */
    RESERVE(&lowering->program->deps, lowering->program->deps.count + 3 * count);
    if (!order)
        rc = progress_check(script.progress, lowering->err);
    for (size_t i = 0; order && i < count && !rc; i++) {
        lower_step(lowering, order[i]);
        rc = stopped(lowering, &reported) || lowering->measure->failed ? -1 : 0;
    }
    free(order);
    script_release(&script);
    return rc;
}

/* Makes the places of micro-batch 0 of each chunk. place_of (lower_work.c) sets the micro-batch of other entries. */
static void make_places(struct lowering *lowering)
{
    const struct plan *plan = lowering->plan;

    lowering->first_places = ARENA_ARRAY(&lowering->arena, struct place, lowering->program->ranks * plan->chunks);
    for (int prank = 0; prank < lowering->program->ranks; prank++)
        for (int chunk = 0; chunk < plan_chunks(plan, prank % plan->stages); chunk++) {
            int replica = prank / plan->stages, rank = prank % plan->stages;
            int stage = plan_virtual_stage(plan, rank, chunk), direction = plan_direction(plan, rank, chunk);

            lowering->first_places[prank * plan->chunks + chunk] = (struct place){
                .replica = replica, .rank = rank, .stage = stage, .direction = direction, .prank = prank,
                .held = &lowering->ranks[prank].class->stages[stage],
                .times = &lowering->ranks[prank].class->times[stage],
                .state = micro_batch_state_of(lowering, replica, direction, stage, 0),
                .chunk_state = chunk_state_of(lowering, prank, chunk),
            };
        }
}

/* The most flows of an exchange: the flows of a tensor group, or the pieces of a sum of tied gradients. */
static int most_flows(const struct lowering *lowering)
{
    int flows = lowering->program->flows, pieces = tied_pieces(&lowering->exchanges);

    return pieces > flows ? pieces : flows;
}

static void allocate(struct lowering *lowering)
{
    struct arena *arena = &lowering->arena;
    int ranks = lowering->program->ranks, chunk_states = ranks * lowering->plan->chunks;
    int stages = plan_virtual_stages(lowering->plan), replicas = lowering->exchanges.alike.replicas;
    size_t states = (size_t)replicas * (size_t)plan_directions(lowering->plan) * (size_t)stages *
                    (size_t)lowering->rows.micro_batches;

    lowering->states = ARENA_ARRAY(arena, struct micro_batch_state, states);
    for (size_t i = 0; i < states; i++)
        lowering->states[i] = (struct micro_batch_state){.done = {NO_OP, NO_OP, NO_OP}, .due = NO_OP};
    lowering->sums.computed = ARENA_ARRAY(arena, struct event, stages);
    lowering->sums.tied_computed = ARENA_ARRAY(arena, struct event, tied_sums(&lowering->exchanges));
    lowering->sums.parties = ARENA_ARRAY(arena, struct party *, stages * GROUP_KIND_COUNT);
    lowering->sums.tied = ARENA_ARRAY(arena, struct party *, tied_sums(&lowering->exchanges));
    lowering->sums.flow_ids = ARENA_ARRAY(arena, uint32_t, most_flows(lowering));
    lowering->ranks = ARENA_ARRAY(arena, struct rank_state, ranks);
    for (int i = 0; i < ranks; i++)
        lowering->ranks[i] = (struct rank_state){
            .latest = NO_OP, .met = NO_OP, .class = exchanges_class(&lowering->exchanges, i),
        };
    lowering->chunk_states = ARENA_ARRAY(arena, struct chunk_state, chunk_states);
    for (int i = 0; i < chunk_states; i++) {
        lowering->chunk_states[i].exchanges =
            costs_of(&lowering->exchanges, i / lowering->plan->chunks, i % lowering->plan->chunks);
        lowering->chunk_states[i].complete = lowering->chunk_states[i].updated = NO_OP;
    }
    for (int up = 0; up < 2; up++)
        lowering->lanes.send[up] = ARENA_ARRAY(arena, uint32_t, ranks * lowering->program->flows);
    if (lowering->scenario->parallelism.one_communicator && lowering->plan->stages > 1)
        lowering->lanes.copy = ARENA_ARRAY(arena, uint32_t, ranks);
    make_places(lowering);
}

static void lowering_release(struct lowering *lowering)
{
    for (int i = 0; lowering->chunk_states && i < lowering->program->ranks * lowering->plan->chunks; i++) {
        free(lowering->chunk_states[i].ready.items);
        free(lowering->chunk_states[i].sums.items);
        free(lowering->chunk_states[i].awaited.items);
    }
    free(lowering->waits.items);
    free(lowering->places.items);
    exchanges_release(&lowering->exchanges);
    arena_release(&lowering->arena);
}

/* Whether replicas exchange anything outside of works: buckets, or all gradients of each layer or pass. */
static bool exchanges_replicas(const struct lowering *lowering)
{
    enum sum_unit unit = lowering->scenario->recipe.gradients.unit;
    bool buckets = unit == SUM_BUCKETS || unit == SUM_TENSORS || unit == SUM_STAGES, any = false;

    for (int s = 0; s < plan_virtual_stages(lowering->plan); s++)
        any |= lowering->exchanges.buckets[s].count > 0;
    return lowering->rows.whole && (buckets ? any : scenario_replicas(lowering->scenario) > 1);
}

/* Everything before the first step: finds rows and exchanges, measures the exchanges within works, makes places and
 * lanes. Call lowering_release in either case. */
static int begin(struct lowering *lowering, const struct workload *workload, enum lower_what what)
{
    const struct scenario *scenario = lowering->scenario = workload->scenario;
    struct exchanges *exchanges = &lowering->exchanges;
    struct lowered *out = lowering->out;
    bool whole = what == LOWER_ITERATION;

    lowering->workload = workload;
    lowering->plan = &workload->plan;
    lowering->program = &out->program;
    exchanges_find(exchanges, workload, whole, lowering->measure, &lowering->arena, lowering->err);
    *out = (struct lowered){
        .program = {.flows = exchanges->alike.flows, .ranks = exchanges->alike.replicas * scenario->plan.stages,
                    .progress = scenario->progress},
    };
    if (lowering->measure->failed || alike_check(&exchanges->alike, scenario, whole, lowering->err) ||
        exchanges_measure(exchanges))
        return -1;
    rows_find(&lowering->rows, workload, whole, &lowering->arena);
    allocate(lowering);
    for (int prank = 0; prank < lowering->program->ranks; prank++) {
        lowering->ranks[prank].compute_lane = program_lane(lowering->program, prank, LANE_COMPUTE, 0);
        make_send_lanes(lowering, prank);
    }
    if (scenario_by_layers(scenario))
        hosts_find(lowering);
    if (exchanges_replicas(lowering))
        make_collective_lanes(lowering);
    if (whole && scenario->recipe.weights.when == WEIGHTS_NEXT)
        gather_ahead(lowering);
    return lowering->measure->failed ? -1 : 0;
}

int lower(const struct workload *workload, enum lower_what what, struct measure *measure, struct lowered *lowered,
          struct error *err)
{
    struct lowering lowering = {.measure = measure, .out = lowered, .err = err};
    int rc = begin(&lowering, workload, what) || lower_rows(&lowering) ? -1 : 0;

    for (int i = 0; !rc && i < lowered->program.ranks * lowering.plan->chunks; i++)
        exchanges_carry(&lowering.exchanges, i / lowering.plan->chunks, i % lowering.plan->chunks,
                        lowering.chunk_states[i].exchanged);
    lowered->alike = lowering.exchanges.alike;
    lowered->used = lowering.exchanges.used;
    lowering_release(&lowering);
    if (!rc && lowered->program.endless)
        rc = error_add(err, EXIT_INPUT, workload->scenario->node->loc, "a work or a transfer would never end: times, "
                       "bytes or rates of the scenario are too far apart to simulate");
    return rc;
}

const char *const lower_pass_names[] = {
    [PASS_ROWS] = "rows", [PASS_EXCHANGES] = "exchanges", [PASS_WORKS] = "works", [PASS_UPDATES] = "updates",
    [PASS_HOSTS] = "hosts", [PASS_ORDER] = "order", [PASS_DURATIONS] = "durations", [PASS_COUNT] = NULL,
};

static void print_script(struct lowering *lowering, enum lower_pass after, FILE *out)
{
    const struct rows *rows = &lowering->rows;
    struct script script;
    const struct labels *labels = script_write(rows, &lowering->exchanges, after == PASS_WORKS, &lowering->arena, &script);
    size_t count = script.steps.count;
    const struct script_step **order = after == PASS_ORDER ? script_order(rows, &script, labels, &count) : NULL;

    script_print(rows, &script, labels, order, count, out);
    free(order);
    script_release(&script);
}

int lower_print(const struct workload *workload, enum lower_pass after, struct measure *measure, FILE *out,
                struct error *err)
{
    struct lowered lowered = {0};
    struct lowering lowering = {.measure = measure, .out = &lowered, .err = err};
    int rc = begin(&lowering, workload, LOWER_ITERATION);

    switch (rc ? PASS_COUNT : after) {
    case PASS_ROWS: rows_print(&lowering.rows, out); break;
    case PASS_EXCHANGES: exchanges_print(&lowering.exchanges, out); break;
    case PASS_WORKS: case PASS_UPDATES: case PASS_ORDER: print_script(&lowering, after, out); break;
    case PASS_HOSTS: hosts_print(&lowering, out); break;
    case PASS_DURATIONS: durations_print(&lowering, out); break;
    case PASS_COUNT: break;
    }
    lowering_release(&lowering);
    lowered_release(&lowered);
    return rc;
}

void lowered_release(struct lowered *lowered)
{
    program_release(&lowered->program);
}
