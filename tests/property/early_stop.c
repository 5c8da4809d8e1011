/* Recomputation that stops early: what it leaves out, and where it leaves out nothing. */
#include "simulated.h"

enum { LAYERS = 4, HIDDEN = 512, FFN = 2048, SEQUENCE = 256, MICRO_BATCHES = 3 };

struct figures { double flop, forward, recompute, sent, seconds; };

/* `recompute`: the value of the key, and further keys of `memory`. */
static struct figures figures_at(const char *model, const char *strategy, const char *recompute, const char *costs)
{
    struct simulated simulated;
    struct figures figures = {0};

    run_text(&simulated,
             "model: {transformer: {layers: %d, hidden: %d, heads: 8, sequence: %d, ffn: %d, vocabulary: 1000, %s}}\n"
             "cluster: {platform: dgx-a100, nodes: 1}\nbatch: {micro: 1, micro_batches: %d}\nstrategy: {%s}\n"
             "memory: {recompute: %s}\ncosts: {gpu: roofline, %s}\n"
             "simulation: {engine: ideal, collectives: measured}\n", LAYERS, HIDDEN, SEQUENCE, FFN, model,
             MICRO_BATCHES, strategy, recompute, costs);
    figures.flop = simulated.run.metrics.hardware_flop;
    figures.seconds = simulated.run.metrics.iteration_time;
    figures.sent = simulated.run.metrics.communication_bytes_per_gpu;
    for (int s = 0; s < plan_virtual_stages(&simulated.scenario.plan); s++) {
        figures.forward += ordinary_times(&simulated.workload)[s].work[FORWARD].seconds;
        figures.recompute += ordinary_times(&simulated.workload)[s].work[RECOMPUTE].seconds;
    }
    simulated_release(&simulated);
    return figures;
}

static struct figures figures_of(const char *model, const char *strategy, const char *recompute)
{
    return figures_at(model, strategy, recompute, "host_launch: 0 s");
}

/* The last product of a block, 2 s h f, and the sum behind it; of a tensor group's GPUs their share. */
static void test_tail(void **state)
{
    static const char *const strategies[] = {"data: 1", "data: 8, zero: 3", "pipeline: 2, data: 1",
                                             "tensor: 2, data: 1", "tensor: 2, data: 1, sequence_parallel: true"};

    (void)state;
    for (size_t i = 0; i < COUNT(strategies); i++) {
        double replicas = strstr(strategies[i], "data: 8") ? 8 : 1;
        double product = 2.0 * SEQUENCE * HIDDEN * FFN * LAYERS * MICRO_BATCHES * replicas;
        struct figures whole = figures_of("dropout: 0", strategies[i], "full");
        struct figures stops = figures_of("dropout: 0", strategies[i], "{mode: full, early_stop: true}");
        bool sums = strstr(strategies[i], "tensor: 2, data: 1") && !strstr(strategies[i], "sequence");

        expect_near("flop", whole.flop - stops.flop, product, strategies[i]);
        assert_true(stops.recompute < 0.9 * whole.recompute && stops.recompute > 0.5 * whole.recompute);
        assert_true(stops.seconds < whole.seconds);
        /* a ring over two sends what is summed once, from each */
        expect_near("bytes", whole.sent - stops.sent, sums ? 2.0 * SEQUENCE * HIDDEN * LAYERS * MICRO_BATCHES : 0,
                    strategies[i]);
    }
}

/* A share of the blocks leaves out as much of theirs. */
static void test_share(void **state)
{
    double all = figures_of("dropout: 0", "data: 1", "full").flop -
                 figures_of("dropout: 0", "data: 1", "{mode: full, early_stop: true}").flop;
    double half = figures_of("dropout: 0", "data: 1", "{mode: full, share: 0.5}").flop -
                  figures_of("dropout: 0", "data: 1", "{mode: full, share: 0.5, early_stop: true}").flop;

    (void)state;
    expect_near("half", 2 * half, all, "share");
}

/* Blocks of experts are recomputed whole; dense blocks between them are not. */
static void test_experts(void **state)
{
    static const char experts[] = "dropout: 0, experts: 4, experts_per_token: 1, moe_every: 2";
    double left = figures_of(experts, "data: 1", "full").flop -
                  figures_of(experts, "data: 1", "{mode: full, early_stop: true}").flop;

    (void)state;
    expect_near("every second block", left, 2.0 * SEQUENCE * HIDDEN * FFN * LAYERS / 2 * MICRO_BATCHES, experts);
}

/* A host so slow that only launches count: of the product, of the kernel that adds its bias if there is one, of the
 * residual, and of the sum over a tensor group. */
static void test_launches(void **state)
{
    static const struct { const char *model, *strategy; double launches; } cases[] = {
        {"dropout: 0", "data: 1", 2},
        {"dropout: 0, fused_kernels: false, fused_bias: false", "data: 1", 3},
        {"dropout: 0, fused_kernels: false, bias: false", "data: 1", 2},
        {"dropout: 0", "tensor: 2, data: 1", 3},
        {"dropout: 0", "tensor: 2, data: 1, sequence_parallel: true", 2},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        const char *costs = "host_launch: 1000 s, launch_blocking: true";
        double left = figures_at(cases[i].model, cases[i].strategy, "full", costs).recompute -
                      figures_at(cases[i].model, cases[i].strategy, "{mode: full, early_stop: true}", costs).recompute;

        assert_true(fabs(left / LAYERS / 1000 - cases[i].launches) < 1e-3);
    }
}

/* LoRA: the backward of a frozen product needs its weights, which autograd saves before the product runs. So a block
 * ends as early as in full fine-tuning; a recomputation has in addition only the adapters' products before that. An
 * adapter of the last product saves the input of its second product. So only that second product, 2 s h r, and its sum
 * are left out; the frozen product is recomputed. */
static void test_lora(void **state)
{
    enum { RANK = 8 };
    static const struct { const char *targets; bool adapts_last; } cases[] = {
        {"[qkv]", false}, {"[qkv, projection]", false}, {"[qkv, projection, mlp-up]", false},
        {"[qkv, projection, mlp-up, mlp-down]", true}, {"[mlp-down]", true},
    };
    static const char *const strategies[] = {"data: 1", "data: 8, zero: 3", "pipeline: 2, data: 1",
                                             "tensor: 2, data: 1"};

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++)
        for (size_t k = 0; k < COUNT(strategies); k++) {
            double replicas = strstr(strategies[k], "data: 8") ? 8 : 1, blocks = LAYERS * MICRO_BATCHES;
            double left = 2.0 * SEQUENCE * HIDDEN * (cases[i].adapts_last ? RANK : FFN) * blocks * replicas;
            /* the adapter's second product of all outputs runs on both GPUs of a tensor group */
            double doubled = cases[i].adapts_last && strstr(strategies[k], "tensor: 2") ? 2 : 1;
            bool sums = strstr(strategies[k], "tensor: 2") && !cases[i].adapts_last;
            struct figures trained = figures_of("dropout: 0", strategies[k], "{mode: full, early_stop: true}");
            struct figures whole, stops;
            char memory[2][160];

            for (int stop = 0; stop < 2; stop++)
                snprintf(memory[stop], sizeof memory[stop],
                         "{mode: full, early_stop: %s}, lora: {rank: %d, targets: %s}", stop ? "true" : "false", RANK,
                         cases[i].targets);
            whole = figures_of("dropout: 0", strategies[k], memory[0]);
            stops = figures_of("dropout: 0", strategies[k], memory[1]);
            expect_near("flop", whole.flop - stops.flop, left * doubled, memory[1]);
            expect_near("bytes", whole.sent - stops.sent, sums ? 2.0 * SEQUENCE * HIDDEN * blocks : 0, memory[1]);
            assert_true(stops.recompute < whole.recompute && stops.seconds < whole.seconds);
            if (!cases[i].adapts_last)
                assert_true(stops.recompute - trained.recompute <= (whole.forward - trained.forward) * (1 + 1e-9));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tail), cmocka_unit_test(test_share), cmocka_unit_test(test_experts),
        cmocka_unit_test(test_launches), cmocka_unit_test(test_lora),
    };

    return cmocka_run_group_tests_name("early_stop", tests, NULL, NULL);
}
