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

    if (scenario->strategy.data * plan_directions(lowering->plan) == 1)
        return;
    for (int s = 0; s < plan_global_stages(lowering->plan); s++)
        stage_buckets(scenario, &lowering->stages[s], &lowering->buckets[s]);
    for (int i = 0; i < lowering->program->ranks * lowering->plan->chunks; i++) {
        int rank = i / lowering->plan->chunks % lowering->plan->stages;
        int stage = plan_global_stage(lowering->plan, rank, i % lowering->plan->chunks);

        lowering->ready[i] = xcalloc(lowering->buckets[stage].count + 1, sizeof(uint32_t));
    }
}

/* The sync of one global stage: its holders are a rank in every replica, and in both directions. */
struct sync {
    struct lowering *lowering;
    int stage, all, here;    /* holders: in the cluster, and in the program (fewer where one replica stands for all) */
    int channels;
    int *gpus;               /* [tensor index * all + holder] */
    int *ranks, *chunks;     /* of each holder in the program: program rank, chunk */
    uint32_t *lanes;         /* scratch, [holder * channels + channel] */
    uint32_t *ready;         /* scratch, a holder */
    uint32_t *done;          /* scratch, a holder */
};

static void sync_release(struct sync *sync)
{
    free(sync->gpus);
    free(sync->ranks);
    free(sync->chunks);
    free(sync->lanes);
    free(sync->ready);
    free(sync->done);
}

static void sync_init(struct sync *sync, struct lowering *lowering, int stage)
{
    const struct scenario *scenario = lowering->scenario;
    int directions = plan_directions(lowering->plan);
    size_t all = (size_t)(scenario->strategy.data * directions);

    *sync = (struct sync){.lowering = lowering, .stage = stage, .all = (int)all, .here = lowering->out->replicas * directions};
    sync->gpus = xcalloc(all * (size_t)scenario->strategy.tensor, sizeof *sync->gpus);
    sync->ranks = xcalloc(all, sizeof *sync->ranks);
    sync->chunks = xcalloc(all, sizeof *sync->chunks);
    for (int i = 0; i < sync->all; i++) {
        int replica = i / directions, rank = plan_rank(lowering->plan, i % directions, stage, &sync->chunks[i]);

        sync->ranks[i] = program_rank(lowering, replica, rank);
        for (int t = 0; t < scenario->strategy.tensor; t++)
            sync->gpus[t * sync->all + i] = scenario_gpu(scenario, t, replica, rank);
    }
    sync->channels = lowering->channels;
    sync->lanes = xcalloc(all * (size_t)sync->channels, sizeof *sync->lanes);
    sync->ready = xcalloc(all, sizeof *sync->ready);
    sync->done = xcalloc(all, sizeof *sync->done);
}

/* Where the last all-reduce so far of a holder and flow ends. */
static uint32_t *synced(const struct lowering *lowering, int program_rank, int chunk, int flow)
{
    return &lowering->synced[((size_t)program_rank * (size_t)lowering->plan->chunks + (size_t)chunk) *
                             (size_t)lowering->program->flows + (size_t)flow];
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
        collective_lower(scenario_all_reduce(lowering->scenario), &lowering->scenario->cluster, &group, bytes,
                         sync->channels, sync->lanes, sync->ready, like, lowering->program, sync->done);
        lowering_use(lowering, collective_choose(scenario_all_reduce(lowering->scenario), &lowering->scenario->cluster,
                                                 &group, bytes, &channels));
        for (int i = 0; i < sync->all; i++)
            *synced(lowering, sync->ranks[i], sync->chunks[i], t) = sync->done[i];
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
            *synced(lowering, sync->ranks[i], sync->chunks[i], t) = done;
    }
    return 0;
}

static int sync_stage(struct lowering *lowering, int stage, struct error *err)
{
    const struct buckets *buckets = &lowering->buckets[stage];
    struct op like = {.what = WHAT_SYNC, .mb = -1, .stage = stage};
    struct sync sync;
    int rc = 0;

    sync_init(&sync, lowering, stage);
    for (size_t b = 0; !rc && b < buckets->count; b++) {
        for (int i = 0; i < sync.here; i++)
            sync.ready[i] = lowering->ready[sync.ranks[i] * lowering->plan->chunks + sync.chunks[i]][b];
        if (lowering->out->measured)
            rc = sync_measured(&sync, like, buckets->items[b].bytes, err);
        else
            sync_messages(&sync, like, buckets->items[b].bytes);
    }
    sync_release(&sync);
    return rc;
}

/* The optimizer's update, when the gradients of all the rank's chunks are there. */
static void update(struct lowering *lowering, int prank, uint32_t *deps)
{
    int rank = prank % lowering->plan->stages;
    double seconds = 0;
    size_t ndeps = 0;

    for (int chunk = 0; chunk < lowering->plan->chunks; chunk++) {
        seconds += lowering->stages[plan_global_stage(lowering->plan, rank, chunk)].update;
        for (int t = 0; t < lowering->program->flows; t++)
            if (*synced(lowering, prank, chunk, t) != NO_OP)
                deps[ndeps++] = *synced(lowering, prank, chunk, t);
    }
    if (ndeps > 0 || seconds > 0)
        program_add(lowering->program, (struct op){
            .kind = OP_COMPUTE, .what = WHAT_UPDATE, .lane = lowering->compute_lane[prank], .amount = seconds,
            .mb = -1, .stage = rank,
        }, deps, ndeps);
}

/* Rings at once of every gradient all-reduce; a lane for each of them, flow and rank. */
static void make_collective_lanes(struct lowering *lowering)
{
    const struct strategy_spec *spec = &lowering->scenario->strategy;
    size_t count = (size_t)lowering->program->ranks * (size_t)lowering->program->flows;
    int *gpus = xcalloc((size_t)spec->data, sizeof *gpus);

    for (int d = 0; d < spec->data; d++)
        gpus[d] = scenario_gpu(lowering->scenario, 0, d, 0);
    lowering->channels = spec->channels;
    if (!lowering->channels)
        lowering->channels = collective_channels(&lowering->scenario->cluster, &(struct group){.n = spec->data, .gpus = gpus});
    free(gpus);
    count *= (size_t)lowering->channels;
    lowering->collective_lane = xcalloc(count, sizeof *lowering->collective_lane);
    for (size_t i = 0; i < count; i++) {
        int per_rank = lowering->program->flows * lowering->channels;

        lowering->collective_lane[i] =
            program_lane(lowering->program, (int)i / per_rank, LANE_COLLECTIVE, (int)i % per_rank);
    }
}

int lower_sync(struct lowering *lowering, struct error *err)
{
    size_t count = (size_t)lowering->plan->chunks * (size_t)lowering->program->flows;
    uint32_t *deps = xcalloc(count, sizeof *deps);
    bool any = false;
    int rc = 0;

    count *= (size_t)lowering->program->ranks;
    lowering->synced = xcalloc(count, sizeof *lowering->synced);
    for (size_t i = 0; i < count; i++)
        lowering->synced[i] = NO_OP;
    for (int s = 0; s < plan_global_stages(lowering->plan); s++)
        any |= lowering->buckets[s].count > 0;
    if (any)
        make_collective_lanes(lowering);
    /* the last stage's gradients are complete first */
    for (int s = plan_global_stages(lowering->plan) - 1; !rc && s >= 0; s--)
        if (lowering->buckets[s].count)
            rc = sync_stage(lowering, s, err);
    for (int rank = 0; !rc && rank < lowering->program->ranks; rank++)
        update(lowering, rank, deps);
    free(deps);
    return rc;
}
