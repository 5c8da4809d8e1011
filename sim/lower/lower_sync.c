/* Data parallelism: the sum of the gradients over the replicas, the update, and the weights handed out after it. */
#include "lower/lower_internal.h"

#include <stdlib.h>

static int exchange_leg(struct sync *sync, const struct leg *leg)
{
    if (leg->plain > 0 &&
        exchange(sync, scenario_all_reduce(sync->lowering->scenario), WHAT_SYNC, leg->plain, slot_synced))
        return -1;
    return leg->bytes > 0 ? exchange(sync, leg->collective, WHAT_SYNC, leg->bytes, slot_synced) : 0;
}

/* Kernels on every holder, after what it exchanged last; it then takes part in the next exchange. */
static void pack_holders(struct sync *sync, double seconds)
{
    struct lowering *lowering = sync->lowering;

    for (int i = 0; i < sync->here; i++)
        sync->after[i] =
            event_of(lower_pack(lowering, sync->ranks[i], sync->stage, seconds, sync_holder(sync, i)->synced));
}

/* Without buckets the sums begin when a rank has computed all that comes before its update, not when each of its chunks
 * is complete (Megatron-LM sums gradients after the pipeline's flush). ZeRO 2 scatters those of every micro-batch. */
static bool after_flush(const struct lowering *lowering)
{
    return lowering->scenario->recipe.gradients.flush;
}

/* The first exchange of a bucket's gradients, between all replicas; or between those that share one copy of the states
 * and, once an iteration, of every share between those that hold it (Zhang et al., MiCS, VLDB 2022: 2-hop gradient
 * synchronization). */
static int first_leg(struct lowering *lowering, int stage, const struct bucket *bucket, size_t at, bool last)
{
    const struct scenario *scenario = lowering->scenario;
    const struct collective *across = scenario->recipe.gradients.across;
    struct sync sync;
    int rc;

    sync_init(&sync, lowering, scenario->groups.sums[bucket->class], stage);
    for (int i = 0; i < sync.here; i++)
        sync.after[i] = event_of(after_flush(lowering) ? lowering->latest[sync.ranks[i]]
                                                       : sync_holder(&sync, i)->ready.items[at]);
    rc = exchange_leg(&sync, &bucket->sum.legs[0]);
    sync_release(&sync);
    if (rc || !across || !last)
        return rc;
    sync_init(&sync, lowering, GROUP_SAME_SHARE, stage);
    for (int i = 0; i < sync.here; i++)
        sync.after[i] = sync_holder(&sync, i)->synced;
    rc = exchange(&sync, across, WHAT_SYNC,
                  bucket->sum.legs[0].bytes / scenario->recipe.divided[HELD_STATES][bucket->class], slot_synced);
    sync_release(&sync);
    return rc;
}

/* For the host's update: the ends of a bucket's sum on all holders. */
static void note_sum(struct lowering *lowering, int stage)
{
    struct sync sync;

    if (!scenario_offloads(lowering->scenario, OFFLOAD_OPTIMIZER))
        return;
    sync_init(&sync, lowering, GROUP_DATA, stage);
    for (int i = 0; i < sync.here; i++)
        *GROW(&sync_holder(&sync, i)->sums) = sync_holder(&sync, i)->synced;
    sync_release(&sync);
}

/* The sums of all buckets' gradients, the `sum`-th of the stage: the first exchange of each, then what compression does
 * between exchanges and after the last, in the buckets' order. */
static int sum_buckets(struct lowering *lowering, int stage, size_t sum, bool last)
{
    const struct buckets *buckets = &lowering->buckets[stage];
    struct sync sync;
    int rc = 0;

    for (size_t b = 0; !rc && b < buckets->count; b++) {
        rc = first_leg(lowering, stage, &buckets->items[b], sum * buckets->count + b, last);
        note_sum(lowering, stage);
    }
    if (lowering->scenario->strategy.compression.method == COMPRESSION_NONE)
        return rc;
    sync_init(&sync, lowering, GROUP_DATA, stage);
    for (int leg = 1; leg < LEGS_MAX; leg++)
        for (size_t b = 0; !rc && b < buckets->count; b++) {
            if (buckets->items[b].sum.legs[leg].bytes == 0)
                continue;
            pack_holders(&sync, buckets->items[b].sum.legs[leg].seconds);
            rc = exchange_leg(&sync, &buckets->items[b].sum.legs[leg]);
        }
    for (size_t b = 0; !rc && b < buckets->count; b++)
        pack_holders(&sync, buckets->items[b].sum.seconds);
    sync_release(&sync);
    return rc;
}

/* How many sums of gradients belong to so many updates: one each, or under ZeRO 2 one a micro-batch. */
static int sums(const struct lowering *lowering, int updates)
{
    return updates * (lowering->scenario->recipe.gradients.every ? lowering->plan->micro_batches : 1);
}

static bool at_update(const struct lowering *lowering, int program_rank)
{
    const struct row *row = &lowering->rows[program_rank % lowering->plan->stages];

    return row->items[lowering->cursor[program_rank]].kind == UPDATE;
}

/* The next sums of a stage's gradients, up to `count` in all, once all its holders have lowered theirs; all before
 * their updates, where a sum waits for that, and with compression, whose kernels follow them on the ranks' lanes. */
static bool sync_stage(struct lowering *lowering, int stage, int count)
{
    bool late = after_flush(lowering) || lowering->scenario->strategy.compression.method != COMPRESSION_NONE;
    struct waits computed = {0};
    bool complete = true;
    struct sync sync;

    if (lowering->syncs[stage] >= count)
        return !lowering->failed;
    sync_init(&sync, lowering, GROUP_DATA, stage);
    for (int i = 0; i < sync.here; i++)
        complete &= sync_holder(&sync, i)->completed >= count && (!late || at_update(lowering, sync.ranks[i]));
    for (int i = 0; complete && i < sync.here; i++)
        wait_for(&computed, event_of(late ? lowering->latest[sync.ranks[i]] : sync_holder(&sync, i)->complete));
    if (complete)
        lowering->summed[stage] = event_all(&lowering->arena, computed.items, computed.count);
    free(computed.items);
    sync_release(&sync);
    for (; complete && !lowering->failed && lowering->syncs[stage] < count; lowering->syncs[stage]++)
        lowering->failed = sum_buckets(lowering, stage, (size_t)lowering->syncs[stage],
                                       (lowering->syncs[stage] + 1) % sums(lowering, 1) == 0) != 0;
    return complete && !lowering->failed;
}

/* The sums of every micro-batch, as the row completes them (ZeRO 2, which has one iteration alone). */
static bool sync_row(struct lowering *lowering, int rank)
{
    const struct row *row = &lowering->rows[rank];
    int *done = xcalloc((size_t)lowering->plan->chunks, sizeof *done);
    bool synced = true;

    for (size_t i = 0; i < row->count && synced; i++) {
        int chunk = row->items[i].chunk, stage = plan_global_stage(lowering->plan, rank, chunk);

        if (lowering->completes[rank][i] && lowering->buckets[stage].count)
            synced = sync_stage(lowering, stage, ++done[chunk]);
    }
    free(done);
    return synced;
}

/* The sums that a rank's update waits for, `count` of each stage in all, in the order in which their gradients are
 * complete: those of later stages first. */
static bool sync_rank(struct lowering *lowering, int rank, int count)
{
    if (lowering->scenario->recipe.gradients.every)
        return sync_row(lowering, rank);
    for (int stage = plan_global_stages(lowering->plan) - 1; stage >= 0; stage--)
        for (int chunk = 0; chunk < plan_chunks(lowering->plan, rank); chunk++)
            if (plan_global_stage(lowering->plan, rank, chunk) == stage && lowering->buckets[stage].count &&
                !sync_stage(lowering, stage, count))
                return false;
    return true;
}

/* Of each flow the ends on both ranks: the ends of all flows on each. */
static void tied_ends(struct lowering *lowering, const int *ranks, const int *chunks, const uint32_t *done)
{
    int flows = lowering->program->flows;

    for (int i = 0; i < 2; i++) {
        struct waits ends = {0};

        for (int t = 0; t < flows; t++)
            wait_for(&ends, event_of(done[2 * t + i]));
        holder_of(lowering, ranks[i], chunks[i])->tied = event_all(&lowering->arena, ends.items, ends.count);
        free(ends.items);
    }
}

/* A tied model's embedding and output layer stand on different ranks: each replica sums the gradients of the two copies
 * after its sum over the replicas; whole, under ZeRO 1 too (Megatron-LM, allreduce_embedding_grads; DeepSpeed). */
static bool tie(struct lowering *lowering, int replica, int count)
{
    const struct scenario *scenario = lowering->scenario;
    int last = plan_global_stages(lowering->plan) - 1, flows = lowering->program->flows, chunk[2];
    int rank[2] = {plan_rank(lowering->plan, 0, 0, 0, &chunk[0]), plan_rank(lowering->plan, 0, last, 0, &chunk[1])};
    int ranks[2] = {program_rank(lowering, replica, rank[0]), program_rank(lowering, replica, rank[1])};
    double bytes = lowering->stages[last].tied * scenario_parameter_bytes(scenario).sent /
                   scenario->recipe.divided[HELD_GRADIENTS][PARAMETERS_COMMON];

    if (lowering->ties[replica] >= count)
        return true;
    for (int i = 0; i < 2; i++)
        if (holder_of(lowering, ranks[i], chunk[i])->completed < count || !sync_rank(lowering, rank[i], count))
            return false;
    uint32_t computed[2], *done = lowering->flow_ids;
    for (int i = 0; i < 2; i++)
        computed[i] = holder_of(lowering, ranks[i], chunk[i])->complete;
    for (int t = 0; t < flows; t++) {
        uint32_t lanes[2], ready[2];
        int gpus[2];

        for (int i = 0; i < 2; i++) {
            struct holder *holder = holder_of(lowering, ranks[i], chunk[i]);

            gpus[i] = scenario_gpu(scenario, t, replica, rank[i]);
            lanes[i] = program_lane(lowering->program, ranks[i], LANE_COLLECTIVE,
                                    flows * (lowering->channels * lowering->streams + lowering->ties[replica]) + t);
            ready[i] = holder->synced.count ? event_flow(&holder->synced, t) : holder->complete;
        }
        collective_lower(collective_find(COLLECTIVE_ALL_REDUCE, "ring"), &scenario->cluster,
                         &(struct group){.n = 2, .ranks = ranks, .gpus = gpus}, bytes, 1, lanes, ready,
                         (struct op){.kind = OP_COMPUTE, .what = WHAT_SYNC, .mb = -1, .stage = -1}, lowering->program,
                         done + 2 * t);
    }
    lowering->untied[replica] = event_all(&lowering->arena, computed, 2);
    tied_ends(lowering, ranks, chunk, done);
    lowering->ties[replica] = count;
    return true;
}

/* Two directions hold both copies on either rank, and sum them there. Asynchronous schedules do not: waiting for the
 * other end of the pipeline at every update would be a flush. */
static bool tied_rank(const struct lowering *lowering, int rank)
{
    int last = plan_global_stages(lowering->plan) - 1;

    return lowering->stages[last].tied > 0 && plan_directions(lowering->plan) == 1 &&
           !scenario_strategy(lowering->scenario)->asynchronous &&
           (plan_rank(lowering->plan, 0, 0, 0, NULL) == rank || plan_rank(lowering->plan, 0, last, 0, NULL) == rank);
}

bool lower_update(struct lowering *lowering, int replica, int rank)
{
    int prank = program_rank(lowering, replica, rank), *updates = &lowering->updates[prank];
    const struct recipe *recipe = &lowering->scenario->recipe;
    bool handed_out = recipe->weights.when == WEIGHTS_UPDATED;
    bool always = scenario_strategy(lowering->scenario)->asynchronous || handed_out;
    bool updates_here = replica == 0 || !recipe->rooted;
    bool hosted = scenario_offloads(lowering->scenario, OFFLOAD_OPTIMIZER);
    struct waits waits = {0};
    uint32_t id = NO_OP;
    double seconds = 0;

    if (!sync_rank(lowering, rank, sums(lowering, *updates + 1)))
        return false;
    if (tied_rank(lowering, rank) && updates_here && !tie(lowering, replica, sums(lowering, *updates + 1)))
        return false;
    for (int chunk = 0; chunk < plan_chunks(lowering->plan, rank); chunk++) {
        const struct holder *holder = holder_of(lowering, prank, chunk);
        int stage = plan_global_stage(lowering->plan, rank, chunk);

        uint32_t there = updates_here && hosted ? host_update(lowering, prank, chunk) : NO_OP;

        if (updates_here && !hosted)
            seconds += lowering->stages[stage].update;
        wait_for(&waits, event_of(there));
        wait_for(&waits, holder->synced);
        wait_for(&waits, holder->tied);
        /* implied by the sums; with them metrics can tell a wait for others' kernels from a wait for the network */
        wait_for(&waits, lowering->summed[stage]);
    }
    if (tied_rank(lowering, rank))
        wait_for(&waits, lowering->untied[replica]);
    lowering->beside[prank] = (struct contention){0};    /* the sums have ended */
    if (waits.count > 0 || seconds > 0 || always)
        id = program_add(lowering->program, (struct op){
            .kind = OP_COMPUTE, .what = WHAT_UPDATE, .lane = lowering->compute_lane[prank], .amount = seconds,
            .mb = -1, .stage = plan_global_stage(lowering->plan, rank, 0),
        }, waits.items, waits.count);
    free(waits.items);
    for (int chunk = 0; chunk < plan_chunks(lowering->plan, rank); chunk++)
        holder_of(lowering, prank, chunk)->updated = id;
    if (!handed_out)
        host_store_weights(lowering, prank, id != NO_OP ? id : lowering->latest[prank]);
    ++*updates;
    return true;
}

bool lower_meeting(struct lowering *lowering, int rank)
{
    const struct plan *plan = lowering->plan;
    int stage = plan_global_stage(plan, rank, 0), sharers = plan_sharers(plan, stage);
    int first = plan_rank(plan, 0, stage, 0, NULL), count = lowering->updates[rank] + 1;

    if (sharers > 1 && lowering->stages[stage].parameters > 0 && lowering->syncs[stage] < count) {
        for (int i = 0; i < sharers; i++)
            if (holder_of(lowering, first + i, 0)->completed < count)
                return false;
        struct waits computed = {0};
        for (int i = 0; i < sharers; i++)
            wait_for(&computed, event_of(holder_of(lowering, first + i, 0)->complete));
        lowering->summed[stage] = event_all(&lowering->arena, computed.items, computed.count);
        free(computed.items);
        lowering->syncs[stage] = count;
    }
    lowering->updates[rank] = count;
    return true;
}

/* Hands out a stage's updated weights, once all its holders have lowered their updates. */
static bool gather_stage(struct lowering *lowering, int stage, int count)
{
    const struct scenario *scenario = lowering->scenario;
    const struct stage *costs = &lowering->stages[stage];
    double each = scenario_parameter_bytes(scenario).weights;
    bool complete = true;

    if (lowering->gathers[stage] >= count)
        return true;
    for (enum parameter_class class = 0; class < PARAMETER_CLASS_COUNT && complete && !lowering->failed; class++) {
        double parameters = costs->trained.of[class];
        struct sync sync;

        sync_init(&sync, lowering, scenario->groups.sums[class], stage);
        for (int i = 0; i < sync.here; i++) {
            complete &= lowering->updates[sync.ranks[i]] >= count;
            sync.after[i] = event_of(sync_holder(&sync, i)->updated);
        }
        if (complete && parameters > 0)
            lowering->failed = exchange(&sync, scenario->recipe.weights.collective, WHAT_WEIGHTS, parameters * each,
                                        slot_published) != 0;
        sync_release(&sync);
    }
    lowering->gathers[stage] = complete ? count : lowering->gathers[stage];
    return complete && !lowering->failed;
}

/* Whether others hold the stage too, and there is something to hold. */
static bool shared(const struct lowering *lowering, int stage)
{
    return scenario_replicas(lowering->scenario) * plan_holders(lowering->plan, stage) > 1 &&
           lowering->stages[stage].parameters > 0;
}

bool lower_gather(struct lowering *lowering, int replica, int rank)
{
    int prank = program_rank(lowering, replica, rank);
    double seconds = 0;
    uint32_t id = holder_of(lowering, prank, 0)->updated;
    struct waits waits = {0};
    bool gathered = true;

    for (int chunk = 0; chunk < plan_chunks(lowering->plan, rank) && gathered; chunk++) {
        int stage = plan_global_stage(lowering->plan, rank, chunk);

        if (!shared(lowering, stage))
            continue;
        gathered = gather_stage(lowering, stage, lowering->updates[prank]);
        wait_for(&waits, holder_of(lowering, prank, chunk)->published);
        if (lowering->scenario->strategy.local_steps > 1)
            seconds += lowering->stages[stage].averaging;
    }
    /* the update is over when the rank has all weights again */
    if (gathered && waits.count > 0)
        id = program_add(lowering->program, (struct op){
            .kind = OP_COMPUTE, .what = WHAT_UPDATE, .lane = lowering->compute_lane[prank], .amount = seconds,
            .continues = true, .mb = -1, .stage = plan_global_stage(lowering->plan, rank, 0),
        }, waits.items, waits.count);
    if (gathered)
        host_store_weights(lowering, prank, id);
    free(waits.items);
    return gathered;
}
