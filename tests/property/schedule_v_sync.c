/* What schedules with two copies of the model, with chunks in a V and with recomputation just in time ask of the rest:
 * gradients, memory, data parallelism. */
#include "simulated.h"

/* Long layers and short ones; gradients of a bucket each. */
#define LAYERS \
    "  - {parameters: 10 M, forward: 3 s, backward: 7 s, recompute: 3 s}\n" \
    "  - {parameters: 10 M, forward: 1 s, backward: 2 s, recompute: 1 s}\n" \
    "  - {parameters: 10 M, forward: 3 s, backward: 7 s, recompute: 3 s}\n" \
    "  - {parameters: 10 M, forward: 1 s, backward: 2 s, recompute: 1 s}\n"

static const char *const modes[] = {"messages", "measured"};

/* The two copies sum their gradients even without replicas: a ring over all holders of a stage. */
static void test_gradients_of_both_copies(void **state)
{
    (void)state;
    for (int data = 1; data <= 4; data++)
        for (int p = 2; p <= 6; p += 2)
            for (size_t mode = 0; mode < COUNT(modes); mode++) {
                double bytes = 4e6, holders = 2 * data;
                struct simulated simulated;

                run_text(&simulated, "model: {stages: {forward: 1 s, parameters: 1 M}}\n"
                         "cluster: {nodes: 8, gpus_per_node: 4, gpu: a100-80gb, inside: {bandwidth: 1 GB/s, latency: "
                         "0 s},\n          network: {bandwidth: 1 GB/s, latency: 0 s, nics: 4}}\n"
                         "batch: {micro_batches: %d}\nstrategy: {schedule: chimera, pipeline: %d, data: %d}\n"
                         "memory: {precision: fp32, enforce: false}\n"
                         "simulation: {engine: ideal, collectives: %s}\n", p, p, data, modes[mode]);
                expect_near("bytes of a GPU", simulated.run.metrics.communication_bytes_per_gpu,
                            2 * 2 * (holders - 1) / holders * bytes, simulated.text);
                /* the gradients of both of a rank's stages are ready at different times; the last is seen whole */
                assert_true(simulated.run.metrics.exposed_communication > 0);
                expect_near("parameters", simulated.run.metrics.memory.bytes[MEMORY_PARAMETERS], 2 * bytes,
                            simulated.text);
                simulated_release(&simulated);
            }
}

/* ZeRO 1 divides the states of a stage among all of its holders, of both copies. The reduce-scatter of gradients and
 * the gather of weights send the bytes of the all-reduce that they stand for. */
static void test_states_of_both_copies(void **state)
{
    static const char *const schedules[] = {"chimera", "dualpipe"};

    (void)state;
    for (size_t i = 0; i < COUNT(schedules) * COUNT(modes) * 4; i++) {
        int data = 1 + (int)(i % 4);
        struct simulated zero[2];

        for (int k = 0; k < 2; k++)
            run_text(&zero[k], "model: {stages: {forward: 1 s, backward: 2 s, parameters: 1 M}}\n"
                     "cluster: {nodes: 4, gpus_per_node: 4, gpu: a100-80gb, inside: {bandwidth: 1 GB/s, latency: "
                     "0 s},\n          network: {bandwidth: 1 GB/s, latency: 0 s, nics: 4}}\n"
                     "batch: {micro_batches: 8}\n"
                     "strategy: {schedule: %s, pipeline: 4, data: %d, zero: %d, data_parallel: synchronous}\n"
                     "memory: {precision: mixed-bf16, gradients: half, enforce: false}\n"
                     "simulation: {engine: ideal, collectives: %s}\n",
                     schedules[i / 4 % 2], data, data > 1 ? k : 0, modes[i / 8]);
        for (int k = 0; k < 2; k++)
            expect_near("states of 12 B", zero[k].run.metrics.memory.bytes[MEMORY_OPTIMIZER],
                        12 * 2e6 / (k && data > 1 ? 2 * data : 1), zero[k].text);
        expect_near("bytes of a GPU", zero[1].run.metrics.communication_bytes_per_gpu,
                    zero[0].run.metrics.communication_bytes_per_gpu, zero[1].text);
        assert_true(zero[1].run.metrics.iteration_time < 1.1 * zero[0].run.metrics.iteration_time);
        simulated_release(&zero[0]);
        simulated_release(&zero[1]);
    }
}

/* On a free network, replicas change nothing, wherever buckets cut the backwards. */
static void test_replicas_on_a_free_network(void **state)
{
    static const char *const schedules[] = {"varuna", "dualpipe", "dualpipe-v", "chimera", "zb-v", "v-half", "v-min"};

    (void)state;
    for (size_t i = 0; i < COUNT(schedules); i++) {
        double alone = 0;

        for (int data = 1; data <= 3; data++)
            for (int buckets = 0; buckets < 2; buckets++) {
                struct simulated simulated;

                /* layers of different lengths, so that a cut for a bucket is none for the recomputation */
                run_text(&simulated, "model:\n  layers:\n" LAYERS LAYERS LAYERS LAYERS
                         "cluster: ideal\nbatch: {micro_batches: 8}\n"
                         "strategy: {schedule: %s, pipeline: 4, data: %d, data_parallel: %s}\n"
                         "simulation: {engine: ideal, collectives: messages}\n",
                         schedules[i], data, buckets ? "ddp" : "synchronous");
                if (data == 1 && !buckets)
                    alone = simulated.run.metrics.iteration_time;
                expect_near("iteration", simulated.run.metrics.iteration_time, alone, simulated.text);
                simulated_release(&simulated);
            }
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gradients_of_both_copies),
        cmocka_unit_test(test_states_of_both_copies),
        cmocka_unit_test(test_replicas_on_a_free_network),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
