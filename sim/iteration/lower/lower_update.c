/* The update of a rank, by its GPU or by its host, and the gathers of updated weights. These follow the update, or
 * overlap with the forwards of the next iteration (WEIGHTS_NEXT). As all iterations are equal, the simulated one then
 * begins with the gathers of the one before.
 *
 * Reads the ends of sums.
 * Adds updates, gathers of weights, and the events of these gathers for which forwards wait. */
#include "lower/party.h"

#include <math.h>
#include <stdlib.h>

#include "base/base.h"
#include "engine/event.h"
#include "engine/program.h"
#include "exchange/exchange.h"
#include "hardware/cluster.h"
#include "kernels/contention.h"
#include "layout/layout.h"
#include "scenario/recipe.h"
#include "scenario/scenario.h"
#include "schedule/schedule.h"
#include "stage/stage.h"
#include "workload/buckets.h"

/* Adds the sums of gradients that an update waits for, and the kernels before these sums. The sums imply the kernels,
 * but with both metrics can tell a wait for other ranks' kernels from a wait for the network. */
static void wait_for_sums(const struct lowering *lowering, int replica, int rank, struct waits *waits)
{
    struct partners sums = tied_sums_of(&lowering->exchanges, rank, replica);
    int prank = program_rank(lowering, replica, rank);

    for (int chunk = 0; chunk < plan_chunks(lowering->plan, rank); chunk++) {
        const struct chunk_state *chunk_state = chunk_state_of(lowering, prank, chunk);

        wait_for(waits, chunk_state->synced);
        wait_for(waits, chunk_state->tied);
        wait_for(waits, lowering->sums.computed[plan_virtual_stage(lowering->plan, rank, chunk)]);
    }
    for (int number = sums.first; number <= sums.last; number++)
        wait_for(waits, lowering->sums.tied_computed[number]);
}

/* Adds the operation of an update; the caller has set its seconds and exchanges, and whether it continues one. */
static uint32_t write_update(struct lowering *lowering, int prank, struct new_op op, struct waits *waits)
{
    uint32_t id;

    op.kind = OP_COMPUTE;
    op.what = WHAT_UPDATE;
    op.lane = lowering->ranks[prank].compute_lane;
    op.mb = -1;
    op.stage = plan_virtual_stage(lowering->plan, prank % lowering->plan->stages, 0);
    id = program_add(lowering->program, op, waits->items, waits->count);
    waits->count = 0;
    return id;
}

static bool exchanges_in(const struct work_counts *counts)
{
    int all = 0;

    for (int i = 0; i < EXCHANGES_MAX; i++)
        all += counts->exchanges[i];
    return all > 0;
}

/* Adds the seconds of a chunk's update, and what its tensor group exchanges in it. */
static void add_chunk(struct lowering *lowering, int replica, int rank, int chunk, struct new_op *op)
{
    int prank = program_rank(lowering, replica, rank), stage = plan_virtual_stage(lowering->plan, rank, chunk);
    const struct gpu_class *class = lowering->ranks[prank].class;
    const struct place here = {
        .replica = replica, .rank = rank, .stage = stage, .prank = prank, .held = &class->stages[stage],
        .times = &class->times[stage], .chunk_state = chunk_state_of(lowering, prank, chunk),
    };
    struct work_cost update = {.counts = here.held->work[UPDATE], .times.seconds = class->times[stage].update.seconds};

    if (exchanges_in(&update.counts)) {
        update.times.seconds += op->amount - op->compute.communication;
        count_exchanges(lowering, &here, &update.counts);
        set_duration(lowering, &here, &update, op);
    } else {
        op->amount += update.times.seconds;
    }
}

void lower_update(struct lowering *lowering, int replica, int rank)
{
    int prank = program_rank(lowering, replica, rank);
    const struct scenario *scenario = lowering->scenario;
    bool handed_out = scenario->recipe.weights.when == WEIGHTS_UPDATED;
    bool always = scenario_schedule(scenario)->asynchronous || handed_out;       /* also an update that takes no time */
    bool updates_here = replica == 0 || !scenario->recipe.rooted;
    bool hosted = scenario_offloads(scenario, OFFLOAD_OPTIMIZER);
    struct waits waits = {0};
    struct new_op op = {0};
    uint32_t id = NO_OP;

    if (hosted && updates_here)
        host_update(lowering, prank, &waits);
    wait_for_sums(lowering, replica, rank, &waits);
    lowering->ranks[prank].overlapped = (struct contention){0}; /* the sums have ended */
    for (int chunk = 0; chunk < plan_chunks(lowering->plan, rank) && updates_here && !hosted; chunk++)
        add_chunk(lowering, replica, rank, chunk, &op);
    if (waits.count > 0 || op.amount > 0 || always)
        id = write_update(lowering, prank, op, &waits);
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
    lowering->sums.computed[stage] = event_taken(&lowering->arena, &computed);
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
        id = write_update(lowering, prank, (struct new_op){.amount = seconds, .continues = true}, &waits);
    host_store_weights(lowering, prank, event_of(id));
    free(waits.items);
}

/* Lowers the gather of a bucket's weights. `begin`: [program rank], the operation at the begin of the iteration. */
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
        contention_join(coming, &overlapped, 1);
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

/* Lets the next operation wait for a gather of weights. From then on its kernels overlap only with the gathers after
 * it. */
static void wait_for_gather(struct lowering *lowering, const struct place *here, const struct coming *weights)
{
    struct rank_state *rank = &lowering->ranks[here->prank];
    struct contention *left = &rank->coming, *overlapped = &rank->overlapped;

    wait_for(&lowering->waits, weights->gathered);
    contention_join(left, &weights->overlapped, -1);
    if (overlapped->collective > left->collective)
        *overlapped = *left;
}

void wait_for_weights(struct lowering *lowering, const struct place *here)
{
    for (size_t b = lowering->exchanges.buckets[here->stage].count; b-- > 0;)
        wait_for_gather(lowering, here, &here->chunk_state->coming[b]);
    here->chunk_state->coming = NULL;
}

/* Slices and buckets are in the order of the backward; the forward takes both from the last. A new piece begins where
 * the next slice needs another bucket. */
uint32_t first_forward(struct lowering *lowering, const struct place *here, struct new_op op)
{
    const struct stage *stage = here->held;
    const struct buckets *buckets = &lowering->exchanges.buckets[here->stage];
    struct work_cost piece = {0};
    size_t left = buckets->count;

    for (size_t k = stage->nslices; k-- > 0;) {
        if (k + 1 < stage->nslices && left > 0 && buckets->items[left - 1].slice >= k) {
            lower_compute(lowering, here, FORWARD, &piece, &op);
            op = (struct new_op){.workspace = op.workspace, .continues = true};
            piece = (struct work_cost){0};
        }
        for (; left > 0 && buckets->items[left - 1].slice >= k; left--)
            wait_for_gather(lowering, here, &here->chunk_state->coming[left - 1]);
        struct work_cost slice = slice_cost(here, &stage->slices[k], FORWARD);

        work_cost_add(&piece, &slice);
    }
    here->chunk_state->coming = NULL;
    return lower_compute(lowering, here, FORWARD, &piece, &op);
}
