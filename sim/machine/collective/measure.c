#include "collective/measure.h"

#include "base/base.h"
#include "base/progress.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cache.h"
#include "engine/program.h"
#include "engine/replay.h"
#include "hardware/cluster.h"

/* A collective that is asked for. Only its key is remembered with it: numbers alone, so that they can be compared byte
 * by byte. */
struct measurement {
    struct measurement_key {
        uint64_t collective;     /* its address */
        double bytes;
        uint64_t placement;      /* its number in the cache */
        int engine, channels, ngroups, n;
    } key;
    const struct collective_call *call;  /* the choice that was asked for, with its number of channels */
    struct measured result;
    struct pairs pairs;          /* of the first group */
};
_Static_assert(sizeof(struct measurement_key) ==
               2 * sizeof(uint64_t) + sizeof(double) + 4 * sizeof(int), "no bytes between the numbers");
_Static_assert(sizeof(struct node_links) == 10 * sizeof(double), "no bytes between the numbers");

void measure_init(struct measure *measure, enum engine engine, const struct cluster *cluster)
{
    *measure = (struct measure){.engine = engine, .cluster = cluster};
    cache_init(&measure->own, CACHE_BYTES);
    measure->cache = &measure->own;
}

void measure_release(struct measure *measure)
{
    for (size_t i = 0; i < measure->counted.count; i++)
        free(measure->counted.items[i].pairs.items);
    free(measure->counted.items);
    free(measure->carried.items);
    dags_release(&measure->dags);
    free(measure->where.items);
    free(measure->placed.gpus);
    cache_release(&measure->own);
    memset(measure, 0, sizeof *measure);
}

/* A GPU's node and leaf relative to the first GPU's, its index within the node, its NIC where that is slow, and the
 * kind of its node. Two placements that differ only in their first node and leaf take the same time, if their nodes are
 * of the same kinds and no NIC of theirs is slower than others: such a NIC is like itself alone. */
static void add_places(struct cache_key *key, const struct cluster *cluster, const int *gpus, size_t count)
{
    int node0 = cluster_node_of(cluster, gpus[0]);
    int leaf0 = cluster_has_pairs(cluster) ? 0 : cluster_leaf_of(cluster, node0);    /* parts differ in their links */
    int far = cluster_leaves_meet(cluster, 0, 1) ? node0 : 0;    /* leaves are not alike: where the group is matters */


    for (size_t i = 0; i < count; i++) {
        int node = cluster_node_of(cluster, gpus[i]);
        const int place[] = {
            node - node0, cluster_leaf_of(cluster, node) - leaf0, cluster_place_of(cluster, gpus[i]),
            cluster_nic_share(cluster, gpus[i]) < 1 ? 1 + cluster_nic_of(cluster, gpus[i]) : 0,
            cluster_kind_of(cluster, node), far,
        };

        cache_key_add(key, place, sizeof place);
    }
}

/* The number under which the cache knows the placement on this cluster. False: it has no room for it. */
static bool find_placement(struct measure *measure, const int *gpus, size_t count, uint64_t *number)
{
    struct last_places *placed = &measure->placed;
    struct cache_key *where = &measure->where;
    const uint64_t *known;

    if (placed->count == count && !memcmp(placed->gpus, gpus, count * sizeof *gpus)) {
        *number = placed->number;
        return true;
    }
    if (!measure->of_cluster) {
        cluster_key(measure->cluster, where);
        measure->of_cluster = where->count;
    }
    where->count = measure->of_cluster;
    add_places(where, measure->cluster, gpus, count);
    known = cache_find(measure->cache, CACHE_PLACEMENT, where->items, where->count);
    *number = known ? *known : measure->cache->count;
    if (!known &&
        !cache_copy(measure->cache, CACHE_PLACEMENT, where->items, where->count, number, sizeof *number))
        return false;
    placed->gpus = xrealloc(placed->gpus, count, sizeof *gpus);
    memcpy(placed->gpus, gpus, count * sizeof *gpus);
    placed->count = count;
    placed->number = *number;
    return true;
}

/* Lowers every group's collective into one program; all start at once. Of a folded collective it lowers the simulated
 * members only. Sets for each rank which operation is its last; the caller frees the array. */
static uint32_t *lower_groups(struct measure *measure, const struct measurement *wanted, const struct folded *folded,
                              struct program *program)
{
    const struct placed_group *first = wanted->call->group;
    int stride = collective_lanes(wanted->call), ngroups = wanted->key.ngroups, members = folded ? folded->n : first->n;
    uint32_t *lanes = xcalloc((size_t)members * (size_t)stride, sizeof *lanes);
    uint32_t *done = xcalloc((size_t)ngroups * (size_t)members, sizeof *done);

    program->ranks = ngroups * members;
    for (int g = 0; g < ngroups; g++) {
        const int *gpus = first->gpus + (size_t)g * (size_t)first->n;
        struct placed_group group = g ? placed_group_of(first->cluster, gpus, first->n) : *first;
        struct collective_call call = *wanted->call;
        struct folded own;

        call.group = &group;
        if (folded) {
            own = *folded;
            own.gpus += g * members;
        }
        for (int m = 0; m < members; m++)
            for (int lane = 0; lane < stride; lane++)
                lanes[m * stride + lane] = program_lane(program, g * members + m, LANE_COLLECTIVE, lane);
        collective_lower(&call, folded ? &own : NULL, &(struct member_ops){lanes, stride, NULL, done + g * members},
                         (struct new_op){.what = WHAT_SYNC, .mb = -1, .stage = -1}, program, &measure->dags);
    }
    free(lanes);
    return done;
}

static int by_pair(const void *a, const void *b)
{
    const struct pair *x = a, *y = b;

    if (x->src != y->src)
        return x->src < y->src ? -1 : 1;
    return x->dst < y->dst ? -1 : x->dst > y->dst;
}

static void merge_pairs(struct pairs *pairs)
{
    size_t kept = 0;

    if (!pairs->count)
        return;
    array_sort(pairs->items, pairs->count, sizeof *pairs->items, by_pair);
    for (size_t i = 1; i < pairs->count; i++) {
        struct pair *last = &pairs->items[kept], next = pairs->items[i];

        if (by_pair(last, &next)) {
            pairs->items[++kept] = next;
            continue;
        }
        last->payload += next.payload;
        last->wire += next.wire;
    }
    pairs->count = kept + 1;
}

/* The bytes of the messages from each rank to each other rank on a channel, for the whole collective. */
static struct pairs pairs_of_ranks(const struct collective *used, struct task task)
{
    struct messages messages = {0};
    struct pairs pairs = {0};
    bool in_ring = used->nodes == NODES_IN_RING;
    int g = task.per_node, chunks;

    if (in_ring)             /* two nodes are enough, because a node sends to itself and the next node alone */
        task.folded = 2 * g;
    chunks = used->chunks(&task);
    used->write_messages(&messages, &task);
    for (size_t i = 0; i < messages.count; i++) {
        const struct message *message = &messages.items[i];

        if (!in_ring || message->src < g)
            *GROW(&pairs) = (struct pair){message->src, message->dst, task.bytes * message->nchunks / chunks, 0};
    }
    free(messages.items);
    merge_pairs(&pairs);
    for (size_t i = 0, first = pairs.count; in_ring && i < first * (size_t)(task.n / g - 1); i++) {
        struct pair like = pairs.items[i];

        *GROW(&pairs) = (struct pair){(like.src + g) % task.n, (like.dst + g) % task.n, like.payload, 0};
    }
    return pairs;
}

/* What a transfer's bytes are on its links. */
static struct pair pair_of(int src, int dst, double amount, const struct op_transfer *transfer)
{
    return (struct pair){src, dst, payload_bytes(amount, transfer), wire_bytes(amount, transfer)};
}

/* The pairs of the whole collective, where a part of it stands for all. */
static void unfold_pairs(struct measurement *wanted)
{
    struct collective_call call = collective_chosen(*wanted->call, wanted->result.used, wanted->result.channels);
    struct tuning tuning = collective_tuning(&call, wanted->result.protocol);
    const struct placed_group *group = call.group;
    int *order = xcalloc((size_t)group->n, sizeof *order);
    struct pairs whole = {0}, ranks = pairs_of_ranks(call.collective, collective_task(&call));

    for (int c = 0; c < call.channels; c++) {
        collective_order(&call, c, order);
        for (size_t i = 0; i < ranks.count; i++) {
            const struct pair *pair = &ranks.items[i];
            int ends[] = {group->gpus[order[pair->src]], group->gpus[order[pair->dst]]};
            bool inside = cluster_within_node(group->cluster, ends, 2);

            *GROW(&whole) = pair_of(ends[0], ends[1], pair->payload, inside ? &tuning.inside : &tuning.between);
        }
    }
    free(order);
    free(ranks.items);
    free(wanted->pairs.items);
    wanted->pairs = whole;
}

/* Whether all members send as many bytes and are done at the same time, but for rounding. Where one channel stands for
 * several, the others have each member of a node do what the one `shift` places before it does on the first. */
static bool members_alike(const struct program *program, const uint32_t *done, const struct timeline *timeline,
                          int per_node, int shift)
{
    struct total { double end, sent; } *totals = xcalloc((size_t)program->ranks, sizeof *totals);
    bool alike = true;

    for (int rank = 0; rank < program->ranks; rank++) {
        struct total *total = &totals[rank - rank % per_node + rank % per_node % shift];

        total->end = fmax(total->end, timeline->end[done[rank]]);
    }
    for (size_t i = 0; i < program->ops.count; i++) {
        int rank = program->lanes.items[program->ops.items[i].lane].rank;

        if (program->ops.items[i].kind == OP_TRANSFER)
            totals[rank - rank % per_node + rank % per_node % shift].sent += program->ops.items[i].amount;
    }
    for (int rank = 0; rank < program->ranks; rank++)
        if (rank % per_node < shift)
            alike = alike && fabs(totals[rank].end - timeline->makespan) <= ROUNDING * timeline->makespan &&
                    fabs(totals[rank].sent - totals[0].sent) <= ROUNDING * totals[0].sent;
    free(totals);
    return alike;
}

/* `share`: the part of the first group's messages that is replayed; less than 1 if it is folded. */
static int run(struct measure *measure, struct measurement *wanted, const struct folded *folded, double share,
               struct error *err)
{
    const struct placed_group *group = wanted->call->group;
    int members = folded ? folded->n : group->n, per_node = group->per_node, rc;
    struct program program = {.progress = measure->progress};
    struct timeline timeline;
    uint32_t *done = lower_groups(measure, wanted, folded, &program);
    bool few = folded && folded->channels < wanted->result.channels;
    double bytes = 0, messages = 0;

    BUG_IF(program.endless);             /* bytes of collectives are finite */
    timeline_init(&timeline, &program);
    rc = replay(measure->engine, &program, folded ? folded->cluster : measure->cluster, &timeline, err);
    for (size_t i = 0; i < program.ops.count; i++) {
        const struct op *op = &program.ops.items[i];

        if (op->kind == OP_TRANSFER && program.lanes.items[op->lane].rank < members) {
            const struct op_transfer *transfer = &op_traits(&program, op)->transfer;

            if (measure->counts)
                *GROW(&wanted->pairs) = pair_of((int)transfer->src, (int)transfer->dst, op->amount, transfer);
            bytes += payload_bytes(op->amount, transfer);
            messages++;
        }
    }
    wanted->result.seconds = timeline.makespan;
    wanted->result.alike = !rc && members_alike(&program, done, &timeline, per_node, few ? folded->channels *
                                                (per_node / wanted->result.channels) : per_node);
    wanted->result.bytes_sent = bytes / share / group->n;
    wanted->result.messages = rint(messages / share);
    if (folded && measure->counts)
        unfold_pairs(wanted);
    merge_pairs(&wanted->pairs);
    free(done);
    timeline_release(&timeline);
    program_release(&program);
    return rc;
}

/* A message takes some hundred bytes until it is replayed, and each rank has 8 bytes for each chunk: more of these
 * would fill a machine's memory. */
enum { MOST_MESSAGES = 1 << 26, MOST_CHUNKS = 1 << 29 };

/* Replays what collective_choose has chosen. */
static int measure_anew(struct measure *measure, struct measurement *wanted, struct error *err)
{
    struct collective_call call = collective_chosen(*wanted->call, wanted->result.used, wanted->result.channels);
    const struct collective *collective = wanted->call->collective, *used = call.collective;
    int n = call.group->n, rc;
    struct task task = collective_task(&call);
    struct folded folded;
    bool folds = collective_fold(&folded, &call, wanted->key.ngroups);
    double share = folds ? (double)folded.n / n * folded.channels / call.channels : 1;

    if (folds && measure->engine == ENGINE_IDEAL)
        folded.cluster->narrower = 1;        /* nothing else is on its links, folded or not */

    wanted->result.of_nodes = folded.of_nodes;
    wanted->result.of_channels = folded.of_channels;
    double messages = collective_messages(used, &task) * call.channels * wanted->key.ngroups * share;
    double chunks = (double)(folds ? folded.n : n) * used->chunks(&task);

    if (messages > MOST_MESSAGES)
        rc = error_clash(err, (struct loc){0},
                         "%s: %s over %d ranks would be up to %.2g messages; expected at most %.2g: fewer ranks "
                         "or channels, or another algorithm (dtsim list collectives)",
                         collective_op_names[collective->op], collective->name, n, messages, (double)MOST_MESSAGES);
    else if (chunks > MOST_CHUNKS)
        rc = error_clash(err, (struct loc){0},
                         "%s: %s over %d ranks would be up to %.2g chunks on ranks; expected at most %.2g: fewer "
                         "ranks, or another algorithm (dtsim list collectives)", collective_op_names[collective->op],
                         used->name, n, chunks, (double)MOST_CHUNKS);
    else
        rc = progress_admit(measure->progress, messages, err) ||
             run(measure, wanted, folds ? &folded : NULL, share, err) ? -1 : 0;
    if (folds)
        folded_release(&folded);
    return rc;
}

/* Measures what no one asked for before. */
static int measure_first(struct measure *measure, struct measurement *wanted, struct error *err)
{
    struct collective_choice choice = collective_choose(wanted->call);

    wanted->result.channels = choice.channels;
    wanted->result.used = choice.used;
    wanted->result.protocol = choice.protocol;
    wanted->result.index = -1;
    if (measure_anew(measure, wanted, err)) {
        free(wanted->pairs.items);
        return -1;
    }
    if (measure->counts) {
        wanted->result.index = (int)measure->counted.count;
        *GROW(&measure->counted) = (struct counted){wanted->pairs, wanted->call->group->gpus[0]};
    }
    return 0;
}

int measure_collective(struct measure *measure, const struct collective_call *call, int ngroups,
                       struct measured *result, struct error *err)
{
    const struct placed_group *group = call->group;
    struct collective_call asked = *call;
    struct measurement wanted = {.key = {.collective = (uintptr_t)call->collective, .bytes = call->bytes,
                                         .engine = (int)measure->engine, .ngroups = ngroups, .n = group->n},
                                 .call = &asked};
    const struct measured *known;
    bool placed;

    BUG_IF((measure->counts && measure->cache != &measure->own) || group->cluster != measure->cluster);
    *result = (struct measured){.used = call->collective, .channels = 1, .protocol = PROTOCOL_NONE, .index = -1};
    if (group->n <= 1)
        return 0;
    if (collective_check_group(call->collective, group, err)) {
        measure->failed = true;
        return -1;
    }
    wanted.key.channels = asked.channels = call->channels ? call->channels : placed_group_channels(group);
    placed = find_placement(measure, group->gpus, (size_t)ngroups * (size_t)group->n, &wanted.key.placement);
    known = placed ? cache_find(measure->cache, CACHE_COLLECTIVE, &wanted.key, sizeof wanted.key) : NULL;
    if (!known && measure_first(measure, &wanted, err)) {
        measure->failed = true;
        return -1;
    }
    *result = known ? *known : wanted.result;
    result->first = group->gpus[0];
    if (placed && !known)
        cache_copy(measure->cache, CACHE_COLLECTIVE, &wanted.key, sizeof wanted.key, result, sizeof *result);
    return 0;
}

void measure_carry(struct measure *measure, int index, int first, int kind, double bytes)
{
    struct carried_list *list = &measure->carried;

    if (index < 0 || bytes == 0)
        return;
    for (size_t i = list->count; i-- > 0;)
        if (list->items[i].index == index && list->items[i].first == first && list->items[i].kind == kind) {
            list->items[i].bytes += bytes;
            return;
        }
    *GROW(list) = (struct carried){index, first, kind, bytes};
}

const struct pairs *measure_pairs(const struct measure *measure, const struct carried *carried, int *shift)
{
    const struct counted *counted = &measure->counted.items[carried->index];

    *shift = carried->first - counted->first;
    return &counted->pairs;
}
