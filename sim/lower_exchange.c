/* A collective over all that hold a global stage: as messages, or as a measured duration. */
#include "lower_internal.h"

#include <stdlib.h>
#include <string.h>

void sync_release(struct sync *sync)
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
    int directions = plan_directions(lowering->plan), holders = plan_holders(lowering->plan, stage);
    int all = scenario_replicas(scenario) * holders;

    *copies = xcalloc((size_t)all, sizeof **copies);
    for (int i = 0; i < all; i++) {
        struct copy_of *copy = &(*copies)[i];

        copy->replica = i / holders;
        copy->rank = plan_rank(lowering->plan, i % directions, stage, i % holders / directions, &copy->chunk);
        copy->program_rank = program_rank(lowering, copy->replica, copy->rank);
        copy->gpu = scenario_gpu(scenario, 0, copy->replica, copy->rank);
    }
    if (holders > 1)         /* replicas alone are in order, and the first of them may stand for all */
        qsort(*copies, (size_t)all, sizeof **copies, by_gpu);
    return all;
}

/* Those that hold the same experts next to each other, else in the order that they are in. */
static void group_by_experts(struct copy_of *copies, int all, int expert)
{
    struct copy_of *before = xcalloc((size_t)all, sizeof *before);
    int count = 0;

    memcpy(before, copies, (size_t)all * sizeof *before);
    for (int e = 0; e < expert; e++)
        for (int i = 0; i < all; i++)
            if (before[i].replica % expert == e)
                copies[count++] = before[i];
    free(before);
}

/* Rings at once of the all-reduces of the first n holders. */
static int group_channels(const struct lowering *lowering, const struct copy_of *copies, int n)
{
    int *gpus, channels = lowering->scenario->strategy.channels;

    if (channels)
        return channels;
    gpus = xcalloc((size_t)n, sizeof *gpus);
    for (int i = 0; i < n; i++)
        gpus[i] = copies[i].gpu;
    channels = collective_channels(&lowering->scenario->cluster, &(struct group){.n = n, .gpus = gpus});
    free(gpus);
    return channels;
}

void sync_init(struct sync *sync, struct lowering *lowering, int stage, bool experts)
{
    const struct scenario *scenario = lowering->scenario;
    struct copy_of *copies;
    size_t all = (size_t)find_copies(lowering, stage, &copies);

    *sync = (struct sync){.lowering = lowering, .stage = stage, .all = (int)all,
                          .groups = experts ? scenario->strategy.expert : 1,
                          .here = lowering->out->replicas * plan_holders(lowering->plan, stage)};
    if (sync->groups > 1)
        group_by_experts(copies, sync->all, sync->groups);
    sync->gpus = xcalloc(all * (size_t)scenario->strategy.tensor, sizeof *sync->gpus);
    sync->ranks = xcalloc(all, sizeof *sync->ranks);
    sync->chunks = xcalloc(all, sizeof *sync->chunks);
    for (int i = 0; i < sync->all; i++) {
        sync->ranks[i] = copies[i].program_rank;
        sync->chunks[i] = copies[i].chunk;
        for (int t = 0; t < scenario->strategy.tensor; t++)
            sync->gpus[t * sync->all + i] = scenario_gpu(scenario, t, copies[i].replica, copies[i].rank);
    }
    sync->channels = group_channels(lowering, copies, sync->all / sync->groups);
    sync->lanes = xcalloc(all * (size_t)sync->channels, sizeof *sync->lanes);
    sync->ready = xcalloc(all, sizeof *sync->ready);
    sync->begin = xcalloc(all, sizeof *sync->begin);
    sync->done = xcalloc(all, sizeof *sync->done);
    free(copies);
}

uint32_t collective_lane(const struct lowering *lowering, int program_rank, int flow, int channel)
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

uint32_t *slot_synced(struct holder *holder)
{
    return holder->synced;
}

uint32_t *slot_published(struct holder *holder)
{
    return holder->published;
}

static void exchange_messages(struct sync *sync, const struct collective *collective, struct op like, double bytes,
                              holder_slot *slot)
{
    struct lowering *lowering = sync->lowering;
    const struct cluster *cluster = &lowering->scenario->cluster;
    int n = sync->all / sync->groups;

    for (int t = 0; t < lowering->program->flows; t++) {
        const uint32_t *ready = sync->channels > 1 ? sync->begin : sync->ready;

        for (int i = 0; i < sync->all * sync->channels; i++)
            sync->lanes[i] = collective_lane(lowering, sync->ranks[i / sync->channels], t, i % sync->channels);
        /* one collective after another, as NCCL's stream: the lane of the first channel ends with the one before */
        for (int i = 0; sync->channels > 1 && i < sync->all; i++) {
            like.lane = sync->lanes[i * sync->channels];
            sync->begin[i] = program_add(lowering->program, like, &sync->ready[i], 1);
        }
        for (int first = 0; first < sync->all; first += n) {
            struct group group = {.n = n, .ranks = sync->ranks + first, .gpus = sync->gpus + t * sync->all + first};
            int channels = sync->channels;

            collective_lower(collective, cluster, &group, bytes, channels, sync->lanes + first * channels,
                             ready + first, like, lowering->program, sync->done + first);
            if (collective->op == COLLECTIVE_ALL_REDUCE)
                lowering_use(lowering, collective_choose(collective, cluster, &group, bytes, &channels));
        }
        for (int i = 0; i < sync->all; i++)
            slot(holder_of(lowering, sync->ranks[i], sync->chunks[i]))[t] = sync->done[i];
    }
}

/* All holders begin when the last is ready, and take the measured time. */
static int exchange_measured(struct sync *sync, const struct collective *collective, struct op like, double bytes,
                             holder_slot *slot)
{
    struct lowering *lowering = sync->lowering;
    struct measured measured;

    if (measure_collective(lowering->measure, collective, sync->gpus, lowering->program->flows * sync->groups,
                           sync->all / sync->groups, bytes, sync->channels, &measured, lowering->err))
        return -1;
    if (collective->op == COLLECTIVE_ALL_REDUCE)
        lowering_use(lowering, measured.used);
    like.lane = collective_lane(lowering, sync->ranks[0], 0, 0);
    uint32_t begin = program_add(lowering->program, like, sync->ready, (size_t)sync->here);
    like.amount = like.communication = measured.seconds;
    like.sent = measured.bytes_sent;
    for (int i = 0; i < sync->here; i++) {
        like.lane = collective_lane(lowering, sync->ranks[i], 0, 0);
        uint32_t done = program_add(lowering->program, like, &begin, 1);
        for (int t = 0; t < lowering->program->flows; t++)
            slot(holder_of(lowering, sync->ranks[i], sync->chunks[i]))[t] = done;
    }
    return 0;
}

int exchange(struct sync *sync, const struct collective *collective, double bytes, holder_slot *slot)
{
    struct op like = {.kind = OP_COMPUTE, .what = WHAT_SYNC, .mb = -1, .stage = sync->stage};

    if (sync->all == sync->groups)
        return 0;
    if (sync->lowering->out->measured)
        return exchange_measured(sync, collective, like, bytes, slot);
    exchange_messages(sync, collective, like, bytes, slot);
    return 0;
}

int stage_collective(struct lowering *lowering, int stage, bool experts, const struct collective *collective,
                     double bytes, struct measured *measured)
{
    struct sync sync;
    int rc;

    sync_init(&sync, lowering, stage, experts);
    rc = measure_collective(lowering->measure, collective, sync.gpus, lowering->program->flows * sync.groups,
                            sync.all / sync.groups, bytes, sync.channels, measured, lowering->err);
    sync_release(&sync);
    return rc;
}

struct holder *sync_holder(const struct sync *sync, int i)
{
    return holder_of(sync->lowering, sync->ranks[i], sync->chunks[i]);
}

/* A lane for each ring, flow and rank. */
void make_collective_lanes(struct lowering *lowering)
{
    size_t count = (size_t)lowering->program->ranks * (size_t)lowering->program->flows;

    lowering->channels = 1;
    for (int stage = 0; stage < plan_global_stages(lowering->plan); stage++)
        for (int experts = 0; experts < 2; experts++) {
            struct sync sync;

            sync_init(&sync, lowering, stage, experts);
            lowering->channels = sync.channels > lowering->channels ? sync.channels : lowering->channels;
            sync_release(&sync);
        }
    count *= (size_t)lowering->channels;
    lowering->collective_lane = ARENA_ARRAY(&lowering->arena, uint32_t, count);
    for (size_t i = 0; i < count; i++) {
        int per_rank = lowering->program->flows * lowering->channels;

        lowering->collective_lane[i] =
            program_lane(lowering->program, (int)i / per_rank, LANE_COLLECTIVE, (int)i % per_rank);
    }
}
