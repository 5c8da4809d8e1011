/* whole_collective: a collective measured as ever, folded where it can be, and the same with all of its messages. */
#ifndef DTSIM_TEST_WHOLE_COLLECTIVE_H
#define DTSIM_TEST_WHOLE_COLLECTIVE_H

#include "cluster_files.h"
#include "collective_run.h"
#include "collective/measure.h"
#include "trials.h"

enum { MOST_GPUS = 128 };

/* Any collective of the list that the cluster can run. */
static const struct collective *any_collective(const struct cluster *cluster, uint64_t *seed)
{
    const struct collective *collective;
    size_t count = 0;

    while (collective_at(count))
        count++;
    do
        collective = collective_at((size_t)random_below(seed, (int)count));
    while (!collective_runs_on(collective, cluster) || !collective->write_messages);
    return collective;
}

/* The collective to measure. */
struct question {
    struct cluster cluster;
    const struct collective *collective;
    int gpus[4 * MOST_GPUS], ngroups, n, channels;
    double bytes;
};

/* All members of all groups, without folding. */
static inline struct measured measure_whole(const struct question *question, enum engine engine)
{
    int n = question->n, channels = question->channels;
    uint32_t *done = xcalloc((size_t)n, sizeof *done);
    struct program program = {.ranks = question->ngroups * n};
    struct measured measured = {0};
    struct timeline timeline;
    struct dags dags = {0};

    for (int g = 0; g < question->ngroups; g++) {
        struct placed_group group = placed_group_of(&question->cluster, question->gpus + g * n, n);

        struct collective_call call = {question->collective, &group, question->bytes, channels};
        int stride = collective_lanes(&call);
        uint32_t *lanes = xcalloc((size_t)(n * stride), sizeof *lanes);

        for (int i = 0; i < n * stride; i++)
            lanes[i] = program_lane(&program, g * n + i / stride, LANE_COLLECTIVE, i % stride);
        collective_lower(&call, NULL, &(struct member_ops){lanes, stride, NULL, done}, (struct new_op){.what = WHAT_SYNC},
                         &program, &dags);
        free(lanes);
    }
    dags_release(&dags);
    timeline_init(&timeline, &program);
    assert_int_equal(replay(engine, &program, &question->cluster, &timeline, &error), 0);
    measured.seconds = timeline.makespan;
    for (size_t i = 0; i < program.ops.count; i++)
        if (program.ops.items[i].kind == OP_TRANSFER && program.lanes.items[program.ops.items[i].lane].rank < n) {
            measured.bytes_sent += payload_bytes(program.ops.items[i].amount,
                                                 &op_traits(&program, &program.ops.items[i])->transfer) / n;
            measured.messages++;
        }
    timeline_release(&timeline);
    program_release(&program);
    free(done);
    return measured;
}

static inline void assert_same(const char *what, double actual, double expected, const struct question *question)
{
    if (fabs(actual - expected) <= 1e-9 * expected)
        return;
    fail_msg("%s: %.15g folded up, %.15g whole: %s, %d groups of %d on %d GPUs and %d NICs a node, %d channels, %g B",
             what, actual, expected, collective_op_names[question->collective->op], question->ngroups, question->n,
             question->cluster.kinds[0].gpus, question->cluster.kinds[0].nics.count, question->channels,
             question->bytes);
}

/* Whether it is folded. */
static inline bool folds(const struct question *question, int *members, int *channels)
{
    struct placed_group group = placed_group_of(&question->cluster, question->gpus, question->n);
    struct collective_call call = {question->collective, &group, question->bytes, question->channels};
    struct collective_choice choice = collective_choose(&call);
    struct collective_call chosen = collective_chosen(call, choice.used, choice.channels);
    struct folded folded;

    if (!collective_fold(&folded, &chosen, question->ngroups))
        return false;
    *members = folded.n;
    *channels = folded.channels;
    folded_release(&folded);
    return true;
}

/* Compares on both engines; returns the protocol. */
static inline int check_question(const struct question *question)
{
    struct measured measured, whole;

    for (enum engine engine = ENGINE_SIMGRID; engine <= ENGINE_IDEAL; engine++) {
        struct measure measure;

        measure_init(&measure, engine, &question->cluster);
        struct placed_group group = placed_group_of(&question->cluster, question->gpus, question->n);
        struct collective_call call = {question->collective, &group, question->bytes, question->channels};

        assert_int_equal(measure_collective(&measure, &call, question->ngroups, &measured, &error), 0);
        measure_release(&measure);
        whole = measure_whole(question, engine);
        assert_same(engine_names[engine], measured.seconds, whole.seconds, question);
        assert_same("bytes sent", measured.bytes_sent, whole.bytes_sent, question);
        assert_same("messages", measured.messages, whole.messages, question);
    }
    return measured.protocol;
}

#endif
