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

    if (scenario->strategy.data == 1)
        return;
    for (int s = 0; s < plan_global_stages(lowering->plan); s++)
        stage_buckets(scenario, &lowering->stages[s], &lowering->buckets[s]);
    for (int i = 0; i < lowering->program->ranks * lowering->plan->chunks; i++) {
        int rank = i / lowering->plan->chunks % lowering->plan->stages;
        int stage = plan_global_stage(lowering->plan, rank, i % lowering->plan->chunks);

        lowering->ready[i] = xcalloc(lowering->buckets[stage].count + 1, sizeof(uint32_t));
    }
}

/* The sync of one pipeline rank, over all replicas. */
struct sync {
    struct lowering *lowering;
    int rank, channels;
    int *gpus;               /* [tensor index * data + replica] */
    int *ranks;              /* program rank a replica */
    uint32_t *lanes;         /* [(replica * flows + flow) * channels + channel] */
    uint32_t *done;          /* [flow * replicas + replica]: when the last all-reduce so far is over */
    uint32_t *ready;         /* scratch, a replica */
};

static void sync_init(struct sync *sync, struct lowering *lowering, int rank)
{
    const struct scenario *scenario = lowering->scenario;
    int data = scenario->strategy.data, replicas = lowering->out->replicas, flows = lowering->program->flows;

    *sync = (struct sync){.lowering = lowering, .rank = rank};
    sync->gpus = xcalloc((size_t)data * (size_t)scenario->strategy.tensor, sizeof *sync->gpus);
    for (int t = 0; t < scenario->strategy.tensor; t++)
        for (int d = 0; d < data; d++)
            sync->gpus[t * data + d] = scenario_gpu(scenario, t, d, rank);
    sync->channels = scenario->strategy.channels;
    if (!sync->channels)
        sync->channels = collective_channels(&scenario->cluster, &(struct group){.n = data, .gpus = sync->gpus});
    sync->ranks = xcalloc((size_t)replicas, sizeof *sync->ranks);
    sync->ready = xcalloc((size_t)replicas, sizeof *sync->ready);
    sync->done = xcalloc((size_t)replicas * (size_t)flows, sizeof *sync->done);
    sync->lanes = xcalloc((size_t)replicas * (size_t)flows * (size_t)sync->channels, sizeof *sync->lanes);
    for (int d = 0; d < replicas; d++) {
        sync->ranks[d] = program_rank(lowering, d, rank);
        for (int i = 0; i < flows * sync->channels; i++)
            sync->lanes[d * flows * sync->channels + i] =
                program_lane(lowering->program, sync->ranks[d], LANE_COLLECTIVE, i);
    }
}

static void sync_release(struct sync *sync)
{
    free(sync->gpus);
    free(sync->ranks);
    free(sync->ready);
    free(sync->done);
    free(sync->lanes);
}

static void sync_messages(struct sync *sync, struct op like, double bytes)
{
    struct lowering *lowering = sync->lowering;
    int data = lowering->scenario->strategy.data, flows = lowering->program->flows;
    uint32_t *lanes = xcalloc((size_t)data * (size_t)sync->channels, sizeof *lanes);

    for (int t = 0; t < flows; t++) {
        struct group group = {.n = data, .ranks = sync->ranks, .gpus = sync->gpus + t * data};

        for (int i = 0; i < data * sync->channels; i++)
            lanes[i] = sync->lanes[(i / sync->channels * flows + t) * sync->channels + i % sync->channels];
        collective_lower(scenario_all_reduce(lowering->scenario), &lowering->scenario->cluster, &group, bytes,
                         sync->channels, lanes, sync->ready, like, lowering->program, sync->done + t * data);
    }
    free(lanes);
}

/* All replicas begin when the last is ready, and take the measured time. */
static int sync_measured(struct sync *sync, struct op like, double bytes, struct error *err)
{
    struct lowering *lowering = sync->lowering;
    const struct scenario *scenario = lowering->scenario;
    int replicas = lowering->out->replicas, per_rank = lowering->program->flows * sync->channels;
    struct measured measured;

    if (measure_collective(lowering->measure, scenario_all_reduce(scenario), sync->gpus, lowering->program->flows,
                           scenario->strategy.data, bytes, sync->channels, &measured, err))
        return -1;
    like.kind = OP_COMPUTE;
    like.lane = sync->lanes[0];
    uint32_t all = program_add(lowering->program, like, sync->ready, (size_t)replicas);
    like.amount = like.communication = measured.seconds;
    like.sent = measured.bytes_sent;
    for (int d = 0; d < replicas; d++) {
        like.lane = sync->lanes[d * per_rank];
        sync->done[d] = program_add(lowering->program, like, &all, 1);
        for (int t = 1; t < lowering->program->flows; t++)
            sync->done[t * replicas + d] = sync->done[d];
    }
    return 0;
}

static int sync_rank(struct sync *sync, struct error *err)
{
    struct lowering *lowering = sync->lowering;
    int chunks = lowering->plan->chunks;

    /* the last chunk's gradients are complete first */
    for (int chunk = chunks - 1; chunk >= 0; chunk--) {
        int stage = plan_global_stage(lowering->plan, sync->rank, chunk);
        const struct buckets *buckets = &lowering->buckets[stage];

        for (size_t b = 0; b < buckets->count; b++) {
            struct op like = {.what = WHAT_SYNC, .mb = -1, .stage = stage};

            for (int d = 0; d < lowering->out->replicas; d++)
                sync->ready[d] = lowering->ready[sync->ranks[d] * chunks + chunk][b];
            if (!lowering->out->measured)
                sync_messages(sync, like, buckets->items[b].bytes);
            else if (sync_measured(sync, like, buckets->items[b].bytes, err))
                return -1;
        }
    }
    return 0;
}

/* The optimizer's update, when the gradients of all the rank's chunks are there. */
static void update(struct lowering *lowering, int rank, const struct sync *sync)
{
    int flows = lowering->program->flows, replicas = lowering->out->replicas;
    uint32_t *deps = xcalloc((size_t)flows, sizeof *deps);
    double seconds = 0;

    for (int chunk = 0; chunk < lowering->plan->chunks; chunk++)
        seconds += lowering->stages[plan_global_stage(lowering->plan, rank, chunk)].update;
    for (int d = 0; d < replicas && (sync || seconds > 0); d++) {
        for (int t = 0; sync && t < flows; t++)
            deps[t] = sync->done[t * replicas + d];
        program_add(lowering->program, (struct op){
            .kind = OP_COMPUTE, .what = WHAT_UPDATE, .lane = lowering->compute_lane[program_rank(lowering, d, rank)],
            .amount = seconds, .mb = -1, .stage = rank,
        }, deps, sync ? (size_t)flows : 0);
    }
    free(deps);
}

int lower_sync(struct lowering *lowering, struct error *err)
{
    int rc = 0;

    for (int rank = 0; !rc && rank < lowering->plan->stages; rank++) {
        bool synced = false;

        for (int chunk = 0; chunk < lowering->plan->chunks; chunk++)
            synced |= lowering->buckets[plan_global_stage(lowering->plan, rank, chunk)].count > 0;
        if (synced) {
            struct sync sync;

            sync_init(&sync, lowering, rank);
            rc = sync_rank(&sync, err);
            if (!rc)
                update(lowering, rank, &sync);
            sync_release(&sync);
        } else {
            update(lowering, rank, NULL);
        }
    }
    return rc;
}
