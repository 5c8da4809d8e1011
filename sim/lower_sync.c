/* Data parallelism: the gradient all-reduce over the replicas, and the update. */
#include "lower_internal.h"

#include <stdlib.h>

/* PyTorch DDP (Li et al. 2020, section 3.2.3 and 4.2): scanning the tensors in the order in which their gradients become
 * ready, a bucket is closed when it has reached its limit: 1 MiB the first, 25 MiB the others. */
static void stage_buckets(const struct scenario *scenario, const struct stage *stage, struct buckets *buckets)
{
    const struct strategy_spec *spec = &scenario->strategy;
    double each = scenario_parameter_bytes(scenario).gradients, bytes = 0;
    bool ddp = spec->data_parallel == DATA_PARALLEL_DDP;

    for (size_t i = 0; i < stage->nslices; i++) {
        const struct slice *slice = &stage->slices[i];

        for (size_t k = slice->ntensors; k-- > 0;) {
            bytes += slice->tensors[k] * each;
            if (!ddp || bytes == 0 || bytes < (buckets->count ? spec->bucket : spec->first_bucket))
                continue;
            *GROW(buckets) = (struct bucket){.bytes = bytes, .slice = i};
            bytes = 0;
        }
    }
    if (bytes > 0)
        *GROW(buckets) = (struct bucket){.bytes = bytes, .slice = stage->nslices - 1};
}

void buckets_build(struct lowering *lowering)
{
    const struct scenario *scenario = lowering->scenario;
    bool any = false;

    if (scenario->strategy.data * plan_directions(lowering->plan) == 1)
        return;
    for (int s = 0; s < plan_global_stages(lowering->plan); s++) {
        stage_buckets(scenario, &lowering->stages[s], &lowering->buckets[s]);
        any |= lowering->buckets[s].count > 0;
    }
    for (int i = 0; i < lowering->program->ranks * lowering->plan->chunks; i++) {
        int rank = i / lowering->plan->chunks % lowering->plan->stages, chunk = i % lowering->plan->chunks, stage;

        if (chunk >= plan_chunks(lowering->plan, rank))
            continue;
        stage = plan_global_stage(lowering->plan, rank, chunk);
        lowering->holders[i].ready = ARENA_ARRAY(&lowering->arena, uint32_t, lowering->buckets[stage].count + 1);
    }
    if (any)
        make_collective_lanes(lowering);
}

/* The sync of one global stage: its holders are a rank in every replica, and in both directions. */
struct sync {
    struct lowering *lowering;
    int stage, all, here;    /* holders: in the cluster, and in the program (fewer where one replica stands for all) */
    int channels;
    int *gpus;               /* [tensor index * all + holder] */
    int *ranks, *chunks;     /* of each holder in the program: program rank, chunk */
    uint32_t *lanes;         /* scratch, [holder * channels + channel] */
    uint32_t *ready, *begin; /* scratch, a holder */
    uint32_t *done;          /* scratch, a holder */
};

static void sync_release(struct sync *sync)
{
    free(sync->gpus);
    free(sync->ranks);
    free(sync->chunks);
    free(sync->lanes);
    free(sync->ready);
    free(sync->begin);
    free(sync->done);
}

/* One that holds a global stage: a rank of a replica, with the chunk. */
struct copy_of { int gpu, program_rank, chunk, replica, rank; };

static int by_gpu(const void *a, const void *b)
{
    const struct copy_of *x = a, *y = b;

    return x->gpu < y->gpu ? -1 : x->gpu > y->gpu;
}

/* All holders of a stage, in the order of their GPUs, so that those of a node are next to each other. */
static int find_copies(const struct lowering *lowering, int stage, struct copy_of **copies)
{
    const struct scenario *scenario = lowering->scenario;
    int directions = plan_directions(lowering->plan), all = scenario->strategy.data * directions;

    *copies = xcalloc((size_t)all, sizeof **copies);
    for (int i = 0; i < all; i++) {
        struct copy_of *copy = &(*copies)[i];

        copy->replica = i / directions;
        copy->rank = plan_rank(lowering->plan, i % directions, stage, &copy->chunk);
        copy->program_rank = program_rank(lowering, copy->replica, copy->rank);
        copy->gpu = scenario_gpu(scenario, 0, copy->replica, copy->rank);
    }
    if (directions > 1)      /* replicas alone are in order, and the first of them may stand for all */
        qsort(*copies, (size_t)all, sizeof **copies, by_gpu);
    return all;
}

/* Rings at once of a stage's all-reduces. */
static int stage_channels(const struct lowering *lowering, const struct copy_of *copies, int all)
{
    int *gpus, channels = lowering->scenario->strategy.channels;

    if (channels)
        return channels;
    gpus = xcalloc((size_t)all, sizeof *gpus);
    for (int i = 0; i < all; i++)
        gpus[i] = copies[i].gpu;
    channels = collective_channels(&lowering->scenario->cluster, &(struct group){.n = all, .gpus = gpus});
    free(gpus);
    return channels;
}

static void sync_init(struct sync *sync, struct lowering *lowering, int stage)
{
    const struct scenario *scenario = lowering->scenario;
    struct copy_of *copies;
    size_t all = (size_t)find_copies(lowering, stage, &copies);

    *sync = (struct sync){.lowering = lowering, .stage = stage, .all = (int)all,
                          .here = lowering->out->replicas * plan_directions(lowering->plan)};
    sync->gpus = xcalloc(all * (size_t)scenario->strategy.tensor, sizeof *sync->gpus);
    sync->ranks = xcalloc(all, sizeof *sync->ranks);
    sync->chunks = xcalloc(all, sizeof *sync->chunks);
    for (int i = 0; i < sync->all; i++) {
        sync->ranks[i] = copies[i].program_rank;
        sync->chunks[i] = copies[i].chunk;
        for (int t = 0; t < scenario->strategy.tensor; t++)
            sync->gpus[t * sync->all + i] = scenario_gpu(scenario, t, copies[i].replica, copies[i].rank);
    }
    sync->channels = stage_channels(lowering, copies, sync->all);
    sync->lanes = xcalloc(all * (size_t)sync->channels, sizeof *sync->lanes);
    sync->ready = xcalloc(all, sizeof *sync->ready);
    sync->begin = xcalloc(all, sizeof *sync->begin);
    sync->done = xcalloc(all, sizeof *sync->done);
    free(copies);
}

static uint32_t collective_lane(const struct lowering *lowering, int program_rank, int flow, int channel)
{
    return lowering->collective_lane[((size_t)program_rank * (size_t)lowering->program->flows + (size_t)flow) *
                                     (size_t)lowering->channels + (size_t)channel];
}

void lowering_use(struct lowering *lowering, const struct collective *used)
{
    for (size_t i = 0; collective_of(COLLECTIVE_ALL_REDUCE, i); i++)
        if (collective_of(COLLECTIVE_ALL_REDUCE, i) == used)
            lowering->out->all_reduces |= (uint64_t)1 << i;
}

static void sync_messages(struct sync *sync, struct op like, double bytes)
{
    struct lowering *lowering = sync->lowering;

    for (int t = 0; t < lowering->program->flows; t++) {
        struct group group = {.n = sync->all, .ranks = sync->ranks, .gpus = sync->gpus + t * sync->all};
        int channels = sync->channels;

        for (int i = 0; i < sync->all * sync->channels; i++)
            sync->lanes[i] = collective_lane(lowering, sync->ranks[i / sync->channels], t, i % sync->channels);
        /* one collective after another, as NCCL's stream: the lane of the first channel ends with the one before */
        for (int i = 0; sync->channels > 1 && i < sync->all; i++) {
            like.lane = sync->lanes[i * sync->channels];
            sync->begin[i] = program_add(lowering->program, like, &sync->ready[i], 1);
        }
        collective_lower(scenario_all_reduce(lowering->scenario), &lowering->scenario->cluster, &group, bytes,
                         sync->channels, sync->lanes, sync->channels > 1 ? sync->begin : sync->ready, like,
                         lowering->program, sync->done);
        lowering_use(lowering, collective_choose(scenario_all_reduce(lowering->scenario), &lowering->scenario->cluster,
                                                 &group, bytes, &channels));
        for (int i = 0; i < sync->all; i++)
            holder_of(lowering, sync->ranks[i], sync->chunks[i])->synced[t] = sync->done[i];
    }
}

/* All holders begin when the last is ready, and take the measured time. */
static int sync_measured(struct sync *sync, struct op like, double bytes, struct error *err)
{
    struct lowering *lowering = sync->lowering;
    const struct scenario *scenario = lowering->scenario;
    struct measured measured;

    if (measure_collective(lowering->measure, scenario_all_reduce(scenario), sync->gpus, lowering->program->flows,
                           sync->all, bytes, sync->channels, &measured, err))
        return -1;
    lowering_use(lowering, measured.used);
    like.kind = OP_COMPUTE;
    like.lane = collective_lane(lowering, sync->ranks[0], 0, 0);
    uint32_t begin = program_add(lowering->program, like, sync->ready, (size_t)sync->here);
    like.amount = like.communication = measured.seconds;
    like.sent = measured.bytes_sent;
    for (int i = 0; i < sync->here; i++) {
        like.lane = collective_lane(lowering, sync->ranks[i], 0, 0);
        uint32_t done = program_add(lowering->program, like, &begin, 1);
        for (int t = 0; t < lowering->program->flows; t++)
            holder_of(lowering, sync->ranks[i], sync->chunks[i])->synced[t] = done;
    }
    return 0;
}

/* The next all-reduce of a stage's gradients, once all its holders have lowered theirs. */
static bool sync_stage(struct lowering *lowering, int stage)
{
    const struct buckets *buckets = &lowering->buckets[stage];
    struct op like = {.kind = OP_COMPUTE, .what = WHAT_SYNC, .mb = -1, .stage = stage};
    struct sync sync;
    bool complete = true;

    sync_init(&sync, lowering, stage);
    for (int i = 0; i < sync.here; i++)
        complete &= holder_of(lowering, sync.ranks[i], sync.chunks[i])->completed > lowering->syncs[stage];
    for (size_t b = 0; complete && !lowering->failed && b < buckets->count; b++) {
        for (int i = 0; i < sync.here; i++)
            sync.ready[i] = holder_of(lowering, sync.ranks[i], sync.chunks[i])->ready[b];
        if (lowering->out->measured)
            lowering->failed = sync_measured(&sync, like, buckets->items[b].bytes, lowering->err) != 0;
        else
            sync_messages(&sync, like, buckets->items[b].bytes);
    }
    lowering->syncs[stage] += complete;
    sync_release(&sync);
    return complete && !lowering->failed;
}

bool lower_update(struct lowering *lowering, int replica, int rank)
{
    int prank = program_rank(lowering, replica, rank), flows = lowering->program->flows, *updates = &lowering->updates[prank];
    bool always = scenario_strategy(lowering->scenario)->asynchronous;
    uint32_t *deps = lowering->scratch;
    double seconds = 0;
    size_t ndeps = 0;

    /* the gradients of later stages are complete first */
    for (int stage = plan_global_stages(lowering->plan) - 1; stage >= 0; stage--)
        for (int chunk = 0; chunk < plan_chunks(lowering->plan, rank); chunk++)
            if (plan_global_stage(lowering->plan, rank, chunk) == stage && lowering->buckets[stage].count &&
                lowering->syncs[stage] == *updates && !sync_stage(lowering, stage))
                return false;
    for (int chunk = 0; chunk < plan_chunks(lowering->plan, rank); chunk++) {
        seconds += lowering->stages[plan_global_stage(lowering->plan, rank, chunk)].update;
        for (int t = 0; t < flows; t++)
            if (holder_of(lowering, prank, chunk)->synced[t] != NO_OP)
                deps[ndeps++] = holder_of(lowering, prank, chunk)->synced[t];
    }
    if (ndeps > 0 || seconds > 0 || always)
        program_add(lowering->program, (struct op){
            .kind = OP_COMPUTE, .what = WHAT_UPDATE, .lane = lowering->compute_lane[prank], .amount = seconds,
            .mb = -1, .stage = rank,
        }, deps, ndeps);
    ++*updates;
    return true;
}

/* A lane for each ring, flow and rank. */
void make_collective_lanes(struct lowering *lowering)
{
    size_t count = (size_t)lowering->program->ranks * (size_t)lowering->program->flows;

    lowering->channels = 1;
    for (int stage = 0; stage < plan_global_stages(lowering->plan); stage++) {
        struct copy_of *copies;
        int all = find_copies(lowering, stage, &copies), channels = stage_channels(lowering, copies, all);

        lowering->channels = channels > lowering->channels ? channels : lowering->channels;
        free(copies);
    }
    count *= (size_t)lowering->channels;
    lowering->collective_lane = ARENA_ARRAY(&lowering->arena, uint32_t, count);
    for (size_t i = 0; i < count; i++) {
        int per_rank = lowering->program->flows * lowering->channels;

        lowering->collective_lane[i] =
            program_lane(lowering->program, (int)i / per_rank, LANE_COLLECTIVE, (int)i % per_rank);
    }
}
