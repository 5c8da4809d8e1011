/* The works of a row: their operations, what these wait for, and the events that others wait for.
 *
 * Reads an entry of a row and those that overlap with it, and the table of works (work_rules).
 * Adds their operations, and for later works what these leave and send. */
#include "lower/exchange_internal.h"

#include <stdlib.h>

#include "base/base.h"
#include "engine/program.h"
#include "hardware/contention.h"
#include "schedule/schedule.h"

/* Adds the operations of other lanes that a work waits for. Replicas of a lockstep group begin each work together: it
 * also waits for the other replicas' inputs. */
static void dependencies(struct lowering *lowering, const struct place *here, struct work work)
{
    const struct micro_batch_state *state = here->state;
    enum result after = work_rules[work.kind].after;
    enum arrival arrival = work_arrival(lowering, here, work.kind);
    struct waits *waits = &lowering->waits, *awaited = &here->chunk_state->awaited;
    bool recomputes = work.kind == RECOMPUTE;
    bool in_time = recomputes && lowering->rules.recompute == RECOMPUTE_JUST_IN_TIME;
    int n = lowering->exchanges.lockstep, first = here->replica / n * n;
    int slices = plan_slices(lowering->plan), other = work.mb % slices + work_rules[work.kind].slice;

    if (other != work.mb % slices && other >= 0 && other < slices) {
        uint32_t done = state[work_rules[work.kind].slice].done[work_rules[work.kind].leaves];

        BUG_IF(done == NO_OP);
        wait_for(waits, event_of(done));
    }
    if (after == RECOMPUTED && !state->recomputes)
        after = FORWARDED;
    BUG_IF(after != NO_RESULT && state->done[after] == NO_OP);
    if (after != NO_RESULT)
        wait_for(waits, event_of(state->done[after]));
    while (awaited->count > 0)
        wait_for(waits, event_of(awaited->items[--awaited->count]));
    if (arrival == NO_ARRIVAL || (recomputes && lowering->rules.opportunistic))
        return;
    wait_for(waits, in_time ? event_of(state->due) : state->arrived[arrival]);
    for (int replica = first; n > 1 && !recomputes && replica < first + n; replica++)
        if (replica != here->replica)
            wait_for(waits, lowering_state(lowering, replica, here->direction, here->stage, work.mb)->arrived[arrival]);
}

/* Varuna at run time (varuna/pipeline.py, run): a rank that comes to a recomputation whose gradient has not arrived
 * does its next forward, and waits for this forward's input. After its last forward, it recomputes without the
 * gradient. */
static uint32_t opportunistic_work(struct lowering *lowering, const struct place *here, struct work work,
                                   struct new_op op)
{
    struct event gradient = here->state->arrived[GRADIENTS];
    struct work_cost cost = stage_cost(here, work.kind);
    uint32_t id, most = (uint32_t)lowering->rules.opportunistic + (uint32_t)work.mb;

    op.advances = work.kind == FORWARD;
    id = lower_compute(lowering, here, work, &cost, &op);
    if (work.kind == RECOMPUTE && gradient.count)     /* transfers of one boundary: their ids follow one another */
        program_choose(lowering->program, (struct choice){id, event_ids(&gradient)[0], gradient.count, most});
    return id;
}

/* Whether the work becomes one operation that differs from others of its kind and chunk in its micro-batch alone. */
static bool is_usual(const struct lowering *lowering, const struct place *here, struct work work, bool cut)
{
    return !cut && plan_slices(lowering->plan) == 1 && !here->held->plan && !zero_by_layers(lowering, here->chunk_state) &&
           !lowering->rules.replicates && !lowering->rules.opportunistic && lowering->places.count == 1 &&
           !(work.kind == FORWARD && here->chunk_state->coming) && lowering->ranks[here->prank].overlapped.collective == 0;
}

/* Such a work, like the one before. */
static uint32_t repeat_work(struct lowering *lowering, const struct place *here, struct work work, uint32_t like)
{
    struct waits *waits = &lowering->waits;
    uint32_t id = program_repeat(lowering->program, like, work.mb, waits->items, waits->count);

    exchanges_count(lowering, here, &here->held->work[work.kind]);
    waits->count = 0;
    return lowering->ranks[here->prank].latest = id;
}

/* Of these bytes so many: `what` of a work's rule. */
static double memory_of(int what, double kept, double working)
{
    return (what & MEMORY_KEPT ? kept : 0) + (what & MEMORY_WORKING ? working : 0);
}

static void set_memory(const struct place *here, struct work work, struct new_op *op)
{
    const struct work_rule *rule = &work_rules[work.kind];
    const struct stage *held = here->held;
    bool again = here->state->recomputes, split = here->state->split;
    double kept = again ? held->checkpoint : held->activation;
    double working = !again ? 0 : split ? held->working_split : held->working;
    const struct stage_workspace *workspace = !again ? &held->plain : split ? &held->ahead : &held->recompute;

    op->workspace = rule->backward ? workspace->backward : workspace->forward;
    op->takes = memory_of(rule->takes, kept, working);
    op->frees = memory_of(rule->frees, kept, working);
}

static uint32_t lower_work(struct lowering *lowering, const struct place *here, struct work work, bool completes)
{
    const struct stage_plan *plan = here->held->plan;
    bool in_buckets = completes && lowering->exchanges.buckets[here->stage].count;
    bool in_time = work.kind == BACKWARD && here->stage > 0 && !lowering->rules.opportunistic &&
                   lowering->rules.recompute == RECOMPUTE_JUST_IN_TIME;
    bool usual = is_usual(lowering, here, work, in_buckets || in_time);
    struct usual_work *before = &here->chunk_state->usual[work.kind];
    struct usual_work own = {.recomputes = here->state->recomputes, .split = here->state->split};
    struct work_cost cost;
    struct new_op op;

    own.gathers = boundary_gathers(lowering, here, work);
    here->chunk_state->gathered += own.gathers * here->chunk_state->exchanges[EXCHANGE_GATHER].bytes_sent;
    if (usual && before->there && before->recomputes == own.recomputes && before->split == own.split &&
        before->gathers == own.gathers)
        return repeat_work(lowering, here, work, before->id);
    op = received(here, own.gathers);
    set_memory(here, work, &op);
    if (work.kind == FORWARD && here->chunk_state->coming) {
        if (!plan && !lowering->rules.opportunistic)
            return first_forward(lowering, here, work, op);
        wait_for_weights(lowering, here);
    }
    if (plan || zero_by_layers(lowering, here->chunk_state))
        return layers_work(lowering, *here, work, completes, op);
    if (lowering->rules.replicates) {
        cost = replicated_work(*here, work);
        replicated_memory(lowering, *here, work, &op);
        return lower_compute(lowering, here, work, &cost, &op);
    }
    if (in_buckets)
        return sliced_backward(lowering, here, work, in_time, op);
    if (in_time)
        return timed_backward(lowering, here, work, op);
    if (lowering->rules.opportunistic)
        return opportunistic_work(lowering, here, work, op);
    cost = stage_cost(here, work.kind);
    own.id = lower_compute(lowering, here, work, &cost, &op);
    own.there = usual;
    *before = own;
    return own.id;
}

/* Notes the work's result, which is there after operation `id`, and sends it to the next or previous stage. */
static void finish(struct lowering *lowering, const struct place *here, struct work work, uint32_t id)
{
    const struct work_rule *rule = &work_rules[work.kind];
    struct micro_batch_state *there;
    int to;

    if (rule->leaves != NO_RESULT)
        here->state->done[rule->leaves] = id;
    if (!work_sends(here, work.kind, &to))
        return;
    there = on_neighbour(lowering, here, to - here->stage);
    lower_send(lowering, here, rule->sends == ACTIVATIONS, work.mb, id);
    if (rule->sends == GRADIENTS && there->due == NO_OP)
        there->due = id;
}

/* The share of all-to-alls that kernels hide where a forward and a backward go together as in Megatron Core
 * (models/common/model_chunk_schedule_plan.py, TransformerLayerSchedulePlan.run), block by block in four phases: the
 * backward's all-to-all back from the experts beside the forward up to the router, the forward's to the experts beside
 * the experts' backward, the backward's beside the experts' forward, the forward's back beside the rest of the
 * backward. */
static double hidden_in_phases(const struct places *places)
{
    double exposed = 0, all = 0;

    for (size_t i = 0; i < 2; i++) {
        const struct place *here = &places->items[i], *other = &places->items[1 - i];
        const struct exchange_cost *dispatch = &here->chunk_state->exchanges[EXCHANGE_DISPATCH];
        const struct dispatching_times *kernels = &other->times->work[other->work.kind].dispatching;
        double half = here->held->work[here->work.kind].exchanges[EXCHANGE_DISPATCH] * dispatch->seconds / 2;

        all += 2 * half;
        exposed += contention_exposed(half, kernels->before, dispatch->share) +
                   contention_exposed(half, kernels->others, dispatch->share);
    }
    return all > 0 ? 1 - exposed / all : 0;
}

/* The share of overlapped works' all-to-alls that each other's kernels hide (DeepSeek-AI 2024, DeepSeek-V3, section
 * 3.2.1), or of a work's own that its shared experts hide. Exposed are the seconds beyond all these kernels, or the seconds
 * that kernels lose (contention_exposed). */
static double hidden_share(const struct lowering *lowering)
{
    const struct places *places = &lowering->places;
    int overlap = lowering->scenario->parallelism.overlap_dispatch;
    bool other = places->items[0].work.kind != places->items[places->count - 1].work.kind;
    double kernels = 0, dispatches = 0, share = 0;

    if (other && overlap == OVERLAP_DISPATCH_MICRO_BATCHES)
        return hidden_in_phases(places);
    if (!other && overlap != OVERLAP_DISPATCH_SHARED)
        return 0;            /* one work, or a pass of two, which has no other's kernels beside it */
    for (size_t i = 0; i < places->count; i++) {
        const struct place *here = &places->items[i];
        const struct exchange_cost *dispatch = &here->chunk_state->exchanges[EXCHANGE_DISPATCH];
        enum work_kind kind = here->work.kind;

        kernels += other ? here->times->work[kind].seconds : here->times->work[kind].dispatching.shared;
        dispatches += here->held->work[kind].exchanges[EXCHANGE_DISPATCH] * dispatch->seconds;
        share = dispatch->share;
    }
    return dispatches > 0 ? 1 - contention_exposed(dispatches, kernels, share) / dispatches : 0;
}

void lower_meeting(struct lowering *lowering, int first, int n, int rank, size_t entry)
{
    struct rank_state *ranks = &lowering->ranks[program_rank(lowering, first, rank)];
    int each = lowering->plan->stages;       /* ranks from one replica to the next */
    struct waits all = {0};
    uint32_t id;

    for (int r = 0; r < n; r++)
        wait_for(&all, event_of(ranks[r * each].latest));
    id = program_add(lowering->program, (struct new_op){
        .kind = OP_COMPUTE, .what = WHAT_SYNC, .lane = ranks[0].compute_lane,
        .mb = row_entry(lowering, rank, entry).mb, .stage = -1,
    }, all.items, all.count);
    free(all.items);
    for (int r = 0; r < n; r++)
        ranks[r * each].latest = ranks[r * each].met = id;
}

/* Marks the works from operation `first` on: each runs together with the next work of its lane. */
static void mark_overlapped(struct program *program, size_t first)
{
    for (size_t i = first; i < program->ops.count; i++)
        if (program->lanes.items[program->ops.items[i].lane].kind == LANE_COMPUTE)
            program->ops.items[i].overlapped = true;
}

/* The places of an entry and of those that overlap with it; the next operation waits for all that they wait for. */
static void find_places(struct lowering *lowering, int replica, int rank, size_t entry)
{
    struct places *places = &lowering->places;

    places->count = 0;
    for (struct work work = {.with_next = true}; work.with_next;) {
        struct place *here = GROW(places);

        work = row_entry(lowering, rank, entry + places->count - 1);
        *here = lowering_place(lowering, replica, rank, work);
        dependencies(lowering, here, work);
    }
}

/* Overlapped entries begin when all of them can, and their results are there when all of them have ended. */
void lower_works(struct lowering *lowering, int replica, int rank, size_t entry)
{
    int prank = program_rank(lowering, replica, rank);
    const struct event *sent = lowering->ranks[prank].sent;
    struct places *places = &lowering->places;
    uint32_t id = NO_OP;
    double hidden;

    wait_for(&lowering->waits, event_of(lowering->ranks[prank].met));
    lowering->ranks[prank].met = NO_OP;
    for (int up = 0; up < 2 && !lowering->scenario->parallelism.overlap_p2p; up++)
        wait_for(&lowering->waits, sent[up]);
    find_places(lowering, replica, rank, entry);
    if (!lowering->rules.whole && entry > 0 && row_entry(lowering, rank, entry - 1).kind == UPDATE)
        wait_for(&lowering->waits, lowering->sums.summed[plan_virtual_stage(lowering->plan, rank, 0)]);
    for (size_t i = 0; i < places->count; i++)
        lower_arrival(lowering, &places->items[i], places->items[i].work);
    hidden = hidden_share(lowering);
    for (size_t i = 0; i < places->count; i++) {
        struct place *here = &places->items[i];
        bool completes = lowering->completes[rank][entry + i];
        size_t before = lowering->program->ops.count;

        here->hidden = hidden;
        id = lower_work(lowering, here, here->work, completes);
        if (i + 1 < places->count)
            mark_overlapped(lowering->program, before);
        if (completes)
            here->chunk_state->complete = id;
    }
    for (size_t i = 0; i < places->count; i++)
        finish(lowering, &places->items[i], places->items[i].work, id);
}
