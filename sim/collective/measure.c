#include "collective/measure.h"

#include "base/progress.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct measurement {
    const struct collective *collective;
    double bytes;
    int channels, ngroups, n;
    int *place;              /* a GPU: node and leaf relative to the first GPU's, index within the node, slow NIC */
    struct measured result;
    struct pairs pairs;      /* of the first group */
};

void measure_init(struct measure *measure, enum engine engine, const struct cluster *cluster)
{
    *measure = (struct measure){.engine = engine, .cluster = cluster};
}

void measure_release(struct measure *measure)
{
    for (size_t i = 0; i < measure->done.count; i++) {
        free(measure->done.items[i].place);
        free(measure->done.items[i].pairs.items);
    }
    free(measure->done.items);
    free(measure->carried.items);
    memset(measure, 0, sizeof *measure);
}

enum { PLACE = 4 };

/* Two placements that differ only in their first node and leaf take the same time, if no NIC of theirs is slower than
 * others: such a NIC is like itself alone. */
static int *relative_place(const struct cluster *cluster, const int *gpus, size_t count)
{
    int *place = xcalloc(PLACE * count, sizeof *place);
    int node0 = cluster_node_of(cluster, gpus[0]), leaf0 = cluster_leaf_of(cluster, node0);

    for (size_t i = 0; i < count; i++) {
        int node = cluster_node_of(cluster, gpus[i]);

        place[PLACE * i] = node - node0;
        place[PLACE * i + 1] = cluster_leaf_of(cluster, node) - leaf0;
        place[PLACE * i + 2] = gpus[i] - node * cluster->gpus_per_node;
        place[PLACE * i + 3] = cluster_nic_share(cluster, gpus[i]) < 1 ? 1 + cluster_nic_of(cluster, gpus[i]) : 0;
    }
    return place;
}

static const struct measurement *find(const struct measure *measure, const struct measurement *wanted)
{
    size_t size = PLACE * (size_t)wanted->ngroups * (size_t)wanted->n * sizeof(int);

    for (size_t i = 0; i < measure->done.count; i++) {
        const struct measurement *old = &measure->done.items[i];

        if (old->collective == wanted->collective && old->bytes == wanted->bytes && old->n == wanted->n &&
            old->ngroups == wanted->ngroups && old->channels == wanted->channels &&
            !memcmp(old->place, wanted->place, size))
            return old;
    }
    return NULL;
}

/* Lowers every group's collective into one program; all start at once. A folded ring has only its own members. */
static void lower_groups(const struct measure *measure, const struct measurement *wanted, const int *gpus,
                         const struct folded_ring *folded, struct program *program)
{
    int channels = wanted->channels, members = folded ? folded->n : wanted->n;
    uint32_t *lanes = xcalloc((size_t)members * (size_t)channels, sizeof *lanes);
    uint32_t *done = xcalloc((size_t)members, sizeof *done);

    program->ranks = wanted->ngroups * members;
    for (int g = 0; g < wanted->ngroups; g++) {
        struct group group = {.n = wanted->n, .gpus = gpus + (size_t)g * (size_t)wanted->n};
        struct folded_ring own;

        if (folded) {
            own = (struct folded_ring){folded->n, folded->channels, folded->gpus + g * members};
            group.folded = &own;
        }
        for (int m = 0; m < members; m++)
            for (int c = 0; c < channels; c++)
                lanes[m * channels + c] = program_lane(program, g * members + m, LANE_COLLECTIVE, c);
        collective_lower(wanted->collective, measure->cluster, &group, wanted->bytes, channels, lanes, NULL,
                         (struct op){.what = WHAT_SYNC, .mb = -1, .stage = -1}, program, done);
    }
    free(lanes);
    free(done);
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
    qsort(pairs->items, pairs->count, sizeof *pairs->items, by_pair);
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

/* The pairs of a folded ring's whole ring: every member sends the same bytes to the next one, on every channel. */
static void unfold_pairs(const struct measure *measure, struct measurement *wanted, const int *gpus)
{
    struct pairs whole = {0};
    struct group group = {.n = wanted->n, .gpus = gpus};
    int *order = xcalloc((size_t)wanted->n, sizeof *order), channels = wanted->result.channels;
    double payload = wanted->result.bytes_sent / channels, overhead[2] = {0};

    for (size_t i = 0; i < wanted->pairs.count; i++) {
        const struct pair *pair = &wanted->pairs.items[i];

        if (pair->payload > 0)
            overhead[cluster_within_node(measure->cluster, (int[]){pair->src, pair->dst}, 2)] =
                pair->wire / pair->payload;
    }
    for (int c = 0; c < channels; c++) {
        collective_order(measure->cluster, &group, c, channels, wanted->result.used, order);
        for (int i = 0; i < wanted->n; i++) {
            int ends[] = {gpus[order[i]], gpus[order[(i + 1) % wanted->n]]};

            *GROW(&whole) = (struct pair){
                ends[0], ends[1], payload, payload * overhead[cluster_within_node(measure->cluster, ends, 2)],
            };
        }
    }
    free(order);
    free(wanted->pairs.items);
    wanted->pairs = whole;
}

/* `share`: the part of the first group's messages that is replayed; less than 1 for a folded ring. */
static int run(const struct measure *measure, struct measurement *wanted, const int *gpus,
               const struct folded_ring *folded, double share, struct error *err)
{
    int members = folded ? folded->n : wanted->n, rc;
    struct program program = {.progress = measure->progress};
    struct timeline timeline;
    double bytes = 0, messages = 0;

    lower_groups(measure, wanted, gpus, folded, &program);
    timeline_init(&timeline, &program);
    rc = replay(measure->engine, &program, measure->cluster, &timeline, err);
    for (size_t i = 0; i < program.ops.count; i++) {
        const struct op *op = &program.ops.items[i];

        if (op->kind == OP_TRANSFER && program.lanes.items[op->lane].rank < members) {
            *GROW(&wanted->pairs) = (struct pair){(int)op->transfer.src, (int)op->transfer.dst, op->amount,
                                                   op_wire(op)};
            bytes += op->amount;
            messages++;
        }
    }
    wanted->result.seconds = timeline.makespan;
    wanted->result.bytes_sent = bytes / share / wanted->n;
    wanted->result.messages = rint(messages / share);
    if (folded)
        unfold_pairs(measure, wanted, gpus);
    merge_pairs(&wanted->pairs);
    timeline_release(&timeline);
    program_release(&program);
    return rc;
}

/* A message takes some hundred bytes until it is replayed: more messages would fill a machine's memory. */
enum { MOST_MESSAGES = 1 << 26 };

/* Replays what collective_choose has chosen. */
static int measure_anew(const struct measure *measure, struct measurement *wanted, const int *gpus, struct error *err)
{
    const struct collective *collective = wanted->collective, *used = wanted->result.used;
    int n = wanted->n, channels = wanted->result.channels, rc;
    struct group group = {.n = n, .gpus = gpus};
    struct task task = {.n = n, .per_node = collective_per_node(measure->cluster, &group)};
    struct folded_ring folded;
    bool folds = collective_fold_ring(&folded, used, measure->cluster, gpus, wanted->ngroups, n, channels);
    double share = folds ? (double)folded.n / n * folded.channels / channels : 1;
    double messages = collective_messages(used, &task) * channels * wanted->ngroups * share;

    if (messages > MOST_MESSAGES)
        rc = error_add(err, EXIT_INPUT, (struct loc){0},
                       "%s: %s over %d ranks would be up to %.2g messages; expected at most %.2g: fewer ranks "
                       "or channels, or another algorithm (dtsim list collectives)",
                       collective_op_names[collective->op], collective->name, n, messages, (double)MOST_MESSAGES);
    else
        rc = progress_admit(measure->progress, messages, err) ||
             run(measure, wanted, gpus, folds ? &folded : NULL, share, err) ? -1 : 0;
    if (folds)
        free(folded.gpus);
    return rc;
}

int measure_collective(struct measure *measure, const struct collective *collective, const int *gpus, int ngroups,
                       int n, double bytes, int channels, struct measured *result, struct error *err)
{
    struct measurement wanted = {.collective = collective, .bytes = bytes, .ngroups = ngroups, .n = n};
    struct group group = {.n = n, .gpus = gpus};
    const struct measurement *known;

    *result = (struct measured){.used = collective, .channels = 1, .protocol = PROTOCOL_NONE, .index = -1};
    if (n <= 1)
        return 0;
    wanted.channels = channels ? channels : collective_channels(measure->cluster, &group);
    wanted.place = relative_place(measure->cluster, gpus, (size_t)ngroups * (size_t)n);
    known = find(measure, &wanted);
    if (known) {
        *result = known->result;
        result->first = gpus[0];
        free(wanted.place);
        return 0;
    }
    struct collective_choice choice = collective_choose(collective, measure->cluster, &group, bytes, wanted.channels);
    wanted.result.channels = choice.channels;
    wanted.result.used = choice.used;
    wanted.result.protocol = choice.protocol;
    wanted.result.index = (int)measure->done.count;
    wanted.result.first = gpus[0];
    if (measure_anew(measure, &wanted, gpus, err)) {
        free(wanted.place);
        free(wanted.pairs.items);
        return -1;
    }
    *GROW(&measure->done) = wanted;
    *result = wanted.result;
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
    const struct measurement *measurement = &measure->done.items[carried->index];

    *shift = carried->first - measurement->result.first;
    return &measurement->pairs;
}
