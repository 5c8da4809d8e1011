/* ZeRO 3 that keeps gathered weights (reshard_after_forward: false), FSDP without sums while micro-batches accumulate,
 * and PyTorch's pipeline stages (sums_once): how often weights are gathered and gradients scattered, and what is whole. */
#include "simulated.h"

#define ONCE "reshard_after_forward: false, sums_once: true"

static const char model[] = "model: {transformer: {layers: 8, hidden: 512, heads: 8, sequence: 512, vocabulary: 1000, "
                            "positions: 0, dropout: 0, tied: false}}\ncluster: {platform: dgx-a100, nodes: 2}\n";

/* Parameters of all stages. */
static double parameters_of(const struct simulated *simulated)
{
    double parameters = 0;

    for (int s = 0; s < plan_virtual_stages(&simulated->scenario.plan); s++)
        parameters += simulated->workload.stages[s].parameters;
    return parameters;
}

/* B of a kind of memory that the ranks of a replica hold all the time. */
static double held(const struct simulated *simulated, enum memory_kind kind)
{
    double bytes = 0;

    for (int rank = 0; rank < simulated->scenario.plan.stages; rank++)
        bytes += memory_states(&simulated->scenario, simulated->workload.stages, rank).bytes[kind];
    return bytes;
}

/* A GPU sends (n - 1) / n of its stage's weights in each gather, and as much of its gradients in each scatter. Under
 * 1F1B a rank may keep weights from a forward to the next backward. Then it gathers before the first forward, before
 * each forward after the warm-up, and before each backward of the cool-down. A rank may also keep them from a backward
 * to the next forward. Then it gathers before the forwards of the warm-up and the first forward after them, and before
 * each backward ahead of the cool-down. */
static void test_times(void **state)
{
    enum { MICRO_BATCHES = 6 };
    static const struct { const char *strategy, *software; int replicas, gathers, scatters; } cases[] = {
        {"zero: 3, data: 16", "reshard_after_forward: true", 16, 2 * MICRO_BATCHES, MICRO_BATCHES},
        {"zero: 3, data: 16", "reshard_after_forward: false", 16, MICRO_BATCHES, MICRO_BATCHES},
        {"zero: 3, data: 16, shard: 4", "reshard_after_forward: false", 4, MICRO_BATCHES, MICRO_BATCHES},
        {"zero: 3, pipeline: 4, data: 4", "reshard_after_forward: true", 4, 2 * MICRO_BATCHES, MICRO_BATCHES},
        {"zero: 3, pipeline: 4, data: 4", "reshard_after_forward: false", 4, MICRO_BATCHES, MICRO_BATCHES},
        {"zero: 3, pipeline: 4, data: 4", "sums_once: true", 4, MICRO_BATCHES + 1, 1},
        {"zero: 3, pipeline: 4, data: 4", ONCE, 4, 1, 1},
        {"zero: 3, pipeline: 4, data: 4, schedule: gpipe", ONCE, 4, 1, 1},
        {"zero: 3, pipeline: 2, data: 8, schedule: interleaved, chunks: 2", ONCE, 8, 1, 1},
        {"zero: 3, pipeline: 2, data: 8, schedule: zb-h1", ONCE, 8, 1, 1},
        {"zero: 3, data: 16", "sums_once: true", 16, 2 * MICRO_BATCHES, 1},
        {"zero: 3, data: 16", ONCE, 16, MICRO_BATCHES, 1},
        {"zero: 3, data: 16, shard: 4", "sums_once: true", 4, 2 * MICRO_BATCHES, 1},
        {"zero: 2, data: 16", "sums_once: false", 16, 1, MICRO_BATCHES},
        {"zero: 2, data: 16", "sums_once: true", 16, 1, 1},
        {"zero: 3, data: 16", "like: transformers", 16, 2 * MICRO_BATCHES, 1},
        {"zero: 3, data: 16", "like: litgpt", 16, 2 * MICRO_BATCHES, 1},
        {"zero: 3, data: 16", "like: nemo-automodel", 16, 2 * MICRO_BATCHES, 1},
        {"zero: 3, data: 16", "like: olmo-core", 16, 2 * MICRO_BATCHES, MICRO_BATCHES},
        {"zero: 2, pipeline: 4, data: 4", "sums_once: false", 4, 1, MICRO_BATCHES},
        {"zero: 2, pipeline: 4, data: 4", "sums_once: true", 4, 1, 1},
        {"zero: 3, pipeline: 4, data: 4", "like: torchtitan", 4, 1, 1},
        {"zero: 3, pipeline: 4, data: 4", "like: torchtitan, reshard_after_forward: true", 4, MICRO_BATCHES + 1, 1},
        {"zero: 3, pipeline: 4, data: 4", "like: torchtitan-2025", 4, 1, 1},
        {"zero: 2, pipeline: 4, data: 4", "like: torchtitan", 4, 1, 1},
        {"zero: 3, data: 16", "like: torchtitan", 16, 2 * MICRO_BATCHES, MICRO_BATCHES},
        {"zero: 3, pipeline: 4, data: 4", "like: pytorch-fsdp", 4, 2 * MICRO_BATCHES, MICRO_BATCHES},
    };
    static const char *const recomputes[] = {"none", "full", "optimal"};

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++)
        for (size_t k = 0; k < COUNT(recomputes); k++) {
            struct simulated simulated;
            struct parameter_bytes each;
            double sent, n = cases[i].replicas;

            if (strstr(cases[i].strategy, "zb-h1") && !strcmp(recomputes[k], "optimal"))
                continue;        /* halves of backwards are refused */
            run_text(&simulated, "%sbatch: {micro: 1, micro_batches: %d}\nstrategy: {%s}\nsoftware: {%s}\n"
                     "memory: {precision: mixed-bf16, recompute: %s, limit: 80 GB}\nsimulation: {engine: ideal}\n",
                     model, MICRO_BATCHES, cases[i].strategy, cases[i].software, recomputes[k]);
            each = scenario_parameter_bytes(&simulated.scenario);
            sent = parameters_of(&simulated) / simulated.scenario.plan.stages * (n - 1) / n;
            expect_near("weights", simulated.run.metrics.sent[PAYLOAD_WEIGHTS], cases[i].gathers * sent * each.weights,
                        simulated.text);
            if (!strstr(cases[i].strategy, "shard"))
                expect_near("gradients", simulated.run.metrics.sent[PAYLOAD_WEIGHT_GRADIENTS],
                            cases[i].scatters * sent * each.sent, simulated.text);
            simulated_release(&simulated);
        }
}

/* One micro-batch leaves nothing to add up: all is as without sums_once. */
static void test_one_micro_batch(void **state)
{
    double seconds[2], bytes[2];

    (void)state;
    for (int once = 0; once < 2; once++) {
        struct simulated simulated;

        run_text(&simulated, "%sbatch: {micro: 1, micro_batches: 1}\nstrategy: {zero: 3, data: 16}\n"
                 "software: {sums_once: %s}\nsimulation: {engine: ideal}\n", model, once ? "true" : "false");
        seconds[once] = simulated.run.metrics.iteration_time;
        bytes[once] = held(&simulated, MEMORY_GRADIENTS);
        simulated_release(&simulated);
    }
    assert_true(seconds[0] == seconds[1] && bytes[0] == bytes[1]);
}

/* At rest a share of each; during an iteration all weights, and with sums_once all gradients in the format in which
 * they are sent. In bytes a parameter. */
static void test_whole(void **state)
{
    static const struct { const char *strategy, *software; double gathered, gradients; } cases[] = {
        {"pipeline: 4, data: 4", ONCE ", gradients: half", 2, 2},
        {"pipeline: 4, data: 4", ONCE ", gradients: widened", 2, 4},
        {"pipeline: 2, data: 8, schedule: interleaved, chunks: 2", ONCE ", gradients: fp32", 2, 4},
        {"pipeline: 4, data: 4", "sums_once: true, gradients: half", 2, 2},
        {"pipeline: 4, data: 4", "reshard_after_forward: false, gradients: half", 2, 2.0 / 4},
        {"data: 16", ONCE ", gradients: half", 2, 2},
        {"data: 16", ONCE ", gradients: widened", 2, 4},
        {"data: 16", "reshard_after_forward: false, gradients: half", 2, 2.0 / 16},
        {"data: 16", "reshard_after_forward: false, gradients: widened", 2, 2.0 / 16},
        {"pipeline: 4, data: 4", "like: torchtitan", 2, 4},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct simulated simulated;
        double parameters, share;

        run_text(&simulated, "%sbatch: {micro: 1, micro_batches: 4}\nstrategy: {zero: 3, %s}\nsoftware: {%s}\n"
                 "memory: {precision: mixed-bf16}\nsimulation: {engine: ideal}\n", model, cases[i].strategy,
                 cases[i].software);
        parameters = parameters_of(&simulated);
        share = parameters / scenario_replicas(&simulated.scenario);
        expect_near("parameters", held(&simulated, MEMORY_PARAMETERS), 2 * share, simulated.text);
        expect_near("optimizer", held(&simulated, MEMORY_OPTIMIZER), 12 * share, simulated.text);
        expect_near("gathered", held(&simulated, MEMORY_GATHERED), cases[i].gathered * parameters, simulated.text);
        expect_near("gradients", held(&simulated, MEMORY_GRADIENTS), cases[i].gradients * parameters, simulated.text);
        simulated_release(&simulated);
    }
}

/* Between the first forwards and the sums replicas do not wait for each other: what differs at random from work to work
 * evens out over an iteration, as under ZeRO 1; where layers are gathered in every work, it does not. */
static void test_apart(void **state)
{
    static const char *const strategies[] = {"zero: 1, data_parallel: synchronous", "zero: 3", "zero: 3"};
    static const char *const keys[] = {"", (", " ONCE), ""};
    double lost[COUNT(strategies)];

    (void)state;
    for (size_t i = 0; i < COUNT(strategies); i++)
        for (int random = 0; random < 2; random++) {
            struct simulated simulated;

            run_text(&simulated, "%sbatch: {micro: 1, micro_batches: 16}\nstrategy: {pipeline: 2, data: 8, %s}\n"
                     "software: {like: none%s}\nsimulation: {engine: ideal, jitter: %s}\n", model, strategies[i],
                     keys[i], random ? "0.2" : "0");
            lost[i] = simulated.run.metrics.iteration_time - (random ? lost[i] : 0);
            simulated_release(&simulated);
        }
    assert_true(fabs(lost[1] - lost[0]) < 0.1 * lost[0]);
    assert_true(lost[2] > 1.5 * lost[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_times), cmocka_unit_test(test_one_micro_batch), cmocka_unit_test(test_whole),
        cmocka_unit_test(test_apart),
    };

    return cmocka_run_group_tests_name("reshard", tests, NULL, NULL);
}
