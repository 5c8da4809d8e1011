/* The sums of gradients over the replicas, by the recipe. Backwards are cut where buckets become ready.
 *
 * Reads buckets, the recipe, and the operations after which gradients are complete.
 * Adds pieces of backwards, sums, and the events after which a rank may update. */
#include "lower/party.h"

#include <stdlib.h>

#include "base/base.h"
#include "collective/collective.h"
#include "engine/event.h"
#include "engine/program.h"
#include "exchange/exchange.h"
#include "kernels/contention.h"
#include "scenario/process_group.h"
#include "scenario/scenario.h"
#include "schedule/schedule.h"
#include "stage/stage.h"

void bucket_ready(struct lowering *lowering, const struct place *here, const struct bucket *bucket, uint32_t id)
{
    struct contention *contention = &lowering->ranks[here->prank].overlapped;

    *GROW(&here->chunk_state->ready) = id;
    contention_join(contention, &bucket->overlapped, 1);
}

/* One exchange of gradients, each member after its `after`. A member's `synced` is then its end. */
static void sum(struct lowering *lowering, struct party *party, const struct collective *collective, double bytes)
{
    exchange_all(lowering, party, (struct emission){collective, WHAT_SYNC, bytes});
    for (int i = 0; i < party->members->here; i++)
        if (party->done[i].count)
            member_chunk(lowering, party, i)->synced = party->done[i];
}

/* The exchanges of one leg of a bucket's sum (compression.h): an all-reduce of uncompressed bytes, then the leg's
 * own. */
static void sum_leg(struct lowering *lowering, struct party *party, const struct leg *leg)
{
    sum(lowering, party, scenario_all_reduce(lowering->scenario), leg->plain);
    sum(lowering, party, leg->collective, leg->bytes);
}

uint32_t lower_pack(struct lowering *lowering, int prank, int stage, double seconds, struct event after)
{
    int stages = lowering->plan->stages;

    return lowering->ranks[prank].latest = lower_after(lowering, (struct new_op){
        .kind = OP_COMPUTE, .what = WHAT_PACK, .lane = lowering->ranks[prank].compute_lane, .mb = -1, .stage = stage,
        .amount = seconds * scenario_slower(lowering->scenario, prank / stages, prank % stages),
    }, after);
}

/* Seconds from the start of a backward until the stage before begins to recompute, so that both end together. */
static double until_recompute(const struct lowering *lowering, const struct place *here)
{
    int before = plan_rank(lowering->plan, here->direction, here->stage - 1, here->work.mb, NULL);
    const struct stage_times *times = lowering->ranks[program_rank(lowering, here->replica, before)].class->times;
    double until = here->times->work[here->work.kind].seconds - times[here->stage - 1].work[RECOMPUTE].seconds;

    return until > 0 ? until : 0;
}

/* `piece` adds up slices until a cut. The cut for a recomputation may divide a slice: its rest is in the next piece. */
uint32_t sliced_backward(struct lowering *lowering, const struct place *here, bool in_time, struct new_op op)
{
    enum work_kind kind = here->work.kind;
    size_t nslices = here->held->nslices;
    const struct buckets *buckets = &lowering->exchanges.buckets[here->stage];
    double until = in_time ? until_recompute(lowering, here) : 0, frees = op.frees;
    struct work_cost piece = {0};
    uint32_t id = NO_OP;
    size_t bucket = 0;

    op.frees = 0;
    for (size_t i = 0; i < nslices; i++) {
        struct work_cost slice = slice_cost(here, &here->held->slices[i], kind);
        bool last = i + 1 == nslices;

        if (in_time && until <= slice.times.seconds) {
            piece.times.seconds += until;
            id = lower_compute(lowering, here, kind, &piece, &op);
            op = (struct new_op){.continues = true};
            on_neighbour(lowering, here, -1)->due = id;
            piece = (struct work_cost){.times.seconds = -until};
            in_time = false;
        }
        until -= slice.times.seconds;
        work_cost_add(&piece, &slice);
        if (!last && (bucket == buckets->count || buckets->items[bucket].slice > i))
            continue;
        op.frees = last ? frees : 0;
        id = lower_compute(lowering, here, kind, &piece, &op);
        op = (struct new_op){.continues = true};
        for (; bucket < buckets->count && buckets->items[bucket].slice <= i; bucket++) {
            double seconds = buckets->items[bucket].sum.legs[0].seconds;

            if (seconds > 0)
                op.continues = false;
            bucket_ready(lowering, here, &buckets->items[bucket],
                         seconds > 0 ? lower_pack(lowering, here->prank, here->stage, seconds, event_of(NO_OP)) : id);
        }
        piece = (struct work_cost){0};
    }
    return id;
}

uint32_t timed_backward(struct lowering *lowering, const struct place *here, struct new_op op)
{
    enum work_kind kind = here->work.kind;
    struct work_cost before = stage_cost(here, kind), after = {0};
    struct new_op last = {.continues = true};

    after.times.seconds = before.times.seconds - until_recompute(lowering, here);
    before.times.seconds -= after.times.seconds;
    last.frees = op.frees;
    op.frees = 0;
    on_neighbour(lowering, here, -1)->due = lower_compute(lowering, here, kind, &before, &op);
    return lower_compute(lowering, here, kind, &after, &last);
}

/* Kernels on every member, after its last exchange; its next exchange waits for them. */
static void pack_party(struct lowering *lowering, struct party *party, double seconds)
{
    for (int i = 0; i < party->members->here; i++)
        party->after[i] = event_of(lower_pack(lowering, party->members->ranks[i], party->members->stage, seconds,
                                              member_chunk(lowering, party, i)->synced));
}

/* The end of all that a rank has computed, and of its sends to other stages where ranks wait for their sends. */
static struct event flushed(struct lowering *lowering, int prank, int stage)
{
    const struct event *sent = lowering->ranks[prank].sent;
    struct waits all = {0};
    uint32_t id = lowering->ranks[prank].latest;
    bool sends = false;

    /* the rank's last operation waited for each send before it: only sends with higher ids may still be under way */
    for (int up = 0; up < 2; up++)
        sends |= sent[up].count && event_ids(&sent[up])[0] > id;
    if (!sends || lowering->scenario->parallelism.overlap_p2p)
        return event_of(id);
    wait_for(&all, event_of(id));
    wait_for(&all, sent[0]);
    wait_for(&all, sent[1]);
    return event_of(lower_after_all(lowering, (struct new_op){
        .kind = OP_COMPUTE, .what = WHAT_SYNC, .lane = collective_lane(lowering, GROUP_DATA, prank, 0, 0), .mb = -1,
        .stage = stage,
    }, &all));
}

/* The first exchange of a bucket's gradients, the `at`-th time that they are ready (counted over all buckets of the
 * stage). At the last time before an update, the recipe's sum `across` follows. */
static void first_leg(struct lowering *lowering, int stage, const struct bucket *bucket, size_t at, bool last)
{
    const struct scenario *scenario = lowering->scenario;
    const struct recipe *recipe = &scenario->recipe;
    struct party *party = party_of(lowering, scenario->groups.sums[bucket->class], stage);

    for (int i = 0; i < party->members->here; i++)
        party->after[i] = recipe->gradients.flush ? flushed(lowering, party->members->ranks[i], stage)
                                                  : event_of(member_chunk(lowering, party, i)->ready.items[at]);
    sum_leg(lowering, party, &bucket->sum.legs[0]);
    if (!recipe->gradients.across || !last)
        return;
    party = party_of(lowering, GROUP_SAME_SHARE, stage);
    for (int i = 0; i < party->members->here; i++)
        party->after[i] = member_chunk(lowering, party, i)->synced;
    sum(lowering, party, recipe->gradients.across,
        bucket->sum.legs[0].bytes / stage_recipe(&lowering->exchanges, stage)->divided[HELD_STATES][bucket->class]);
}

/* The `at`-th sums of all of a stage's buckets. The first exchange of every bucket comes first. Then follow, in the
 * buckets' order, the kernels and exchanges of compression, and the kernels after the last exchange. `last`: before an
 * update. */
static void sum_buckets(struct lowering *lowering, int stage, size_t at, bool last)
{
    const struct buckets *buckets = &lowering->exchanges.buckets[stage];
    struct party *party = party_of(lowering, GROUP_DATA, stage);
    bool hosted = scenario_offloads(lowering->scenario, OFFLOAD_OPTIMIZER);

    for (size_t b = 0; b < buckets->count; b++) {
        first_leg(lowering, stage, &buckets->items[b], at * buckets->count + b, last);
        for (int i = 0; i < party->members->here && hosted; i++) {
            struct chunk_state *chunk_state = member_chunk(lowering, party, i);

            *GROW(&chunk_state->sums) = chunk_state->synced;
        }
    }
    if (lowering->scenario->parallelism.compression.method == COMPRESSION_NONE)
        return;
    for (int leg = 1; leg < LEGS_MAX; leg++)
        for (size_t b = 0; b < buckets->count; b++) {
            if (buckets->items[b].sum.legs[leg].bytes == 0)
                continue;
            pack_party(lowering, party, buckets->items[b].sum.legs[leg].seconds);
            sum_leg(lowering, party, &buckets->items[b].sum.legs[leg]);
        }
    for (size_t b = 0; b < buckets->count; b++)
        pack_party(lowering, party, buckets->items[b].sum.seconds);
}

void lower_sum(struct lowering *lowering, int stage, int number)
{
    const struct party *party = party_of(lowering, GROUP_DATA, stage);
    struct waits computed = {0};

    for (int i = 0; i < party->members->here; i++)
        wait_for(&computed, event_of(lowering->rows.sums_late ? lowering->ranks[party->members->ranks[i]].latest
                                                         : member_chunk(lowering, party, i)->complete));
    lowering->sums.computed[stage] = event_taken(&lowering->arena, &computed);
    sum_buckets(lowering, stage, (size_t)number, (number + 1) % lowering->rows.sums == 0);
}

/* Sums the gradients of both copies after their sums over the replicas. Under ZeRO 1 it sums all gradients, too, not
 * shares of them (Megatron-LM, allreduce_embedding_grads; DeepSpeed). */
void lower_tie(struct lowering *lowering, int number)
{
    const struct scenario *scenario = lowering->scenario;
    int last = plan_virtual_stages(lowering->plan) - 1;
    double bytes = lowering->workload->stages[last].tied * scenario_parameter_bytes(scenario).tied /
                   stage_recipe(&lowering->exchanges, last)->divided[HELD_GRADIENTS][PARAMETERS_COMMON];
    struct party *party = party_tied(lowering, number);
    /* bytes of one GPU's part of a copy; between unequal tensor degrees the parts are cut into smaller pieces */
    int parts = rank_flows(&lowering->exchanges, plan_rank(lowering->plan, 0, last, 0, NULL));
    struct emission exchange = {
        collective_usual(COLLECTIVE_ALL_REDUCE, false), WHAT_SYNC,
        parts == party->members->flows ? bytes : bytes * parts / party->members->flows,
    };
    struct waits computed = {0};

    for (int i = 0; i < party->members->all; i++) {
        const struct chunk_state *chunk_state = member_chunk(lowering, party, i);

        party->after[i] = chunk_state->synced.count ? chunk_state->synced : event_of(chunk_state->complete);
        wait_for(&computed, event_of(chunk_state->complete));
    }
    exchange_all(lowering, party, exchange);
    for (int i = 0; i < party->members->all; i++) {
        struct chunk_state *chunk_state = member_chunk(lowering, party, i);
        int prank = party->members->ranks[i], rank = prank % lowering->plan->stages;
        int replica = prank / lowering->plan->stages;
        bool first = tied_sums_of(&lowering->exchanges, rank, replica).first == number;

        chunk_state->tied = first ? party->done[i] : event_both(&lowering->arena, chunk_state->tied, party->done[i]);
    }
    lowering->sums.tied_computed[number] = event_taken(&lowering->arena, &computed);
}
