/* A collective over all that hold a global stage: as messages, or as a measured duration. */
#include "lower/lower_internal.h"

#include <stdlib.h>
#include <string.h>

void sync_release(struct sync *sync)
{
    free(sync->gpus);
    free(sync->ranks);
    free(sync->chunks);
    free(sync->lanes);
    free(sync->after);
    free(sync->ready);
    free(sync->done);
}

/* One that holds a global stage: a rank of a replica, with the chunk; its group, and its place there. */
struct copy_of { int group, place, program_rank, chunk, replica, rank; };

static int by_place(const void *a, const void *b)
{
    const struct copy_of *x = a, *y = b;

    if (x->group != y->group)
        return x->group < y->group ? -1 : 1;
    return x->place < y->place ? -1 : x->place > y->place;
}

/* All holders of a stage, group by group, in the order of their GPUs, so that those of a node are next to each other;
 * but replicas alone in their own order, so that the first of them may stand for all. */
static int find_copies(const struct lowering *lowering, enum group_kind kind, int stage, struct copy_of **copies)
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
        copy->group = group_of(&scenario->groups.of[kind], copy->replica);
        copy->place = holders > 1 ? scenario_gpu(scenario, 0, copy->replica, copy->rank) : i;
    }
    qsort(*copies, (size_t)all, sizeof **copies, by_place);
    return all;
}

/* Rings at once of the collectives of a group. */
static int group_channels(const struct lowering *lowering, const int *gpus, int n)
{
    int channels = lowering->scenario->strategy.channels;

    if (channels)
        return channels;
    return collective_channels(&lowering->scenario->cluster, &(struct group){.n = n, .gpus = gpus});
}

void sync_init(struct sync *sync, struct lowering *lowering, enum group_kind kind, int stage)
{
    const struct scenario *scenario = lowering->scenario;
    struct copy_of *copies;
    int count = find_copies(lowering, kind, stage, &copies);
    size_t all = (size_t)count;

    *sync = (struct sync){
        .lowering = lowering, .kind = kind, .stage = stage, .all = count,
        .here = lowering->out->replicas * plan_holders(lowering->plan, stage),
        .group = count / group_count(scenario, &scenario->groups.of[kind]),
    };
    sync->gpus = xcalloc(all * (size_t)scenario->strategy.tensor, sizeof *sync->gpus);
    sync->ranks = xcalloc(all, sizeof *sync->ranks);
    sync->chunks = xcalloc(all, sizeof *sync->chunks);
    for (int i = 0; i < count; i++) {
        sync->ranks[i] = copies[i].program_rank;
        sync->chunks[i] = copies[i].chunk;
        for (int t = 0; t < scenario->strategy.tensor; t++)
            sync->gpus[t * count + i] = scenario_gpu(scenario, t, copies[i].replica, copies[i].rank);
    }
    sync->channels = group_channels(lowering, sync->gpus, sync->group);
    sync->lanes = xcalloc(all * (size_t)sync->channels, sizeof *sync->lanes);
    sync->after = xcalloc(all, sizeof *sync->after);
    sync->ready = xcalloc(all, sizeof *sync->ready);
    sync->done = xcalloc(all * (size_t)lowering->program->flows, sizeof *sync->done);
    free(copies);
}

static size_t stream_lane(const struct lowering *lowering, int stream, int program_rank, int flow, int channel)
{
    size_t at = (size_t)stream * (size_t)lowering->program->ranks + (size_t)program_rank;

    return (at * (size_t)lowering->program->flows + (size_t)flow) * (size_t)lowering->channels + (size_t)channel;
}

/* FSDP has a stream of its own for the sums over those that hold the same share. */
uint32_t collective_lane(const struct lowering *lowering, enum group_kind kind, int program_rank, int flow,
                         int channel)
{
    return lowering->collective_lane[stream_lane(lowering, kind == GROUP_SAME_SHARE, program_rank, flow, channel)];
}

void lowering_use(struct lowering *lowering, const struct collective *used, int protocol)
{
    if (protocol != PROTOCOL_NONE)
        lowering->out->protocols |= 1u << protocol;
    for (size_t i = 0; collective_of(COLLECTIVE_ALL_REDUCE, i); i++)
        if (collective_of(COLLECTIVE_ALL_REDUCE, i) == used)
            lowering->out->all_reduces |= (uint64_t)1 << i;
}

struct event *slot_synced(struct holder *holder)
{
    return &holder->synced;
}

struct event *slot_published(struct holder *holder)
{
    return &holder->published;
}

static void exchange_messages(struct sync *sync, const struct collective *collective, struct op like, double bytes,
                              holder_slot *slot)
{
    struct lowering *lowering = sync->lowering;
    const struct cluster *cluster = &lowering->scenario->cluster;
    int flows = lowering->program->flows;

    for (int t = 0; t < flows; t++) {
        for (int i = 0; i < sync->all * sync->channels; i++)
            sync->lanes[i] =
                collective_lane(lowering, sync->kind, sync->ranks[i / sync->channels], t, i % sync->channels);
        /* one collective after another, as NCCL's stream: the lane of the first channel ends with the one before */
        for (int i = 0; i < sync->all; i++) {
            sync->ready[i] = event_flow(&sync->after[i], t);
            like.lane = sync->lanes[i * sync->channels];
            if (sync->channels > 1)
                sync->ready[i] = program_add(lowering->program, like, &sync->ready[i], 1);
        }
        for (int first = 0; first < sync->all; first += sync->group) {
            struct group group = {
                .n = sync->group, .ranks = sync->ranks + first, .gpus = sync->gpus + t * sync->all + first,
            };
            int channels = sync->channels;

            collective_lower(collective, cluster, &group, bytes, channels, sync->lanes + first * channels,
                             sync->ready + first, like, lowering->program, sync->done + t * sync->all + first);
            if (collective->op == COLLECTIVE_ALL_REDUCE) {
                struct collective_choice choice = collective_choose(collective, cluster, &group, bytes, channels);

                lowering_use(lowering, choice.used, choice.protocol);
            }
        }
    }
    for (int i = 0; i < sync->all; i++) {
        for (int t = 0; t < flows; t++)
            lowering->flow_ids[t] = sync->done[t * sync->all + i];
        *slot(sync_holder(sync, i)) = event_all(&lowering->arena, lowering->flow_ids, (size_t)flows);
    }
}

static int node_of(const struct sync *sync, int i)
{
    return cluster_node_of(&sync->lowering->scenario->cluster, sync->gpus[i]);
}

static int leaf_of(const struct sync *sync, int i)
{
    return cluster_leaf_of(&sync->lowering->scenario->cluster, node_of(sync, i));
}

/* Whether two groups meet: on the links of a node, or on the uplinks of a leaf. */
static bool share_links(const struct sync *sync, int a, int b)
{
    const struct cluster *cluster = &sync->lowering->scenario->cluster;
    bool uplinks = !cluster_within_leaf(cluster, sync->gpus + a, sync->group) &&
                   !cluster_within_leaf(cluster, sync->gpus + b, sync->group);

    for (int i = 0; i < sync->group; i++)
        for (int k = 0; k < sync->group; k++)
            if (node_of(sync, a + i) == node_of(sync, b + k) ||
                (uplinks && leaf_of(sync, a + i) == leaf_of(sync, b + k)))
                return true;
    return false;
}

/* What the collective costs the group whose first holder is `first`, while those groups that share links with it do
 * the same. */
static int measure_group(const struct sync *sync, int first, const struct collective *collective, double bytes,
                         struct measured *measured)
{
    struct lowering *lowering = sync->lowering;
    int *gpus = xcalloc((size_t)sync->all * (size_t)lowering->program->flows, sizeof *gpus), groups = 0, rc;

    for (int i = 0; i < sync->all; i += sync->group) {
        int other = i == 0 ? first : i == first ? 0 : i;     /* itself before the others */

        if (i && (private_links(&lowering->scenario->cluster) || !share_links(sync, first, other)))
            continue;
        for (int t = 0; t < lowering->program->flows; t++)
            memcpy(gpus + groups++ * sync->group, sync->gpus + t * sync->all + other,
                   (size_t)sync->group * sizeof *gpus);
    }
    rc = measure_collective(lowering->measure, collective, gpus, groups, sync->group, bytes, sync->channels, measured,
                            lowering->err);
    free(gpus);
    return rc;
}

/* All holders of a group begin when the last is ready, and take the measured time. */
static int exchange_measured(struct sync *sync, const struct collective *collective, struct op like, double bytes,
                             holder_slot *slot)
{
    struct lowering *lowering = sync->lowering;

    for (int first = 0; first < sync->here; first += sync->group) {
        int end = first + sync->group < sync->here ? first + sync->group : sync->here;
        struct measured measured;
        struct waits all = {0};

        if (measure_group(sync, first, collective, bytes, &measured))
            return -1;
        if (collective->op == COLLECTIVE_ALL_REDUCE)
            lowering_use(lowering, measured.used, measured.protocol);
        like.lane = collective_lane(lowering, sync->kind, sync->ranks[first], 0, 0);
        like.amount = like.communication = like.sent = 0;
        for (int i = first; i < end; i++)
            wait_for(&all, sync->after[i]);
        uint32_t begin = program_add(lowering->program, like, all.items, all.count);
        free(all.items);
        like.amount = like.communication = measured.seconds;
        like.sent = measured.bytes_sent;
        for (int i = first; i < end; i++) {
            like.lane = collective_lane(lowering, sync->kind, sync->ranks[i], 0, 0);
            *slot(sync_holder(sync, i)) = event_of(program_add(lowering->program, like, &begin, 1));
        }
    }
    return 0;
}

int exchange(struct sync *sync, const struct collective *collective, enum op_what what, double bytes, holder_slot *slot)
{
    struct op like = {.kind = OP_COMPUTE, .what = (uint8_t)what, .mb = -1, .stage = sync->stage};

    if (sync->group == 1)
        return 0;
    if (sync->lowering->out->measured)
        return exchange_measured(sync, collective, like, bytes, slot);
    exchange_messages(sync, collective, like, bytes, slot);
    return 0;
}

int group_collective(struct lowering *lowering, enum group_kind kind, int stage, int replica,
                     const struct collective *collective, double bytes, struct measured *measured,
                     struct contention *beside)
{
    struct sync sync;
    int first = 0, rc;

    sync_init(&sync, lowering, kind, stage);
    for (int i = 0; i < sync.all; i++)
        if (sync.ranks[i] / lowering->plan->stages == replica)
            first = i - i % sync.group;
    *measured = (struct measured){0};
    rc = sync.group == 1 ? 0 : measure_group(&sync, first, collective, bytes, measured);
    contention_add(beside, measured->seconds,
                   contention_share(&lowering->scenario->cluster, sync.gpus + first, sync.group));
    sync_release(&sync);
    return rc;
}

struct holder *sync_holder(const struct sync *sync, int i)
{
    return holder_of(sync->lowering, sync->ranks[i], sync->chunks[i]);
}

/* A lane for each stream, ring, flow and rank. */
void make_collective_lanes(struct lowering *lowering)
{
    const struct process_groups *groups = &lowering->scenario->groups;
    static const enum group_kind kinds[] = {GROUP_DATA, GROUP_SHARD, GROUP_SAME_SHARE, GROUP_SAME_EXPERTS};
    int flows = lowering->program->flows;
    size_t count;

    lowering->streams = groups->of[GROUP_SAME_SHARE].exchanges ? 2 : 1;
    lowering->channels = 1;
    for (size_t i = 0; i < (size_t)plan_global_stages(lowering->plan) * COUNT(kinds); i++) {
        enum group_kind kind = kinds[i % COUNT(kinds)];
        struct sync sync;

        if (!groups->of[kind].exchanges)
            continue;
        sync_init(&sync, lowering, kind, (int)(i / COUNT(kinds)));
        lowering->channels = sync.channels > lowering->channels ? sync.channels : lowering->channels;
        sync_release(&sync);
    }
    count = (size_t)lowering->program->ranks * (size_t)flows * (size_t)lowering->channels;
    lowering->collective_lane = ARENA_ARRAY(&lowering->arena, uint32_t, count * (size_t)lowering->streams);
    for (int stream = 0; stream < lowering->streams; stream++)
        for (int rank = 0; rank < lowering->program->ranks; rank++)
            for (int i = 0; i < flows * lowering->channels; i++)
                lowering->collective_lane[stream_lane(lowering, stream, rank, 0, i)] = program_lane(
                    lowering->program, rank, LANE_COLLECTIVE, stream * flows * lowering->channels + i);
}
