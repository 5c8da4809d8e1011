#include "collective/measure.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct measurement {
    const struct collective *collective;
    double bytes;
    int channels, ngroups, n;
    int *place;              /* of each GPU: node and leaf from the first GPU's, index within the node */
    struct measured result;
};

void measure_init(struct measure *measure, enum engine engine, const struct cluster *cluster)
{
    *measure = (struct measure){.engine = engine, .cluster = cluster};
}

void measure_release(struct measure *measure)
{
    for (size_t i = 0; i < measure->done.count; i++)
        free(measure->done.items[i].place);
    free(measure->done.items);
    memset(measure, 0, sizeof *measure);
}

/* Two placements that are the same but for which nodes (and which leaves) they begin at take the same time. */
static int *relative_place(const struct cluster *cluster, const int *gpus, size_t count)
{
    int *place = xcalloc(3 * count, sizeof *place);
    int node0 = cluster_node_of(cluster, gpus[0]), leaf0 = cluster_leaf_of(cluster, node0);

    for (size_t i = 0; i < count; i++) {
        int node = cluster_node_of(cluster, gpus[i]);

        place[3 * i] = node - node0;
        place[3 * i + 1] = cluster_leaf_of(cluster, node) - leaf0;
        place[3 * i + 2] = gpus[i] - node * cluster->gpus_per_node;
    }
    return place;
}

static const struct measurement *find(const struct measure *measure, const struct measurement *wanted)
{
    size_t size = 3 * (size_t)wanted->ngroups * (size_t)wanted->n * sizeof(int);

    for (size_t i = 0; i < measure->done.count; i++) {
        const struct measurement *old = &measure->done.items[i];

        if (old->collective == wanted->collective && old->bytes == wanted->bytes && old->n == wanted->n &&
            old->ngroups == wanted->ngroups && old->channels == wanted->channels &&
            !memcmp(old->place, wanted->place, size))
            return old;
    }
    return NULL;
}

/* Every group's collective in one program, all starting at once; of a group only the members that stand for all. */
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

/* `share` of the first group's messages are replayed. */
static int run(const struct measure *measure, struct measurement *wanted, const int *gpus,
               const struct folded_ring *folded, double share, struct error *err)
{
    int members = folded ? folded->n : wanted->n, rc;
    struct program program = {0};
    struct timeline timeline;
    double bytes = 0, messages = 0;

    lower_groups(measure, wanted, gpus, folded, &program);
    timeline_init(&timeline, &program);
    rc = replay(measure->engine, &program, measure->cluster, &timeline, err);
    for (size_t i = 0; i < program.ops.count; i++) {
        const struct op *op = &program.ops.items[i];

        if (op->kind == OP_TRANSFER && program.lanes.items[op->lane].rank < members) {
            bytes += op->amount;
            messages++;
        }
    }
    wanted->result.seconds = timeline.makespan;
    wanted->result.bytes_sent = bytes / share / wanted->n;
    wanted->result.messages = rint(messages / share);
    timeline_release(&timeline);
    program_release(&program);
    return rc;
}

/* A message takes some hundred bytes until it is replayed: more would take all of a machine's memory. */
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
        rc = run(measure, wanted, gpus, folds ? &folded : NULL, share, err);
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

    *result = (struct measured){.used = collective, .channels = 1, .protocol = PROTOCOL_NONE};
    if (n <= 1)
        return 0;
    wanted.channels = channels ? channels : collective_channels(measure->cluster, &group);
    wanted.place = relative_place(measure->cluster, gpus, (size_t)ngroups * (size_t)n);
    known = find(measure, &wanted);
    if (known) {
        *result = known->result;
        free(wanted.place);
        return 0;
    }
    struct collective_choice choice = collective_choose(collective, measure->cluster, &group, bytes, wanted.channels);
    wanted.result.channels = choice.channels;
    wanted.result.used = choice.used;
    wanted.result.protocol = choice.protocol;
    if (measure_anew(measure, &wanted, gpus, err)) {
        free(wanted.place);
        return -1;
    }
    *GROW(&measure->done) = wanted;
    *result = wanted.result;
    return 0;
}
