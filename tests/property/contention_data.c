/* contention_data: how much collectives over replicas slow down the kernels that they overlap with. */
#include "hardware/cluster.h"
#include "hardware/gpu.h"
#include "kernels/contention.h"
#include "simulated.h"
#include "work_seconds.h"

enum { LAYERS = 4, CHANNELS = 24, SMS = 108 };       /* nccl-ampere in one node, a100-80gb */
static const double share = (double)CHANNELS / SMS;

static void run_data(struct simulated *simulated, const char *strategy, const char *profile, const char *simulation)
{
    run_text(simulated,
             "model: {transformer: {layers: %d, hidden: 2048, heads: 16, sequence: 1024, vocabulary: 2048}}\n"
             "cluster: {platform: dgx-a100, nodes: 1, communication: %s}\nbatch: {micro: 8, micro_batches: 2}\n"
             "memory: {enforce: false}\nstrategy: {data: 8, %s}\nsimulation: {%s}\n",
             LAYERS, profile, strategy, simulation);
}

/* Seconds during which a collective of rank 0 overlaps with one of its works. */
static double together(const struct simulated *simulated)
{
    const struct timeline *timeline = &simulated->run.timeline;
    size_t count = simulated->run.lowered.program.ops.count;
    double seconds = 0;

    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; on_lane(simulated, i, LANE_COLLECTIVE) && k < count; k++)
            if (on_lane(simulated, k, LANE_COMPUTE) && simulated->run.lowered.program.ops.items[k].what < WHAT_PACK)
                seconds += fmax(0, fmin(timeline->end[i], timeline->end[k]) -
                                       fmax(timeline->start[i], timeline->start[k]));
    return seconds;
}

/* DDP's buckets and ZeRO 3's gathers and scatters: while they overlap with kernels, these lose the share of the
 * multiprocessors that the collectives take. Kernels lose nothing without a profile of the library, and nothing where
 * no collective overlaps with them. */
static void conservation(void **state)
{
    static const char *const overlapping[] = {
        "data_parallel: ddp", "data_parallel: ddp, bucket: 200 MiB", "zero: 1", "zero: 3", "zero: 3, schedule: zb-h1",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(overlapping); i++)
        for (int k = 0; k < 2; k++) {
            struct simulated with, without;
            double lost = 0;

            run_data(&with, overlapping[i], "nccl-ampere", k ? "collectives: measured, engine: simgrid"
                                                             : "collectives: measured, engine: ideal");
            run_data(&without, overlapping[i], "none", "collectives: measured, engine: ideal");
            for (int what = WHAT_FORWARD; what < WHAT_PACK; what++) {
                lost += communication(&with, (enum op_what)what);
                assert_true(communication(&without, (enum op_what)what) == 0);
            }
            assert_true(together(&with) > 0);
            expect_near("lost", lost, share * together(&with), with.text);
            simulated_release(&with);
            simulated_release(&without);
        }
    struct simulated after;
    run_data(&after, "data_parallel: synchronous", "nccl-ampere", "collectives: measured");
    assert_true(communication(&after, WHAT_BACKWARD) == 0 && together(&after) == 0);
    simulated_release(&after);
}

/* As messages the sums take what they take when measured, so kernels lose as much. */
static void messages_agree(void **state)
{
    struct simulated measured, messages;

    (void)state;
    run_data(&measured, "data_parallel: ddp", "nccl-ampere", "collectives: measured, fold: off");
    run_data(&messages, "data_parallel: ddp", "nccl-ampere", "collectives: messages");
    assert_true(communication(&measured, WHAT_BACKWARD) > 0);
    expect_near("lost", communication(&messages, WHAT_BACKWARD), communication(&measured, WHAT_BACKWARD),
                messages.text);
    assert_true(fabs(messages.run.timeline.makespan / measured.run.timeline.makespan - 1) < 1e-6);
    simulated_release(&measured);
    simulated_release(&messages);
}

/* On Hopper, without a margin, products take twice as long beside a collective, and other kernels lose its multiprocessors; with
 * one, and on any other chip, products lose these too. */
static void products_in_waves(void **state)
{
    static const char *const platforms[] = {"dgx-h100", "hgx-h200", "dgx-a100", "dgx-b200"};
    static const int gpus[] = {0, 1};

    (void)state;
    for (size_t i = 0; i < COUNT(platforms); i++)
        for (int margin = 0; margin < 2; margin++) {
            struct simulated simulated;
            struct contention_share lost;
            double overlapped, part;

            run_text(&simulated,
                     "model: {transformer: {layers: %d, hidden: 2048, heads: 16, sequence: 1024, vocabulary: 2048}}\n"
                     "cluster: {platform: %s, nodes: 1}\nbatch: {micro: 8, micro_batches: 1}\n"
                     "memory: {enforce: false}\nstrategy: {data: 8, data_parallel: ddp, sm_margin: %s}\n"
                     "simulation: {collectives: measured, engine: ideal}\n",
                     LAYERS, platforms[i], margin ? "true" : "false");
            lost = contention_share(&simulated.scenario.cluster, gpus, 2, margin);
            part = 24.0 / cluster_sheet(&simulated.scenario.cluster, 0)->multiprocessors;
            assert_true(fabs(lost.all - part) < 1e-12 && fabs(lost.products - (!margin && i < 2 ? 0.5 : part)) < 1e-12);
            assert_true((overlapped = together(&simulated)) > 0);
            part = communication(&simulated, WHAT_BACKWARD) / overlapped;
            if (!margin && i < 2)        /* a part of its kernels are products */
                assert_true(part > lost.all + 0.25 * (lost.products - lost.all) && part < lost.products);
            else
                expect_near("lost", part, lost.all, simulated.text);
            simulated_release(&simulated);
        }
}

/* In a node, the profile's channels; between nodes two for each NIC. */
static void channels(void **state)
{
    static const int near[] = {0, 1}, far[] = {0, 8};

    (void)state;
    for (int nics = 1; nics <= 8; nics *= 2) {
        struct simulated simulated;

        run_text(&simulated,
                 "model: {transformer: {layers: 1, hidden: 64, heads: 1, sequence: 64, vocabulary: 64}}\n"
                 "cluster: {platform: dgx-a100, nodes: 2, network: {nics: %d}}\nbatch: {global: 16}\n"
                 "simulation: {engine: ideal}\n", nics);
        assert_true(contention_share(&simulated.scenario.cluster, near, 2, false).all == share);
        assert_true(contention_share(&simulated.scenario.cluster, far, 2, false).products == 2.0 * nics / SMS);
        simulated_release(&simulated);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conservation), cmocka_unit_test(messages_agree), cmocka_unit_test(channels),
        cmocka_unit_test(products_in_waves),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
