#include "base/progress.h"
#include "lower/exchange_internal.h"
#include "recompute/stage_plan.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/program.h"
#include "exchange/exchange.h"
#include "scenario/scenario.h"
#include "schedule/resolve.h"
#include "schedule/schedule.h"
#include "workload/workload.h"

/* Notes which micro-batches a row recomputes, whose backward it splits, and which backwards complete their chunks'
 * gradients before an update. */
static void scan_row(struct lowering *lowering, int rank)
{
    size_t entries = row_entries(lowering, rank);
    bool *complete = ARENA_ARRAY(&lowering->arena, bool, lowering->plan->chunks);
    bool *completes = lowering->completes[rank] = ARENA_ARRAY(&lowering->arena, bool, entries + 1);

    for (size_t i = entries; i-- > 0;) {
        struct work work = row_entry(lowering, rank, i);

        if (work.kind == UPDATE)
            memset(complete, 0, (size_t)lowering->plan->chunks * sizeof *complete);
        /* ZeRO 2 keeps no whole gradients: it scatters them in every micro-batch, after the backward of its first slice */
        if ((work.kind == BACKWARD || work.kind == BACKWARD_WEIGHT) &&
            (!complete[work.chunk] ||
             (lowering->scenario->recipe.gradients.every && work.mb % plan_slices(lowering->plan) == 0)))
            complete[work.chunk] = completes[i] = true;
        if (work.kind != RECOMPUTE && work.kind != BACKWARD_WEIGHT)
            continue;
        for (int replica = 0; replica < lowering->exchanges.alike.replicas; replica++) {
            int at = program_rank(lowering, replica, rank) * lowering->plan->chunks + work.chunk;
            struct micro_batch_state *state = lowering->first_places[at].state + work.mb;

            state->recomputes |= work.kind == RECOMPUTE;
            state->split |= work.kind == BACKWARD_WEIGHT;
        }
    }
}

/* Whether the budget is spent; `told`: operations, when progress was told of them. */
static bool stopped(const struct lowering *lowering, size_t *told)
{
    size_t count = lowering->program->ops.count;

    if (count - *told < PROGRESS_OPERATIONS)
        return false;
    *told = count;
    return progress_step(lowering->scenario->progress, "lowering", count, 0, 0) &&
           progress_check(lowering->scenario->progress, lowering->err);
}

static void lower_step(struct lowering *lowering, const struct step *step)
{
    int replicas = lowering->exchanges.alike.replicas, at = (int)step->at, number = (int)step->number;
    int rank = (int)step->row / replicas, replica = (int)step->row % replicas;

    switch ((enum step_kind)step->kind) {
    case STEP_WORKS: lower_works(lowering, replica, rank, step->at); break;
    case STEP_MEET: lower_meeting(lowering, replica / number * number, number, rank, step->at); break;
    case STEP_HAND_ROUND: replicate_before(lowering, step->at); break;
    case STEP_SUM: lower_sum(lowering, at, number); break;
    case STEP_JOIN: lower_join(lowering, at); break;
    case STEP_TIE: lower_tie(lowering, number); break;
    case STEP_UPDATE: lower_update(lowering, replica, rank); break;
    case STEP_GATHER: lower_gather(lowering, at); break;
    case STEP_RENEW: lower_renewal(lowering, replica, rank); break;
    case STEP_ARRIVE: case STEP_COUNT: break;
    }
}

/* The order of all steps; NULL: the budget is spent. That there is none would be a mistake of this program: orders of files were checked. */
static const struct step **resolved(const struct lowering *lowering, const struct script *script,
                                    const struct labels *labels, size_t *count)
{
    struct unresolved why = {0};
    const struct step **order = script_resolve(script, count, &why);
    char *text = NULL;
    size_t size;
    FILE *out;

    if (!why.step)
        return order;
    out = text_open(&text, &size);
    label_print(labels, why.label, out);
    text_close(out, &text);
    BUG("%s: on rank %u of replica %u the step '%s' (entry or stage %u) waits for %s; %s",
        scenario_schedule(lowering->scenario)->name, why.step->row / script->replicas, why.step->row % script->replicas,
        step_names[why.step->kind], why.step->at, text, why.nobody ? "nobody gives them" : "who gives them waits for this step");
}

/* Finds the order of all steps, and lowers each in its turn. */
static int lower_rows(struct lowering *lowering)
{
    struct script script;
    int rc = 0;
    const struct labels *labels = script_write(lowering, &script);
    size_t count, told = 0;
    const struct step **order = resolved(lowering, &script, labels, &count);

    if (!order)
        rc = progress_check(script.progress, lowering->err);
    for (size_t i = 0; order && i < count && !rc; i++) {
        lower_step(lowering, order[i]);
        rc = stopped(lowering, &told) || lowering->measure->failed ? -1 : 0;
    }
    free(order);
    script_release(&script);
    return rc;
}

static void make_lanes(struct lowering *lowering)
{
    int flows = lowering->program->flows, ranks = lowering->program->ranks;

    lowering->lanes.next = ARENA_ARRAY(&lowering->arena, uint32_t, ranks * flows);
    lowering->lanes.previous = ARENA_ARRAY(&lowering->arena, uint32_t, ranks * flows);
    if (lowering->scenario->parallelism.one_communicator && lowering->plan->stages > 1)
        lowering->lanes.copy = ARENA_ARRAY(&lowering->arena, uint32_t, ranks);
    for (int rank = 0; rank < ranks; rank++) {
        lowering->ranks[rank].compute_lane = program_lane(lowering->program, rank, LANE_COMPUTE, 0);
        if (lowering->lanes.copy)
            lowering->lanes.copy[rank] = program_lane(lowering->program, rank, LANE_COPY, 0);
        for (int t = 0; t < flows && lowering->plan->stages > 1; t++) {
            lowering->lanes.next[rank * flows + t] = program_lane(lowering->program, rank, LANE_SEND_NEXT, t);
            lowering->lanes.previous[rank * flows + t] = program_lane(lowering->program, rank, LANE_SEND_PREVIOUS, t);
        }
    }
    if (scenario_by_layers(lowering->scenario))
        make_host_lanes(lowering);
}

/* An operation takes some hundred bytes until it is replayed: more operations would fill a machine's memory. */
static int check_operations(const struct scenario *scenario, const struct alike *alike, bool whole, struct error *err)
{
    enum { MOST = 1 << 26 };
    double work = alike->works * alike->replicas, messages = whole && !alike->measured ? alike->messages : 0;
    const char *fewer = work <= MOST && scenario->simulation.collectives == COLLECTIVES_AUTO ?
                            "'collectives: measured' needs fewer, blind to what else is on the links of an all-reduce" :
                            "'collectives: auto' and 'fold: auto' need the fewest";

    if (work + messages <= MOST)
        return progress_admit(scenario->progress, work + messages, err);
    return error_clash(err, scenario->simulation.node ? scenario->simulation.node->loc : scenario->node->loc,
                       "simulation: up to %.2g operations; expected at most %.2g: %s", work + messages, (double)MOST,
                       fewer);
}

/* ZeRO 3's replicas wait for each other in the gathers of layers. Replicas of a lockstep group need a barrier only if
 * their works do not take equally long. */
static int barrier_replicas(const struct lowering *lowering, bool gathers)
{
    bool differ = lowering->exchanges.alike.uneven & (UNEVEN_WORKS | UNEVEN_GPUS | UNEVEN_SAMPLES | UNEVEN_KINDS);
    int lockstep = differ ? lowering->exchanges.lockstep : 1;
    int shard = gathers ? lowering->scenario->recipe.divided[HELD_WEIGHTS][PARAMETERS_COMMON] : 1;      /* at most */

    return lowering->exchanges.alike.replicas == 1 ? 1 : lcm(lockstep, shard, INT_MAX);
}

/* What the place of an entry is but for its micro-batch. */
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
                .last = stage == plan_virtual_stages(plan) - 1, .held = &lowering->ranks[prank].class->stages[stage],
                .times = &lowering->ranks[prank].class->times[stage],
                .state = lowering_state(lowering, replica, direction, stage, 0),
                .chunk_state = chunk_state_of(lowering, prank, chunk),
            };
        }
}

/* The most flows of an exchange: those of a tensor group, or the pieces of a sum of tied gradients. */
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
                    (size_t)lowering->rules.micro_batches;

    lowering->states = ARENA_ARRAY(arena, struct micro_batch_state, states);
    for (size_t i = 0; i < states; i++)
        lowering->states[i] = (struct micro_batch_state){.done = {NO_OP, NO_OP, NO_OP}, .due = NO_OP};
    lowering->completes = ARENA_ARRAY(arena, bool *, lowering->plan->stages);
    lowering->sums.summed = ARENA_ARRAY(arena, struct event, stages);
    lowering->sums.untied = ARENA_ARRAY(arena, struct event, tied_sums(&lowering->exchanges));
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
        lowering->chunk_states[i].exchanges = lowering->exchanges.costs[i];
        lowering->chunk_states[i].complete = lowering->chunk_states[i].updated = NO_OP;
    }
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

/* Whether replicas exchange anything beside the works: buckets, or all of each layer or pass. */
static bool exchanges_replicas(const struct lowering *lowering)
{
    enum sum_unit unit = lowering->scenario->recipe.gradients.unit;
    bool buckets = unit == SUM_BUCKETS || unit == SUM_TENSORS || unit == SUM_STAGES, any = false;

    for (int s = 0; s < plan_virtual_stages(lowering->plan); s++)
        any |= lowering->exchanges.buckets[s].count > 0;
    return lowering->rules.whole && (buckets ? any : scenario_replicas(lowering->scenario) > 1);
}

static struct rules rules_of(const struct workload *workload, bool whole)
{
    const struct scenario *scenario = workload->scenario;
    const struct schedule *schedule = scenario_schedule(scenario);
    bool replicated = whole && scenario_replicas(scenario) > 1;
    int steps = whole ? scenario->parallelism.local_steps : 1;

    return (struct rules){
        .whole = whole, .steps = steps, .micro_batches = plan_micro_batches(&workload->plan) * steps,
        .update_last = !schedule->asynchronous, .gather_last = scenario->recipe.weights.when == WEIGHTS_UPDATED,
        .replicates = replicated && scenario->recipe.weights.when == WEIGHTS_FORWARD,
        .zero = replicated && scenario->recipe.weights.when == WEIGHTS_LAYER, .recompute = schedule->recompute,
        /* figures and orders show the rows, not choices at run time */
        .opportunistic = whole ? plan_opportunistic(schedule, &scenario->plan) : 0,
    };
}

/* Makes all that steps need: places, lanes, costs of the exchanges within works, buckets. lowering_release in either
 * case. */
static int begin(struct lowering *lowering, const struct workload *workload, enum lower_what what)
{
    const struct scenario *scenario = lowering->scenario = workload->scenario;
    struct exchanges *exchanges = &lowering->exchanges;
    struct lowered *out = lowering->out;
    bool whole = what == LOWER_ITERATION;

    lowering->workload = workload;
    lowering->plan = &workload->plan;
    lowering->program = &out->program;
    lowering->rules = rules_of(workload, whole);
    exchanges_find(exchanges, workload, whole, lowering->measure, &lowering->arena, lowering->err);
    *out = (struct lowered){
        .program = {.flows = exchanges->alike.flows, .ranks = exchanges->alike.replicas * scenario->plan.stages,
                    .progress = scenario->progress},
    };
    if (lowering->measure->failed || check_operations(scenario, &exchanges->alike, whole, lowering->err) ||
        exchanges_measure(exchanges))
        return -1;
    lowering->rules.barrier_group = barrier_replicas(lowering, false);
    lowering->rules.gather_group = barrier_replicas(lowering, lowering->rules.zero);
    allocate(lowering);
    for (int rank = 0; rank < scenario->plan.stages; rank++)
        scan_row(lowering, rank);
    make_lanes(lowering);
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
                        lowering.chunk_states[i].exchanged, lowering.chunk_states[i].gathered);
    lowered->alike = lowering.exchanges.alike;
    lowered->used = lowering.exchanges.used;
    lowering_release(&lowering);
    if (!rc && lowered->program.endless)
        rc = error_add(err, EXIT_INPUT, workload->scenario->node->loc, "a work or a transfer would never end: times, "
                       "bytes or rates of the scenario are too far apart to simulate");
    return rc;
}

const char *const lower_pass_names[] = {
    [PASS_ROWS] = "rows", [PASS_EXCHANGES] = "exchanges", [PASS_SCRIPT] = "script", [PASS_ORDER] = "order",
    [PASS_COUNT] = NULL,
};

int lower_print(const struct workload *workload, enum lower_pass after, struct measure *measure, FILE *out,
                struct error *err)
{
    struct lowered lowered = {0};
    struct lowering lowering = {.measure = measure, .out = &lowered, .err = err};
    int rc = begin(&lowering, workload, LOWER_ITERATION);

    if (!rc && after == PASS_ROWS)
        rows_print(&lowering, out);
    else if (!rc && after == PASS_EXCHANGES)
        exchanges_print(&lowering.exchanges, out);
    else if (!rc) {
        struct script script;
        const struct labels *labels = script_write(&lowering, &script);
        size_t count = script.all.count;
        const struct step **order = after == PASS_ORDER ? resolved(&lowering, &script, labels, &count) : NULL;

        script_print(&lowering, &script, labels, order, count, out);
        free(order);
        script_release(&script);
    }
    lowering_release(&lowering);
    lowered_release(&lowered);
    return rc;
}

void lowered_release(struct lowered *lowered)
{
    program_release(&lowered->program);
}
