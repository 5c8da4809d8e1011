/* Data parallelism: the sum of the gradients over the replicas, the update, and the weights handed out after it. */
#include "lower_internal.h"

#include <stdlib.h>

/* How many hold the stage: all of it but its experts, or the same experts. */
static int count_holders(const struct lowering *lowering, int stage, bool experts)
{
    const struct scenario *scenario = lowering->scenario;

    return scenario_replicas(scenario) * plan_holders(lowering->plan, stage) /
           (experts ? scenario->strategy.expert : 1);
}

/* PyTorch DDP (Li et al. 2020, section 3.2.3 and 4.2): scanning the tensors in the order in which their gradients
 * become ready, a bucket is closed when it has reached its limit: 1 MiB the first, 25 MiB the others. Gradients of
 * experts, which fewer replicas sum, fill buckets of their own (Megatron-LM). */
static void stage_buckets(const struct lowering *lowering, int index, struct buckets *buckets)
{
    const struct stage *stage = &lowering->stages[index];
    const struct strategy_spec *spec = &lowering->scenario->strategy;
    double each = scenario_parameter_bytes(lowering->scenario).gradients, bytes[2] = {0};
    bool ddp = spec->data_parallel == DATA_PARALLEL_DDP;

    for (size_t i = 0; i < stage->nslices; i++) {
        const struct slice *slice = &stage->slices[i];

        for (size_t k = slice->ntensors; k-- > 0;) {
            bool experts = spec->expert > 1 && k + slice->nexperts >= slice->ntensors;
            double *open = &bytes[experts];

            *open += count_holders(lowering, index, experts) > 1 ? slice->tensors[k] * each : 0;
            if (!ddp || *open == 0 || *open < (buckets->count ? spec->bucket : spec->first_bucket))
                continue;
            *GROW(buckets) = (struct bucket){.bytes = *open, .slice = i, .experts = experts};
            *open = 0;
        }
    }
    for (int experts = 0; experts < 2; experts++)
        if (bytes[experts] > 0)
            *GROW(buckets) = (struct bucket){.bytes = bytes[experts], .slice = stage->nslices - 1, .experts = experts};
}

void buckets_build(struct lowering *lowering)
{
    const struct scenario *scenario = lowering->scenario;
    bool any = false;

    for (int s = 0; s < plan_global_stages(lowering->plan) && scenario->strategy.zero < 3; s++) {
        stage_buckets(lowering, s, &lowering->buckets[s]);
        any |= lowering->buckets[s].count > 0;
    }
    if (any || (scenario->strategy.zero == 3 && scenario_replicas(scenario) > 1))
        make_collective_lanes(lowering);
}

/* The sum of one bucket's gradients, the `at`-th that its holders are ready for. */
static void sync_bucket(struct lowering *lowering, int stage, const struct bucket *bucket, size_t at)
{
    struct sync sync;

    sync_init(&sync, lowering, stage, bucket->experts);
    for (int i = 0; i < sync.here; i++)
        sync.ready[i] = sync_holder(&sync, i)->ready.items[at];
    lowering->failed = exchange(&sync, scenario_sync(lowering->scenario), bucket->bytes, slot_synced) != 0;
    sync_release(&sync);
}

/* The next sums of a stage's gradients, up to `count` in all, once all its holders have lowered theirs. */
static bool sync_stage(struct lowering *lowering, int stage, int count)
{
    const struct buckets *buckets = &lowering->buckets[stage];
    struct sync sync;
    bool complete = true;

    if (lowering->syncs[stage] >= count)
        return !lowering->failed;
    sync_init(&sync, lowering, stage, false);
    for (int i = 0; i < sync.here; i++)
        complete &= sync_holder(&sync, i)->completed >= count;
    if (complete) {
        if (!lowering->summed[stage])
            lowering->summed[stage] = ARENA_ARRAY(&lowering->arena, uint32_t, sync.here);
        for (int i = 0; i < sync.here; i++)
            lowering->summed[stage][i] = sync_holder(&sync, i)->complete;
    }
    for (; complete && lowering->syncs[stage] < count; lowering->syncs[stage]++)
        for (size_t b = 0; !lowering->failed && b < buckets->count; b++)
            sync_bucket(lowering, stage, &buckets->items[b], (size_t)lowering->syncs[stage] * buckets->count + b);
    sync_release(&sync);
    return complete && !lowering->failed;
}

/* A tied model's embedding and output layer stand on different ranks: each replica sums the gradients of the two copies
 * (Megatron-LM, allreduce_word_embedding_grads), after its sum over the replicas. */
static bool tie(struct lowering *lowering, int replica, int count)
{
    const struct scenario *scenario = lowering->scenario;
    int last = plan_global_stages(lowering->plan) - 1, flows = lowering->program->flows, chunk[2];
    int rank[2] = {plan_rank(lowering->plan, 0, 0, 0, &chunk[0]), plan_rank(lowering->plan, 0, last, 0, &chunk[1])};
    int ranks[2] = {program_rank(lowering, replica, rank[0]), program_rank(lowering, replica, rank[1])};
    double bytes = lowering->stages[last].tied * scenario_parameter_bytes(scenario).gradients /
                   (scenario->strategy.zero ? scenario_replicas(scenario) : 1);

    if (lowering->ties[replica] >= count)
        return true;
    for (int i = 0; i < 2; i++) {
        int stage = i ? last : 0;

        if (holder_of(lowering, ranks[i], chunk[i])->completed < count ||
            (lowering->buckets[stage].count && !sync_stage(lowering, stage, count)))
            return false;
    }
    for (int t = 0; t < flows; t++) {
        uint32_t lanes[2], ready[2], done[2];
        int gpus[2];

        for (int i = 0; i < 2; i++) {
            struct holder *holder = holder_of(lowering, ranks[i], chunk[i]);

            gpus[i] = scenario_gpu(scenario, t, replica, rank[i]);
            lanes[i] = program_lane(lowering->program, ranks[i], LANE_COLLECTIVE,
                                    flows * lowering->channels + lowering->ties[replica] * flows + t);
            ready[i] = holder->synced[t] != NO_OP ? holder->synced[t] : holder->complete;
            lowering->untied[replica][i] = holder->complete;
        }
        collective_lower(collective_find(COLLECTIVE_ALL_REDUCE, "ring"), &scenario->cluster,
                         &(struct group){.n = 2, .ranks = ranks, .gpus = gpus}, bytes, 1, lanes, ready,
                         (struct op){.kind = OP_COMPUTE, .what = WHAT_SYNC, .mb = -1, .stage = -1}, lowering->program,
                         done);
        for (int i = 0; i < 2; i++)
            holder_of(lowering, ranks[i], chunk[i])->tied[t] = done[i];
    }
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

/* How many sums of gradients belong to so many updates: one each, or under ZeRO 2 one a micro-batch. */
static int sums(const struct lowering *lowering, int updates)
{
    return updates * (lowering->scenario->strategy.zero == 2 ? lowering->plan->micro_batches : 1);
}

bool lower_update(struct lowering *lowering, int replica, int rank)
{
    int prank = program_rank(lowering, replica, rank), flows = lowering->program->flows,
        *updates = &lowering->updates[prank];
    bool always = scenario_strategy(lowering->scenario)->asynchronous || scenario_hands_out_weights(lowering->scenario);
    bool updates_here = replica == 0 || lowering->scenario->strategy.data_parallel != DATA_PARALLEL_SERVER;
    uint32_t *deps = lowering->scratch, id = NO_OP;
    double seconds = 0;
    size_t ndeps = 0;

    /* the gradients of later stages are complete first */
    for (int stage = plan_global_stages(lowering->plan) - 1; stage >= 0; stage--)
        for (int chunk = 0; chunk < plan_chunks(lowering->plan, rank); chunk++)
            if (plan_global_stage(lowering->plan, rank, chunk) == stage && lowering->buckets[stage].count &&
                !sync_stage(lowering, stage, sums(lowering, *updates + 1)))
                return false;
    if (tied_rank(lowering, rank) && updates_here && !tie(lowering, replica, sums(lowering, *updates + 1)))
        return false;
    for (int chunk = 0; chunk < plan_chunks(lowering->plan, rank); chunk++) {
        const struct holder *holder = holder_of(lowering, prank, chunk);
        int stage = plan_global_stage(lowering->plan, rank, chunk);

        if (updates_here)
            seconds += lowering->stages[stage].update;
        for (int t = 0; t < flows; t++) {
            if (holder->synced[t] != NO_OP)
                deps[ndeps++] = holder->synced[t];
            if (holder->tied[t] != NO_OP)
                deps[ndeps++] = holder->tied[t];
        }
        /* implied by the sums; with them metrics can tell a wait for others' kernels from a wait for the network */
        for (int i = 0; lowering->summed[stage] && i < lowering->out->replicas * plan_holders(lowering->plan, stage);
             i++)
            deps[ndeps++] = lowering->summed[stage][i];
    }
    for (int i = 0; i < 2 && tied_rank(lowering, rank) && lowering->ties[replica] > 0; i++)
        deps[ndeps++] = lowering->untied[replica][i];
    if (ndeps > 0 || seconds > 0 || always)
        id = program_add(lowering->program, (struct op){
            .kind = OP_COMPUTE, .what = WHAT_UPDATE, .lane = lowering->compute_lane[prank], .amount = seconds,
            .mb = -1, .stage = plan_global_stage(lowering->plan, rank, 0),
        }, deps, ndeps);
    for (int chunk = 0; chunk < plan_chunks(lowering->plan, rank); chunk++)
        holder_of(lowering, prank, chunk)->updated = id;
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
        if (!lowering->summed[stage])
            lowering->summed[stage] = ARENA_ARRAY(&lowering->arena, uint32_t, sharers);
        for (int i = 0; i < sharers; i++)
            lowering->summed[stage][i] = holder_of(lowering, first + i, 0)->complete;
        lowering->syncs[stage] = count;
    }
    lowering->updates[rank] = count;
    return true;
}

/* Hands out a stage's updated weights, once all its holders have lowered their updates. */
static bool gather_stage(struct lowering *lowering, int stage, int count)
{
    const struct stage *costs = &lowering->stages[stage];
    double each = scenario_parameter_bytes(lowering->scenario).weights;
    bool apart = lowering->scenario->strategy.expert > 1, complete = true;

    if (lowering->gathers[stage] >= count)
        return true;
    for (int experts = 0; experts < (apart ? 2 : 1) && complete && !lowering->failed; experts++) {
        double parameters = !apart    ? costs->parameters
                            : experts ? costs->expert_parameters
                                      : costs->parameters - costs->expert_parameters;
        struct sync sync;

        sync_init(&sync, lowering, stage, experts);
        for (int i = 0; i < sync.here; i++) {
            complete &= lowering->updates[sync.ranks[i]] >= count;
            sync.ready[i] = sync_holder(&sync, i)->updated;
        }
        if (complete && parameters > 0)
            lowering->failed =
                exchange(&sync, scenario_hand_out(lowering->scenario), parameters * each, slot_published) != 0;
        sync_release(&sync);
    }
    lowering->gathers[stage] = complete ? count : lowering->gathers[stage];
    return complete && !lowering->failed;
}

bool lower_gather(struct lowering *lowering, int replica, int rank)
{
    int prank = program_rank(lowering, replica, rank);
    uint32_t *deps = lowering->scratch;
    size_t ndeps = 0;

    for (int chunk = 0; chunk < plan_chunks(lowering->plan, rank); chunk++) {
        int stage = plan_global_stage(lowering->plan, rank, chunk);

        if (lowering->buckets[stage].count && !gather_stage(lowering, stage, lowering->updates[prank]))
            return false;
        for (int t = 0; lowering->buckets[stage].count && t < lowering->program->flows; t++)
            deps[ndeps++] = holder_of(lowering, prank, chunk)->published[t];
    }
    /* the update is over when the rank has all weights again */
    if (ndeps > 0)
        program_add(lowering->program, (struct op){
            .kind = OP_COMPUTE, .what = WHAT_UPDATE, .lane = lowering->compute_lane[prank], .continues = true, .mb = -1,
            .stage = plan_global_stage(lowering->plan, rank, 0),
        }, deps, ndeps);
    return true;
}
