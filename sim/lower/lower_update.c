/* The update of a rank, by its GPU or by its host, and the exchange of updated weights: after the update, or beside the
 * forwards of the next iteration. Iterations are alike, so that the latter begins with these gathers.
 *
 * With offload: optimizer the host updates (Ren et al. 2021, ZeRO-Offload, sections 4 and 5). Gradients go to the host
 * as soon as they are ready: by bucket after their sum over the replicas, else by layer. The CPUs update one unit after
 * another, with clipping when they have all gradients. Weights come back. These are three streams. From ZeRO 1 on each
 * replica does so with its share. With offload: weights the updated weights go to the host.
 *
 * Reads the ends of sums.
 * Adds updates, copies to and from hosts, and gathers of weights. */
#include "lower/exchange_internal.h"

#include <math.h>
#include <stdlib.h>

#include "base/base.h"
#include "engine/event.h"
#include "engine/program.h"
#include "exchange/exchange.h"
#include "hardware/cluster.h"
#include "hardware/contention.h"
#include "layout/layout.h"
#include "scenario/recipe.h"
#include "scenario/scenario.h"
#include "schedule/schedule.h"
#include "stage/stage.h"
#include "workload/buckets.h"

/* Parameters whose gradients go to the host together, and are updated there together. `copied`: the host has them. */
struct portion { double parameters; int stage; struct event copied; };
struct portions { struct portion *items; size_t count, capacity; };

/* Parameters/s that the CPUs of a node update for each GPU of the job there. */
static double cpu_rate(const struct scenario *scenario, struct seat seat)
{
    return cluster_host_update(&scenario->cluster, seat.node) / layout_node_seats(&scenario->layout, seat.gpu);
}

/* Copies gradients to the host after `ready` and, of tied weights, after `tied`. */
static void copy_unit(struct lowering *lowering, int prank, int stage, double parameters, struct event ready,
                      struct event tied, struct portions *units)
{
    double each = scenario_parameter_bytes(lowering->scenario).gradients;
    struct event copied = host_copy(lowering, true, parameters * each, prank, (struct new_op){.mb = -1, .stage = stage},
                                    event_both(&lowering->arena, ready, tied));

    *GROW(units) = (struct portion){parameters, stage, copied};
}

/* Copies a chunk's gradients to the host, bucket by bucket or layer by layer. */
static void copy_chunk(struct lowering *lowering, int prank, int chunk, struct portions *units)
{
    const struct chunk_state *chunk_state = chunk_state_of(lowering, prank, chunk);
    int index = plan_virtual_stage(lowering->plan, prank % lowering->plan->stages, chunk);
    const struct stage *stage = &lowering->workload->stages[index];
    const struct buckets *buckets = &lowering->exchanges.buckets[index];
    const struct recipe *recipe = stage_recipe(&lowering->exchanges, index);
    size_t before = chunk_state->sums.count - buckets->count;

    for (size_t b = 0; b < buckets->count; b++)
        copy_unit(lowering, prank, index,
                  buckets->items[b].values / recipe->divided[HELD_STATES][buckets->items[b].class],
                  chunk_state->sums.items[before + b], chunk_state->tied, units);
    for (size_t i = 0; buckets->count == 0 && i < stage->nslices; i++)
        if (stage->slices[i].parameters > 0)
            copy_unit(lowering, prank, index, recipe_share(recipe, HELD_STATES, stage->slices[i].trained),
                      chunk_state->layers[i], chunk_state->tied, units);
}

/* Lowers the host's update of a unit after `after`, and the copy of its weights back; returns the last of them. */
static struct event update_unit(struct lowering *lowering, int prank, const struct portion *unit, struct event after)
{
    const struct scenario *scenario = lowering->scenario;
    bool back = !scenario_offloads(scenario, OFFLOAD_WEIGHTS) || scenario->recipe.weights.when == WEIGHTS_UPDATED;
    struct event done = event_of(lower_after(lowering, (struct new_op){
        .kind = OP_COMPUTE, .what = WHAT_HOST_UPDATE, .lane = lowering->ranks[prank].host.cpu, .mb = -1,
        .stage = unit->stage, .amount = unit->parameters / cpu_rate(scenario, host_seat(lowering, prank)),
    }, after));

    if (back)
        done = host_copy(lowering, false, unit->parameters * scenario_parameter_bytes(scenario).weights, prank,
                         (struct new_op){.mb = -1, .stage = unit->stage}, done);
    return done;
}

/* Lowers the host's update of a rank; adds to `waits` the events after which its weights are updated. Clipping takes
 * the norm of all gradients, so that no update begins before the host has the last of them (DeepSpeed,
 * runtime/zero/stage_1_and_2.py, step: the norm, then the optimizer). */
static void host_update(struct lowering *lowering, int prank, struct waits *waits)
{
    bool clips = lowering->scenario->memory.precision.clip_gradients;
    struct portions units = {0};

    for (int chunk = 0; chunk < plan_chunks(lowering->plan, prank % lowering->plan->stages); chunk++)
        copy_chunk(lowering, prank, chunk, &units);
    for (size_t i = 0; i < units.count; i++)     /* copies go one after another */
        wait_for(waits, update_unit(lowering, prank, &units.items[i], units.items[clips ? units.count - 1 : i].copied));
    free(units.items);
}

/* Copies a rank's updated weights to the host, with offload: weights. */
static void host_store_weights(struct lowering *lowering, int prank, struct event after)
{
    const struct scenario *scenario = lowering->scenario;
    int rank = prank % lowering->plan->stages, first = plan_virtual_stage(lowering->plan, rank, 0);
    double bytes = 0;

    if (!scenario_offloads(scenario, OFFLOAD_WEIGHTS) ||
        (scenario_offloads(scenario, OFFLOAD_OPTIMIZER) && scenario->recipe.weights.when != WEIGHTS_UPDATED))
        return;
    for (int chunk = 0; chunk < plan_chunks(lowering->plan, rank); chunk++) {
        const struct stage *stage = &lowering->workload->stages[plan_virtual_stage(lowering->plan, rank, chunk)];

        bytes += recipe_share(scenario_recipe(scenario, rank), HELD_WEIGHTS, stage->trained) *
                 scenario_parameter_bytes(scenario).weights;
    }
    if (bytes == 0)
        return;
    after = host_copy(lowering, true, bytes, prank, (struct new_op){.mb = -1, .stage = first}, after);
    /* the update ends when the host has all weights */
    lower_after(lowering, (struct new_op){
        .kind = OP_COMPUTE, .what = WHAT_UPDATE, .lane = lowering->ranks[prank].compute_lane, .continues = true,
        .mb = -1, .stage = first,
    }, after);
}

/* Adds the sums of gradients that an update waits for, and the kernels before these sums. The sums imply the kernels,
 * but with both metrics can tell a wait for other ranks' kernels from a wait for the network. */
static void wait_for_sums(const struct lowering *lowering, int replica, int rank, struct waits *waits)
{
    int prank = program_rank(lowering, replica, rank);

    for (int chunk = 0; chunk < plan_chunks(lowering->plan, rank); chunk++) {
        const struct chunk_state *chunk_state = chunk_state_of(lowering, prank, chunk);

        wait_for(waits, chunk_state->synced);
        wait_for(waits, chunk_state->tied);
        wait_for(waits, lowering->sums.summed[plan_virtual_stage(lowering->plan, rank, chunk)]);
    }
    if (tied_rank(lowering, rank)) {
        struct partners sums = tied_sums_of(&lowering->exchanges, rank, replica);

        for (int number = sums.first; number <= sums.last; number++)
            wait_for(waits, lowering->sums.untied[number]);
    }
}

/* Adds the operation of an update; `continues`: of the update's end. */
static uint32_t add_update(struct lowering *lowering, int prank, double seconds, bool continues, struct waits *waits)
{
    uint32_t id = program_add(lowering->program, (struct new_op){
        .kind = OP_COMPUTE, .what = WHAT_UPDATE, .lane = lowering->ranks[prank].compute_lane, .amount = seconds,
        .continues = continues, .mb = -1,
        .stage = plan_virtual_stage(lowering->plan, prank % lowering->plan->stages, 0),
    }, waits->items, waits->count);

    waits->count = 0;
    return id;
}

void lower_update(struct lowering *lowering, int replica, int rank)
{
    int prank = program_rank(lowering, replica, rank);
    const struct scenario *scenario = lowering->scenario;
    bool handed_out = scenario->recipe.weights.when == WEIGHTS_UPDATED;
    bool always = scenario_schedule(scenario)->asynchronous || handed_out;
    bool updates_here = replica == 0 || !scenario->recipe.rooted;
    bool hosted = scenario_offloads(scenario, OFFLOAD_OPTIMIZER);
    struct waits waits = {0};
    uint32_t id = NO_OP;
    double seconds = 0;

    for (int chunk = 0; chunk < plan_chunks(lowering->plan, rank) && updates_here && !hosted; chunk++)
        seconds += lowering->ranks[prank].class->times[plan_virtual_stage(lowering->plan, rank, chunk)].update.seconds;
    if (hosted && updates_here)
        host_update(lowering, prank, &waits);
    wait_for_sums(lowering, replica, rank, &waits);
    lowering->ranks[prank].overlapped = (struct contention){0}; /* the sums have ended */
    if (waits.count > 0 || seconds > 0 || always)
        id = add_update(lowering, prank, seconds, false, &waits);
    free(waits.items);
    for (int chunk = 0; chunk < plan_chunks(lowering->plan, rank); chunk++)
        chunk_state_of(lowering, prank, chunk)->updated = id;
    if (!handed_out)
        host_store_weights(lowering, prank, event_of(id != NO_OP ? id : lowering->ranks[prank].latest));
}

void lower_join(struct lowering *lowering, int stage)
{
    int first = plan_rank(lowering->plan, 0, stage, 0, NULL), sharers = plan_sharers(lowering->plan, stage);
    struct waits computed = {0};

    for (int i = 0; i < sharers; i++)
        wait_for(&computed, event_of(chunk_state_of(lowering, first + i, 0)->complete));
    lowering->sums.summed[stage] = event_taken(&lowering->arena, &computed);
}

void lower_gather(struct lowering *lowering, int stage)
{
    const struct scenario *scenario = lowering->scenario;

    for (enum parameter_class class = 0; class < PARAMETER_CLASS_COUNT; class++) {
        struct party *party = party_of(lowering, scenario->groups.sums[class], stage);
        double bytes = buckets_weights(lowering->workload, stage, class);

        for (int i = 0; i < party->members->here; i++)
            party->after[i] = event_of(member_chunk(lowering, party, i)->updated);
        exchange_all(lowering, party, (struct emission){scenario->recipe.weights.collective, WHAT_WEIGHTS, bytes});
        for (int i = 0; i < party->members->here; i++)
            if (party->done[i].count)
                member_chunk(lowering, party, i)->published = party->done[i];
    }
}

void lower_renewal(struct lowering *lowering, int replica, int rank)
{
    int prank = program_rank(lowering, replica, rank);
    uint32_t id = chunk_state_of(lowering, prank, 0)->updated;
    struct waits waits = {0};
    double seconds = 0;

    for (int chunk = 0; chunk < plan_chunks(lowering->plan, rank); chunk++) {
        int stage = plan_virtual_stage(lowering->plan, rank, chunk);

        if (!is_shared(&lowering->exchanges, stage))
            continue;
        wait_for(&waits, chunk_state_of(lowering, prank, chunk)->published);
        if (lowering->scenario->parallelism.local_steps > 1)
            seconds += lowering->ranks[prank].class->times[stage].averaging;
    }
    /* the update ends when the rank has all weights */
    if (waits.count > 0)
        id = add_update(lowering, prank, seconds, true, &waits);
    host_store_weights(lowering, prank, event_of(id));
    free(waits.items);
}

/* Lowers the gather of a bucket's weights. `begin`, by program rank: the begin of the iteration. */
static void gather_bucket(struct lowering *lowering, int stage, size_t index, const uint32_t *begin)
{
    const struct scenario *scenario = lowering->scenario;
    const struct buckets *buckets = &lowering->exchanges.buckets[stage];
    const struct bucket *bucket = &buckets->items[index];
    struct emission weights = {scenario->recipe.weights.collective, WHAT_WEIGHTS, bucket->weights};
    enum group_kind kind = scenario->groups.sums[bucket->class];
    struct party *party = party_of(lowering, kind, stage);
    struct contention overlapped = {0};

    for (int i = 0; i < party->members->here; i++)
        party->after[i] = event_of(begin[party->members->ranks[i]]);
    exchange_all(lowering, party, weights);
    if (contention_possible(&scenario->cluster))
        exchange_overlapped(&lowering->exchanges, kind, stage, 0, weights.collective, weights.bytes, &overlapped);
    for (int i = 0; i < party->members->here; i++) {
        struct chunk_state *chunk_state = member_chunk(lowering, party, i);
        struct contention *coming = &lowering->ranks[party->members->ranks[i]].coming;

        if (!chunk_state->coming)
            chunk_state->coming = ARENA_ARRAY(&lowering->arena, struct coming, buckets->count);
        chunk_state->coming[index] = (struct coming){party->done[i], overlapped};
        coming->collective += overlapped.collective;
        coming->kept += overlapped.kept;
        lowering->ranks[party->members->ranks[i]].overlapped = *coming;
    }
}

/* Forwards need buckets in the opposite order of backwards. */
void gather_ahead(struct lowering *lowering)
{
    enum group_kind kind = lowering->scenario->groups.sums[PARAMETERS_COMMON];
    uint32_t *begin;

    if (!lowering->lanes.collective)      /* nothing is exchanged */
        return;
    begin = xcalloc((size_t)lowering->program->ranks, sizeof *begin);
    for (int prank = 0; prank < lowering->program->ranks; prank++)
        begin[prank] = !scenario_has_rank(lowering->scenario, prank) ? NO_OP : program_add(lowering->program, (struct new_op){
            .kind = OP_COMPUTE, .what = WHAT_WEIGHTS, .lane = collective_lane(lowering, kind, prank, 0, 0), .mb = -1,
            .stage = plan_virtual_stage(lowering->plan, prank % lowering->plan->stages, 0),
        }, NULL, 0);
    for (int stage = 0; stage < plan_virtual_stages(lowering->plan); stage++)
        for (size_t b = lowering->exchanges.buckets[stage].count; b-- > 0;)
            gather_bucket(lowering, stage, b, begin);
    free(begin);
}

/* Lets the next operation wait for weights. Its kernels overlap with the gathers after that one alone. */
static void await(struct lowering *lowering, const struct place *here, const struct coming *weights)
{
    struct rank_state *own = &lowering->ranks[here->prank];
    struct contention *left = &own->coming, *overlapped = &own->overlapped;

    wait_for(&lowering->waits, weights->gathered);
    left->collective = fmax(0, left->collective - weights->overlapped.collective);
    left->kept = fmax(0, left->kept - weights->overlapped.kept);
    if (overlapped->collective > left->collective)
        *overlapped = *left;
}

void wait_for_weights(struct lowering *lowering, const struct place *here)
{
    for (size_t b = lowering->exchanges.buckets[here->stage].count; b-- > 0;)
        await(lowering, here, &here->chunk_state->coming[b]);
    here->chunk_state->coming = NULL;
}

uint32_t first_forward(struct lowering *lowering, const struct place *here, struct work work, struct new_op op)
{
    const struct stage *stage = here->held;
    const struct buckets *buckets = &lowering->exchanges.buckets[here->stage];
    struct work_cost piece = {0};
    size_t left = buckets->count;

    for (size_t k = stage->nslices; k-- > 0;) {
        if (k + 1 < stage->nslices && left > 0 && buckets->items[left - 1].slice >= k) {
            lower_compute(lowering, here, work, &piece, &op);
            op = (struct new_op){.workspace = op.workspace, .continues = true};
            piece = (struct work_cost){0};
        }
        for (; left > 0 && buckets->items[left - 1].slice >= k; left--)
            await(lowering, here, &here->chunk_state->coming[left - 1]);
        struct work_cost slice = slice_cost(here, &stage->slices[k], FORWARD);

        work_cost_add(&piece, &slice);
    }
    here->chunk_state->coming = NULL;
    return lower_compute(lowering, here, work, &piece, &op);
}
