/* The cost of gradients in addition to the products that compute them: the sum of a micro-batch's with the batch's, and
 * all passes of an update, by their bytes on the roofline. */
#include "simulated.h"

static void load_with(struct simulated *simulated, const char *memory, const char *strategy, int micro_batches,
                      const char *host_launch)
{
    run_text(simulated,
             "model: {transformer: {layers: 2, hidden: 512, heads: 8, sequence: 256, vocabulary: 4096}}\n"
             "cluster: {nodes: 1, gpus_per_node: 4, gpu: a100-80gb, inside: {bandwidth: 300 GB/s, latency: 1 us},\n"
             "          network: {bandwidth: 25 GB/s, latency: 5 us}}\n"
             "batch: {micro: 1, micro_batches: %d}\nmemory: %s\nstrategy: %s\n"
             "costs: {gpu: roofline, host_launch: %s}\nsimulation: {engine: ideal}\n",
             micro_batches, memory, strategy, host_launch);
}

static void load(struct simulated *simulated, const char *memory, const char *strategy, int micro_batches)
{
    load_with(simulated, memory, strategy, micro_batches, "0 us");
}

static double traffic_seconds(const struct gpu *gpu, double bytes)
{
    return bytes / (gpu->memory_efficiency * gpu->memory_bandwidth) + gpu->launch_overhead;
}

static void expect_close(double seconds, double expected)
{
    assert_true(fabs(seconds - expected) <= 1e-9 * expected);
}

/* Bytes a parameter, pass by pass. */
static void updates(void **state)
{
    static const struct { const char *memory; double passes[6]; } cases[] = {
        /* gradients to fp32; divided by the loss scale; norm and scaling; Adam: gradient, weights and two moments;
         * master weights to half precision */
        {"{precision: mixed-fp16}", {2 + 4, 8, 4 + 8, 4 + 8 + 16, 4 + 2}},
        {"{precision: mixed-bf16, gradients: half}", {2 + 4, 0, 4 + 8, 4 + 8 + 16, 4 + 2}},
        {"{precision: mixed-bf16}", {0, 0, 4 + 8, 4 + 8 + 16, 4 + 2}},
        {"{precision: mixed-bf16, gradients: fp32}", {0, 0, 4 + 8, 4 + 8 + 16, 4 + 2}},
        {"{precision: mixed-bf16, gradients: converted}", {0, 0, 4 + 8, 4 + 8 + 16, 4 + 2}},
        {"{precision: mixed-bf16, gradients: fp32, clip_gradients: false}", {0, 0, 0, 4 + 8 + 16, 4 + 2}},
        {"{precision: fp32, clip_gradients: false}", {0, 0, 0, 4 + 8 + 16, 0}},
        {"{precision: fp32, optimizer: sgd, clip_gradients: false}", {0, 0, 0, 4 + 8, 0}},
        /* LAMB: gradient, weights and moments, the norm of all gradients; norms of the weights, the update written, its
         * norms, and both read for the step, which writes the weights */
        {"{precision: fp32, optimizer: lamb}", {0, 0, 4, 4 + 8 + 16, 0, 4 + 4 + 4 + 4 + 4}},
        {"{precision: mixed-fp16, optimizer: lamb, clip_gradients: false}", {2 + 4, 8, 0, 4 + 8 + 16, 4 + 2, 5 * 4}},
        /* without a whole master half-precision gradients are read as they are, and nothing is copied */
        {"{precision: mixed-bf16, master: none}", {0, 0, 2 * 3, 2 + 2 * 2 + 16}},
        {"{precision: mixed-fp16, master: none, optimizer: adam-half}", {0, 2 * 2, 2 * 3, 2 + 2 * 2 + 8}},
        {"{precision: mixed-bf16, gradients: half, master: remainders}", {0, 0, 2 * 3, 2 + 2 * (2 + 2) + 16}},
        {"{precision: mixed-bf16, master: half, gradients: fp32}", {0, 0, 4 * 3, 4 + 2 * (2 + 2) + 16}},
        /* PyTorch's Adam of fp32, operation by operation: decay, both moments, the root, its two scalings, the step */
        {"{precision: fp32, clip_gradients: false, fused_optimizer: false}",
         {4 + 4, 4 + 4 + 4, 8 + 4 + 8, 4 + 4, 8 + 8, 3 * 4 + 4}},
        {"{precision: mixed-bf16, master: none, clip_gradients: false, fused_optimizer: false}",
         {2 + 2, 4 + 4 + 2, 8 + 2 + 8, 4 + 4, 8 + 8, 2 + 4 + 4 + 2}},
        {"{precision: mixed-fp16, optimizer: adam-8bit}", {2 + 4, 8, 4 + 8, 4 + 8 + 4, 4 + 2}},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++)
        for (int zero = 0; zero <= 1; zero++) {
            struct simulated simulated;
            double bytes = 0;

            load(&simulated, cases[i].memory, zero ? "{data: 4, zero: 1}" : "{data: 4}", 1);
            for (size_t pass = 0; pass < COUNT(cases[i].passes); pass++)
                bytes += cases[i].passes[pass];
            bytes *= simulated.workload.stages[0].parameters / (zero ? 4 : 1);
            expect_close(ordinary_times(&simulated.workload)[0].update.seconds,
                         traffic_seconds(&simulated.scenario.cluster.kinds[0].gpu, bytes));
            simulated_release(&simulated);
        }
}

static double weight_seconds(const char *memory, const char *strategy, int micro_batches, double *parameters,
                             struct gpu *gpu)
{
    struct simulated simulated;
    double seconds;

    load(&simulated, memory, strategy, micro_batches);
    seconds = ordinary_times(&simulated.workload)[0].work[BACKWARD_WEIGHT].seconds;
    *parameters = simulated.workload.stages[0].parameters;
    *gpu = simulated.scenario.cluster.kinds[0].gpu;
    simulated_release(&simulated);
    return seconds;
}

/* One more kernel in each of the two blocks, in the embedding, and in the norm of the output layer, whose weights are
 * tied. */
static void accumulation(void **state)
{
    static const struct { const char *precision, *more, *strategy; int micro_batches; double bytes, share; } cases[] = {
        {"mixed-fp16", "", "{data: 1}", 1, 0, 1},
        {"mixed-fp16", "", "{data: 1}", 2, 2 + 2 + 2, 1},
        {"mixed-fp16", "", "{data: 1}", 9, 2 + 2 + 2, 1},
        {"mixed-fp16", ", gradients: fp32", "{data: 1}", 1, 2 + 4 + 4, 1},
        {"mixed-fp16", ", gradients: fp32", "{data: 1}", 2, 2 + 4 + 4, 1},
        {"mixed-fp16", ", gradients: fp32, fused_accumulation: true", "{data: 1}", 2, 0, 1},
        {"mixed-fp16", ", gradients: converted", "{data: 1}", 2, 2 + 4 + 4 + 4 + 4, 1},
        {"fp32", "", "{data: 1}", 2, 4 + 4 + 4, 1},
        {"mixed-fp16", "", "{data: 4, zero: 1}", 2, 2 + 2 + 2, 1},
        {"mixed-fp16", "", "{data: 4, zero: 2}", 2, 2 + 2 + 2, 4},
        /* an update after every backward: nothing to add to */
        {"mixed-fp16", "", "{schedule: pipedream, data: 1}", 4, 0, 1},
        {"mixed-fp16", "", "{schedule: pipedream-2bw, data: 1}", 4, 2 + 2 + 2, 1},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        double parameters, expected;
        char memory[100];
        struct gpu gpu;

        snprintf(memory, sizeof memory, "{precision: %s, fused_accumulation: true}", cases[i].precision);
        expected = weight_seconds(memory, "{data: 1}", 1, &parameters, &gpu);
        if (cases[i].bytes > 0)
            expected += traffic_seconds(&gpu, cases[i].bytes * parameters / cases[i].share) + 3 * gpu.launch_overhead;
        snprintf(memory, sizeof memory, "{precision: %s%s}", cases[i].precision, cases[i].more);
        expect_close(weight_seconds(memory, cases[i].strategy, cases[i].micro_batches, &parameters, &gpu), expected);
    }
}

/* Under ZeRO 3 the gradients of all of a layer are joined, converted where they are sent in fp32, and divided: kernels
 * of the two blocks, the embedding and the last norm, as above; where one replica holds all, none of that. What
 * is added to the batch's is a share of them. */
static void flattening(void **state)
{
    static const struct { const char *memory, *strategy; int micro_batches; double bytes; } cases[] = {
        {"{precision: mixed-bf16}", "{data: 4, zero: 3}", 1, (2 + 2) + (2 + 2)},
        {"{precision: mixed-bf16}", "{data: 4, zero: 3}", 2, (2 + 2) + (2 + 2)},
        {"{precision: mixed-bf16, gradients: widened}", "{data: 4, zero: 3}", 1, (2 + 2) + (2 + 4) + (4 + 4)},
        {"{precision: mixed-bf16, fused_accumulation: true, gradients: fp32}", "{data: 4, zero: 3}", 1, 4 + 6 + 8},
        {"{precision: fp32}", "{data: 4, zero: 3}", 1, (4 + 4) + (4 + 4)},
        {"{precision: mixed-bf16, gradients: widened}", "{data: 4, zero: 2}", 1, 0},
        {"{precision: mixed-bf16, gradients: half}", "{data: 1}", 1, 0},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        const char *bare = cases[i].bytes == 16 ? "{precision: fp32}" : "{precision: mixed-bf16, gradients: half}";
        double parameters, expected;
        struct gpu gpu;

        expected = weight_seconds(bare, "{data: 1}", 1, &parameters, &gpu);
        if (cases[i].bytes > 0)
            expected += traffic_seconds(&gpu, cases[i].bytes * parameters) + 3 * gpu.launch_overhead;
        if (cases[i].micro_batches > 1)
            expected += traffic_seconds(&gpu, (2 + 2 + 2) * parameters / 4) + 3 * gpu.launch_overhead;
        expect_close(weight_seconds(cases[i].memory, cases[i].strategy, cases[i].micro_batches, &parameters, &gpu),
                     expected);
    }
}

/* What kernels read and write around a sum over replicas belongs to the update: of all gradients that a replica has, in
 * the format in which they are sent, and for each sum. Nothing where nobody sums, or each layer's are flattened. */
static void around_sums(void **state)
{
    static const struct { const char *memory, *strategy; int micro_batches; double sent; } cases[] = {
        {"precision: mixed-fp16", "{data: 4}", 1, 2},
        {"precision: mixed-fp16", "{data: 4}", 3, 2},
        {"precision: mixed-fp16", "{data: 4, data_parallel: synchronous}", 3, 2},
        {"precision: mixed-bf16, gradients: fp32", "{data: 4, zero: 1}", 1, 4},
        {"precision: mixed-bf16, gradients: widened", "{data: 4, zero: 1}", 1, 4},
        {"precision: mixed-fp16", "{data: 4, zero: 2}", 3, 3 * 2},
        {"precision: mixed-fp16", "{data: 4, zero: 3}", 1, 0},
        {"precision: mixed-fp16", "{data: 1}", 1, 0},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        double updates[2], expected = 0;

        for (int more = 0; more <= 1; more++) {
            struct simulated simulated;
            char memory[120];

            snprintf(memory, sizeof memory, "{%s, gradient_accesses: %d}", cases[i].memory, more ? 5 : 0);
            load(&simulated, memory, cases[i].strategy, cases[i].micro_batches);
            updates[more] = ordinary_times(&simulated.workload)[0].update.seconds;
            if (cases[i].sent > 0)
                expected = traffic_seconds(&simulated.scenario.cluster.kinds[0].gpu,
                                           5 * cases[i].sent * simulated.workload.stages[0].parameters);
            simulated_release(&simulated);
        }
        assert_true(fabs(updates[1] - updates[0] - expected) <= 1e-9 * updates[1]);
    }
}

/* Where the host is slower than the GPU, the four kernels that add cost their launches, and no more. */
static void accumulation_launches(void **state)
{
    double seconds[2];

    (void)state;
    for (int more = 0; more <= 1; more++) {
        struct simulated simulated;

        load_with(&simulated, "{}", "{data: 1}", 1 + more, "1 ms");
        seconds[more] = ordinary_times(&simulated.workload)[0].work[BACKWARD_WEIGHT].seconds;
        simulated_release(&simulated);
    }
    expect_close(seconds[1] - seconds[0], 4e-3);
}

/* Gradients that are widened are sent over replicas as fp32 ones are. The two ends that share an embedding send them as
 * they are (tied.c: how many bytes that is). */
static void widened(void **state)
{
    (void)state;
    for (int zero = 0; zero <= 3; zero++)
        for (int pipeline = 1; pipeline <= 2; pipeline++) {
            static const char *const forms[] = {"half", "fp32", "widened"};
            double sent[COUNT(forms)];

            for (size_t i = 0; i < COUNT(forms); i++) {
                struct simulated simulated;
                char memory[80], strategy[80];

                snprintf(memory, sizeof memory, "{precision: mixed-bf16, gradients: %s}", forms[i]);
                snprintf(strategy, sizeof strategy, "{data: 2, zero: %d, pipeline: %d}", zero, pipeline);
                load(&simulated, memory, strategy, 2);
                sent[i] = simulated.run.metrics.sent[PAYLOAD_WEIGHT_GRADIENTS];
                simulated_release(&simulated);
            }
            assert_true(sent[0] > 0);
            expect_close(2 * sent[0], sent[1]);
            if (pipeline == 1)
                expect_close(sent[2], sent[1]);
            else
                assert_true(sent[2] > sent[0] && sent[2] < sent[1]);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(updates), cmocka_unit_test(accumulation),
                                       cmocka_unit_test(flattening), cmocka_unit_test(around_sums),
                                       cmocka_unit_test(accumulation_launches),
                                       cmocka_unit_test(widened)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
