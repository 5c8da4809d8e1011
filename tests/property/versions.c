/* Versions of the weights under asynchronous schedules: how many each rank holds, and in how many bytes. */
#include "simulated.h"

enum { STAGES = 4, PARAMETERS = 1000000 };

/* B of a rank's weights, older versions included. */
static double weights_of(const struct simulated *simulated, int rank)
{
    return memory_states(&simulated->scenario, simulated->workload.stages, rank).bytes[MEMORY_PARAMETERS];
}

static void run_schedule(struct simulated *simulated, const char *strategy, const char *batch, const char *precision)
{
    run_text(simulated, "model: {stages: {forward: 1 s, backward: 2 s, parameters: %d}}\ncluster: ideal\n"
             "batch: {%s}\nstrategy: {pipeline: %d, data: 1, %s}\nmemory: {precision: %s}\n"
             "simulation: {engine: ideal}\n", PARAMETERS, batch, STAGES, strategy, precision);
}

/* PipeDream-2BW: two on every rank (arXiv 2006.09503, section 3.1: a delay of one on all stages), however few the
 * batches in the rows, the older one in fp32 (its runtime, megatron/optimizer/optimizer.py: weight_stashing). */
static void test_double_buffered(void **state)
{
    static const char *const batches[] = {"micro_batches: 16, count: 3", "micro_batches: 4", "micro_batches: 2",
                                          "micro_batches: 8, count: 1"};
    static const struct { const char *precision; double newest; } precisions[] = {
        {"mixed-fp16", 2}, {"mixed-bf16", 2}, {"fp32", 4},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(batches); i++)
        for (size_t k = 0; k < COUNT(precisions); k++) {
            struct simulated simulated;

            run_schedule(&simulated, "schedule: pipedream-2bw", batches[i], precisions[k].precision);
            for (int rank = 0; rank < STAGES; rank++) {
                assert_int_equal(simulated.workload.stages[rank].versions, 2);
                expect_near("weights", weights_of(&simulated, rank), (precisions[k].newest + 4) * PARAMETERS,
                            batches[i]);
            }
            simulated_release(&simulated);
        }
}

/* PipeDream: one version of the weights for each minibatch in flight, in the format of the kernels (its
 * runtime/optimizer.py clones the modules' states). With vertical_sync later ranks hold more: one for each minibatch
 * that the input stage is behind them. */
static void test_stashed(void **state)
{
    static const struct { const char *strategy; int versions[STAGES]; } cases[] = {
        {"schedule: pipedream", {4, 3, 2, 1}},
        {"schedule: pipedream, vertical_sync: true", {4, 4, 4, 4}},
        {"schedule: 1f1b", {1, 1, 1, 1}},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct simulated simulated;

        run_schedule(&simulated, cases[i].strategy, "micro_batches: 16", "mixed-fp16");
        for (int rank = 0; rank < STAGES; rank++)
            expect_near("weights", weights_of(&simulated, rank), 2.0 * cases[i].versions[rank] * PARAMETERS,
                        cases[i].strategy);
        simulated_release(&simulated);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_double_buffered), cmocka_unit_test(test_stashed)};

    return cmocka_run_group_tests_name("versions", tests, NULL, NULL);
}
