/* Gathers of weights that overlap with the forwards of the next iteration (software.overlap_gathers), under ZeRO 1 and
 * 2, against the same gathers at the end of the update. */
#include "simulated.h"

enum { LAYERS = 8, HIDDEN = 1024, PARAMETERS = 12 * HIDDEN * HIDDEN + 13 * HIDDEN };

struct setup {
    int zero, pipeline, chunks, data, micro_batches;
    double network;          /* B/s */
    const char *bucket, *more;       /* of the gradients; more keys of 'software' */
    const char *precision, *collectives;
};

/* Blocks, and one token's embedding, which hardly counts; a node for each GPU. */
static void run_setup(struct simulated *simulated, const struct setup *setup, bool overlapped)
{
    run_text(simulated,
             "model: {transformer: {layers: %d, hidden: %d, heads: 8, sequence: 1024, vocabulary: 1, positions: 0,\n"
             "        head: none, final_norm: false}}\n"
             "cluster: {nodes: %d, gpus_per_node: 1, gpu: h100-80gb, inside: {bandwidth: 100 GB/s, latency: 0 us},\n"
             "          network: {bandwidth: %.17g B/s, latency: 0 us, topology: nonblocking}}\n"
             "batch: {micro: 1, micro_batches: %d}\nmemory: {precision: %s, enforce: false}\n"
             "strategy: {schedule: %s, pipeline: %d, chunks: %d, data: %d, zero: %d}\n"
             "software: {like: none, overlap_gathers: %s, first_bucket: %s, bucket: %s%s}\n"
             "simulation: {engine: fast, collectives: %s}\n",
             LAYERS, HIDDEN, setup->pipeline * setup->data, setup->network, setup->micro_batches,
             setup->precision ? setup->precision : "mixed-bf16", setup->chunks > 1 ? "interleaved" : "1f1b",
             setup->pipeline, setup->chunks, setup->data, setup->zero, overlapped ? "true" : "false", setup->bucket,
             setup->bucket, setup->more ? setup->more : "", setup->collectives ? setup->collectives : "auto");
}

static double step(const struct setup *setup, bool overlapped)
{
    struct simulated simulated;
    double time;

    run_setup(&simulated, setup, overlapped);
    time = simulated.run.metrics.iteration_time;
    simulated_release(&simulated);
    return time;
}

/* A gather of one bucket has nothing to hide behind. With a bucket a layer all but the first are gathered while the
 * layers before them are computed, where these take longer. */
static void test_exposed(void **state)
{
    (void)state;
    for (int zero = 1; zero <= 2; zero++)
        for (int data = 2; data <= 4; data++) {
            struct setup setup = {zero, 1, 1, data, 4, 400e9, "100 GB", NULL, NULL, NULL};
            double layer = (data - 1.0) / data * 2 * PARAMETERS / setup.network;
            struct setup layers = setup;
            char text[40];

            snprintf(text, sizeof text, "zero %d, data %d", zero, data);
            expect_near("the step, one bucket", step(&setup, true), step(&setup, false), text);
            layers.bucket = "1 B";
            layers.more = ", flatten: true";
            double after = step(&layers, false), overlapped = step(&layers, true);
            assert_true(after - overlapped > (LAYERS - 1.01) * layer && after - overlapped < LAYERS * layer * 1.001);
        }
}

/* Never slower than after the update, never faster than without a network; the same bytes and kernels. */
static void test_bounds(void **state)
{
    static const struct setup setups[] = {
        {1, 1, 1, 4, 2, 20e9, "20 MB", NULL, NULL, "messages"}, {1, 2, 1, 2, 4, 20e9, "20 MB", NULL, NULL, "messages"},
        {1, 2, 2, 3, 4, 5e9, "20 MB", NULL, NULL, "measured"},  {2, 2, 1, 2, 4, 20e9, "20 MB", NULL, NULL, "measured"},
        {1, 4, 2, 2, 8, 1e9, "20 MB", NULL, NULL, "auto"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(setups); i++) {
        struct setup free = setups[i];
        struct simulated after, overlapped;

        free.network = 1e18;
        run_setup(&after, &setups[i], false);
        run_setup(&overlapped, &setups[i], true);
        const struct metrics *a = &after.run.metrics, *b = &overlapped.run.metrics;
        if (!(b->iteration_time < a->iteration_time && b->iteration_time > step(&free, true)))
            fail_msg("%g s during forwards, %g s after the update, %g s without a network:\n%s", b->iteration_time,
                     a->iteration_time, step(&free, true), overlapped.text);
        expect_near("bytes", b->communication_bytes_per_gpu, a->communication_bytes_per_gpu, overlapped.text);
        expect_near("peak memory", b->peak_memory, a->peak_memory, overlapped.text);
        expect_near("forward", b->seconds[ACCOUNT_FORWARD], a->seconds[ACCOUNT_FORWARD], overlapped.text);
        expect_near("backward", b->seconds[ACCOUNT_BACKWARD], a->seconds[ACCOUNT_BACKWARD], overlapped.text);
        simulated_release(&after);
        simulated_release(&overlapped);
    }
}

/* Weights that are held in fp8 alone are gathered in fp8: half the bytes of bf16; in mxfp8 they are not. */
static void test_fp8(void **state)
{
    static const struct { const char *precision, *weights; double each; } cases[] = {
        {"mixed-bf16", "", 2}, {"mixed-fp8", ", fp8_weights: kept", 2}, {"mixed-fp8", ", fp8_weights: primary", 1},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++)
        for (int overlapped = 0; overlapped < 2; overlapped++) {
            struct setup setup = {1, 1, 1, 4, 2, 20e9, "20 MB", cases[i].weights, cases[i].precision, NULL};
            struct simulated simulated;
            double blocks = (double)PARAMETERS * LAYERS, all = blocks + HIDDEN;

            run_setup(&simulated, &setup, overlapped);
            expect_near("bytes", simulated.run.metrics.communication_bytes_per_gpu,      /* gradients in fp32 */
                        0.75 * (4 * all + cases[i].each * blocks + 2 * HIDDEN), simulated.text);
            simulated_release(&simulated);
        }
}

/* Units by size inside recomputed blocks: each block's weights are gathered a third time in each micro-batch, whichever blocks are
 * recomputed, and the time grows by that at most. */
static void test_small_units(void **state)
{
    (void)state;
    for (int data = 2; data <= 8; data *= 2)
        for (int blocks = 0; blocks <= LAYERS; blocks += 4)
            for (int frozen = 0; frozen < 2; frozen++) {
                double sent[2], seconds[2], weights = 0, rest = 1.0 * (data - 1) / data;

                for (int small = 0; small < 2; small++) {
                    struct simulated simulated;

                    run_text(&simulated, "model: {transformer: {layers: %d, hidden: %d, heads: 8, sequence: 1024, vocabulary: 512}}\n"
                             "cluster: {nodes: %d, gpus_per_node: 1, gpu: h100-80gb, inside: {bandwidth: 100 GB/s, latency: 0 us},\n"
                             "          network: {bandwidth: 10 GB/s, latency: 0 us, topology: nonblocking}}\n"
                             "batch: {micro: 1, micro_batches: 3}\nmemory: {precision: mixed-bf16, enforce: false, recompute: %s%s}\n"
                             "strategy: {data: %d, zero: 3}\nsoftware: {like: none, small_units: %s}\nsimulation: {engine: fast}\n",
                             LAYERS, HIDDEN, data, blocks ? blocks == 4 ? "{mode: full, blocks: 4}" : "full" : "{mode: full, blocks: 0}",
                             frozen ? ", lora: {rank: 4}" : "", data, small ? "true" : "false");
                    sent[small] = simulated.run.metrics.communication_bytes_per_gpu;
                    seconds[small] = simulated.run.metrics.iteration_time;
                    weights = simulated.workload.stages[0].slices[1].parameters + simulated.workload.stages[0].slices[1].frozen;
                    simulated_release(&simulated);
                }
                if (!(fabs(sent[1] - sent[0] - 3 * blocks * rest * 2 * weights) <= 1e-9 * sent[0]))
                    fail_msg("%d replicas, %d blocks: %.12g B more, expected %.12g", data, blocks, sent[1] - sent[0], 3 * blocks * rest * 2 * weights);
                assert_true(seconds[1] >= seconds[0] * (1 - 1e-9) && (blocks == 0) == (seconds[1] - seconds[0] < 1e-9 * seconds[0]));
                assert_true(seconds[1] - seconds[0] <= 1.5 * 3 * blocks * rest * 2 * weights / 10e9);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small_units), cmocka_unit_test(test_exposed), cmocka_unit_test(test_bounds), cmocka_unit_test(test_fp8),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
