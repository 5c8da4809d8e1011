/* strategy.compression and strategy.local_steps: bytes, time and memory by the papers' formulas. */
#include "simulated.h"

enum { LAYERS = 3, HIDDEN = 256, SEQUENCE = 32, VOCABULARY = 2000, DATA = 4 };

static const char *const engine_of[] = {"ideal", "simgrid"}, *const modes[] = {"messages", "measured"};

static void simulate_gpt(struct simulated *simulated, const char *strategy, const char *mode, const char *engine)
{
    run_text(simulated, "model: {transformer: {layers: %d, hidden: %d, heads: 8, sequence: %d, vocabulary: %d}}\n"
             "cluster: {nodes: 4, gpus_per_node: 4, gpu: a100-80gb, inside: {bandwidth: 100 GB/s, latency: 2 us},\n"
             "          network: {bandwidth: 1 GB/s, latency: 5 us, nics: 4}}\n"
             "batch: {micro_batches: 2}\nstrategy: {%s}\nsimulation: {engine: %s, collectives: %s}\n", LAYERS, HIDDEN,
             SEQUENCE, VOCABULARY, strategy, engine, mode);
}

/* Values of all factors of the GPT's matrices, and of what is sent as it is; tensors by hand. */
static double factors(int rank, double *plain)
{
    const double h = HIDDEN, matrices[][3] = {
        {VOCABULARY, h, 1},  {SEQUENCE, h, 1},     {3 * h, h, LAYERS},
        {h, h, LAYERS},      {4 * h, h, LAYERS},   {h, 4 * h, LAYERS},
    };
    double sum = 0;

    *plain = LAYERS * (4 * h + 3 * h + h + 4 * h + h) + 2 * h;
    for (size_t i = 0; i < COUNT(matrices); i++) {
        double n = matrices[i][0], m = matrices[i][1], factor = rank * (n + m);

        if (2 * factor < n * m)
            sum += matrices[i][2] * factor;
        else
            *plain += matrices[i][2] * n * m;
    }
    return sum;
}

/* Vogels et al. 2019: r (n + m) values a matrix, in two all-reduces; buckets or not. */
static void test_powersgd(void **state)
{
    static const char *const forms[] = {"ddp, first_bucket: 100 kB, bucket: 1 MB", "synchronous"};
    static const int ranks[] = {1, 4, 16, 128};

    (void)state;
    for (size_t r = 0; r < COUNT(ranks); r++)
        for (int k = 0; k < 8; k++) {
            double plain, sent = factors(ranks[r], &plain);
            struct simulated simulated;
            char strategy[200];

            snprintf(strategy, sizeof strategy,
                     "data: %d, compression: {method: powersgd, rank: %d}, data_parallel: %s", DATA, ranks[r],
                     forms[k / 4]);
            simulate_gpt(&simulated, strategy, modes[k % 2], engine_of[k / 2 % 2]);
            expect_near("gradients", simulated.run.metrics.sent[PAYLOAD_WEIGHT_GRADIENTS],
                        2 * (sent + plain) * 2 * (DATA - 1) / DATA, simulated.text);
            expect_near("memory", simulated.workload.stages[0].compression,
                        2 * (simulated.workload.stages[0].parameters - plain + sent), simulated.text);
            assert_true((simulated.run.metrics.seconds[ACCOUNT_PACK] > 0) == (sent > 0));
            simulated_release(&simulated);
        }
}

/* Everyone gets everyone's values with their places; or everyone's part of a share, and the rounded sum back. Times are
 * given here, so that kernels take none. */
static void test_sparse_and_quantized(void **state)
{
    const double values = 3000001, latency = 2e-5, bandwidth = 3e9;
    const struct { const char *how; double bytes, seconds, kept; } cases[] = {
        {"{method: top-k, share: 0.1}", 300001 * 6, 300001 * 6, 1}, {"top-k", 30001 * 6, 30001 * 6, 1},
        {"{method: top-k, share: 1, error_feedback: false}", 3000001.0 * 6, 3000001.0 * 6, 0},
        {"quantized", 2 * (values + 16) / DATA, 2 * (values + 16) / DATA, 1.25},
        {"{method: quantized, bits: 1}", 2 * (values / 8 + 16) / DATA, 2 * (values / 8 + 16) / DATA, 1.25},
        {"{method: quantized, bits: 16, error_feedback: false}", 2 * (2 * values + 16) / DATA,
         2 * (2 * values + 16) / DATA, 0},
    };

    (void)state;
    for (size_t c = 0; c < COUNT(cases); c++)
        for (int k = 0; k < 4; k++) {
            struct simulated simulated;
            int rounds = strstr(cases[c].how, "quantized") ? 2 : 1;
            struct memory memory;

            run_text(&simulated, "model: {stages: {forward: 1 ms, backward: 3 ms, parameters: %.17g}}\n"
                     "cluster: {nodes: %d, gpus_per_node: 1, network: {bandwidth: 3 GB/s, latency: 20 us, nics: 1}}\n"
                     "batch: {micro_batches: 5}\nstrategy: {data: %d, data_parallel: synchronous, compression: %s}\n"
                     "simulation: {engine: %s, collectives: %s}\n", values, DATA, DATA, cases[c].how, engine_of[k % 2],
                     modes[k / 2]);
            expect_near("gradients", simulated.run.metrics.sent[PAYLOAD_WEIGHT_GRADIENTS], (DATA - 1) * cases[c].bytes,
                        simulated.text);
            expect_near("iteration", simulated.run.metrics.iteration_time, 5 * 4e-3 +
                        (DATA - 1) * (rounds * latency + cases[c].seconds / bandwidth), simulated.text);
            memory = memory_states(&simulated.scenario, simulated.workload.stages, 0);
            expect_near("memory", memory.bytes[MEMORY_GRADIENTS], 2 * values * (1 + cases[c].kept), simulated.text);
            simulated_release(&simulated);
        }
}

static double iteration(const char *strategy, const char *mode, const char *engine)
{
    struct simulated simulated;
    double time;

    simulate_gpt(&simulated, strategy, mode, engine);
    time = simulated.run.metrics.iteration_time;
    for (int r = 0; r < simulated.run.metrics.nranks; r++) {
        const struct rank_metrics *rank = &simulated.run.metrics.ranks[r];
        double sum = rank->seconds[ACCOUNT_BUBBLE] + rank->exposed_communication;

        for (int kind = 0; kind <= ACCOUNT_PACK; kind++)
            sum += rank->seconds[kind];
        expect_near("sum", sum, time, simulated.text);
    }
    simulated_release(&simulated);
    return time;
}

/* With other ways to divide the model: no second is lost, and nothing is earlier on SimGrid. */
static void test_composition(void **state)
{
    static const char *const methods[] = {"{method: powersgd, rank: 2}", "top-k", "{method: quantized, bits: 4}"};
    static const char *const degrees[] = {
        "data: 16", "data: 4, tensor: 4", "data: 4, pipeline: 4",
        "data: 2, pipeline: 2, schedule: interleaved, chunks: 2", "data: 2, pipeline: 2, schedule: chimera",
        "data: 4, pipeline: 2, schedule: zb-h1",
        "data: 2, pipeline: 2, schedule: pipedream",
    };

    (void)state;
    for (size_t m = 0; m < COUNT(methods); m++)
        for (size_t d = 0; d < COUNT(degrees); d++) {
            char strategy[200];
            double ideal, simgrid;

            bool four = strstr(degrees[d], "interleaved") || strstr(degrees[d], "pipeline: 4");

            snprintf(strategy, sizeof strategy, "%s%s, compression: %s", degrees[d],
                     four ? ", split: [0, 1, 1, 1]" : "", methods[m]);
            ideal = iteration(strategy, "messages", "ideal");
            simgrid = iteration(strategy, "messages", "simgrid");
            assert_true(ideal > 0 && simgrid >= ideal * (1 - 1e-9));
            assert_true(iteration(strategy, "measured", "simgrid") > 0);
        }
}

/* What compression is for: it helps where the network is slow, and costs kernels. */
static void test_worth(void **state)
{
    struct simulated plain, powersgd;

    (void)state;
    assert_true(iteration("data: 16, compression: {method: quantized, bits: 8}", "measured", "ideal") <
                iteration("data: 16", "measured", "ideal"));
    for (int k = 0; k < 2; k++)
        run_text(k ? &powersgd : &plain, "model: {preset: gpt2-355m}\ncluster: {platform: dgx-a100, nodes: 1}\n"
                 "batch: {global: 64, micro: 8}\nsimulation: {engine: ideal}\nstrategy: {data: 8%s}\n",
                 k ? ", compression: {method: powersgd, rank: 4}" : "");
    assert_true(powersgd.run.metrics.iteration_time > plain.run.metrics.iteration_time);
    expect_near("compute", powersgd.run.metrics.seconds[ACCOUNT_BACKWARD], plain.run.metrics.seconds[ACCOUNT_BACKWARD],
                plain.text);
    simulated_release(&plain);
    simulated_release(&powersgd);
}

/* H iterations alone, then one all-reduce of the weights. */
static void test_local_steps(void **state)
{
    const double bytes = 2 * 7000001.0;

    (void)state;
    for (int steps = 1; steps <= 16; steps *= 4)
        for (int k = 0; k < 4; k++) {
            struct simulated simulated;

            run_text(&simulated, "model: {stages: {forward: 1 ms, backward: 3 ms, parameters: 7000001}}\n"
                     "cluster: {nodes: %d, gpus_per_node: 1, network: {bandwidth: 3 GB/s, latency: 20 us, nics: 1}}\n"
                     "batch: {micro_batches: 5}\nstrategy: {data: %d, data_parallel: synchronous, local_steps: %d}\n"
                     "simulation: {engine: %s, collectives: %s}\n", DATA, DATA, steps, engine_of[k % 2], modes[k / 2]);
            expect_near("iteration", simulated.run.metrics.iteration_time,
                        5 * 4e-3 + 2 * (DATA - 1) * (2e-5 + bytes / DATA / 3e9) / steps, simulated.text);
            expect_near("bytes", simulated.run.metrics.sent[steps > 1 ? PAYLOAD_WEIGHTS : PAYLOAD_WEIGHT_GRADIENTS],
                        2 * bytes * (DATA - 1) / DATA / steps, simulated.text);
            expect_near("samples", simulated.run.metrics.samples, 5 * DATA, simulated.text);
            simulated_release(&simulated);
        }
}

/* With a pipeline whose ends share weights, tensor parallelism and full recomputation: four local steps have the same
 * memory, and an iteration the same FLOPs and boundaries, as a single step has. */
static void test_local_composition(void **state)
{
    struct simulated one, four;

    (void)state;
    for (int k = 0; k < 2; k++)
        run_text(k ? &four : &one, "model: {preset: gpt2-124m}\ncluster: {platform: dgx-a100, nodes: 1}\n"
                 "batch: {micro_batches: 3}\nmemory: {recompute: full}\n"
                 "strategy: {data: 2, pipeline: 2, tensor: 2, local_steps: %d}\n", k ? 4 : 1);
    expect_near("flop", four.run.metrics.hardware_flop, one.run.metrics.hardware_flop, four.text);
    expect_near("memory", four.run.metrics.peak_memory, one.run.metrics.peak_memory, four.text);
    expect_near("activations", four.run.metrics.sent[PAYLOAD_ACTIVATIONS], one.run.metrics.sent[PAYLOAD_ACTIVATIONS],
                four.text);
    assert_true(four.run.metrics.sent[PAYLOAD_WEIGHT_GRADIENTS] < one.run.metrics.sent[PAYLOAD_WEIGHT_GRADIENTS]);
    expect_near("forward", four.run.metrics.seconds[ACCOUNT_FORWARD], one.run.metrics.seconds[ACCOUNT_FORWARD],
                four.text);
    simulated_release(&one);
    simulated_release(&four);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_powersgd),
        cmocka_unit_test(test_sparse_and_quantized),
        cmocka_unit_test(test_composition),
        cmocka_unit_test(test_worth),
        cmocka_unit_test(test_local_steps),
        cmocka_unit_test(test_local_composition),
    };

    return cmocka_run_group_tests_name("compression", tests, NULL, NULL);
}
