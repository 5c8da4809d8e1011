/* dummy weight gradients: one of each shape that a GPU's linear layers have, by hand. */
#include "simulated.h"

static void simulate_dummies(struct simulated *simulated, const char *model, int tensor, int pipeline,
                             const char *memory)
{
    run_text(simulated,
             "model: {%s}\ncluster: {nodes: %d, gpus_per_node: %d, gpu: b200-180gb, "
             "inside: {bandwidth: 100 GB/s, latency: 1 us}, network: {bandwidth: 50 GB/s, latency: 2 us}}\n"
             "batch: {micro: 1, micro_batches: %d}\nsimulation: {engine: ideal}\n"
             "software: {like: none, fused_accumulation: true}\n"
             "strategy: {data: 1, tensor: %d, pipeline: %d}\nmemory: {enforce: false, precision: mixed-bf16, %s}\n",
             model, pipeline, tensor, pipeline, tensor, pipeline, memory);
}

static double dummies_of(const struct simulated *simulated, int rank)
{
    return simulated->run.metrics.ranks[rank].memory.bytes[MEMORY_DUMMIES];
}

/* Llama 3 405B: 128 heads of 128 values, 8 of keys and of values, SwiGLU of 53,248 columns: 5.94 GiB for the blocks of
 * a GPU with whole layers, 3.91 GiB for the output layer on the last stage; an eighth each where eight divide them. */
static void test_llama_405b(void **state)
{
    const double h = 16384, ffn = 53248, blocks = 2 * h * ((h + 2 * 1024) + h + 2 * ffn + ffn);

    (void)state;
    assert_true(fabs(blocks / 1073741824.0 - 5.94) < 0.005);
    for (int tensor = 1; tensor <= 8; tensor *= 8) {
        static const char *const kept[] = {"none", "blocks", "output", "experts"};
        const double output = 2 * h * 128256 / tensor;

        for (size_t i = 0; i < COUNT(kept); i++) {
            struct simulated simulated;
            char memory[64];

            snprintf(memory, sizeof memory, "dummy_gradients: %s", kept[i]);
            simulate_dummies(&simulated, "preset: llama3-405b", tensor, 14, memory);
            expect_near("first stage", dummies_of(&simulated, 0), i ? blocks / tensor : 0, simulated.text);
            expect_near("last stage", dummies_of(&simulated, 13), (i ? blocks / tensor : 0) + (i > 1 ? output : 0),
                        simulated.text);
            simulated_release(&simulated);
        }
    }
}

/* Weights of one shape share a dummy: in a model whose MLP is as wide as the rest, the projection and both weights of
 * the MLP; in experts, all that a GPU holds. A tied output layer on the last stage has a dummy, as an untied one has.
 * Frozen weights have none. */
static void test_shapes(void **state)
{
    enum { H = 256, V = 1024, F = 128 };
    static const struct { const char *shape, *memory; int pipeline; double first, last; } cases[] = {
        {"ffn: 256, tied: false", "dummy_gradients: blocks", 2, 4 * H * H, 4 * H * H},
        {"ffn: 256, tied: false", "dummy_gradients: output", 2, 4 * H * H, 4 * H * H + V * H},
        {"ffn: 256, tied: true", "dummy_gradients: output", 2, 4 * H * H, 4 * H * H + V * H},
        {"ffn: 256, tied: true", "dummy_gradients: output", 1, 4 * H * H + V * H, 4 * H * H + V * H},
        {"fused_qkv: false, tied: true", "dummy_gradients: blocks", 2, H * H + 8 * H * H, H * H + 8 * H * H},
        {"tied: true", "dummy_gradients: experts, lora: {rank: 4}", 2, 0, 0},
        {"tied: false, experts: 4, experts_per_token: 2, expert_ffn: 128", "dummy_gradients: output", 2, 4 * H * H,
         4 * H * H + V * H},
        {"tied: false, experts: 4, experts_per_token: 2, expert_ffn: 128", "dummy_gradients: experts", 2,
         4 * H * H + 2 * F * H, 4 * H * H + 2 * F * H + V * H},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct simulated simulated;
        char model[256];

        snprintf(model, sizeof model,
                 "transformer: {layers: 4, hidden: 256, heads: 4, sequence: 64, vocabulary: 1024, dropout: 0, %s}",
                 cases[i].shape);
        simulate_dummies(&simulated, model, 1, cases[i].pipeline, cases[i].memory);
        expect_near("first stage", dummies_of(&simulated, 0), 2 * cases[i].first, simulated.text);
        expect_near("last stage", dummies_of(&simulated, cases[i].pipeline - 1), 2 * cases[i].last, simulated.text);
        simulated_release(&simulated);
    }
}

/* What releases keep, where their products add to gradients themselves. */
static void test_releases(void **state)
{
    static const struct { const char *software; int kept; } cases[] = {
        {"megatron-core", DUMMIES_NONE},
        {"megatron-core-2025", DUMMIES_BLOCKS},
        {"pai-megatron-patch", DUMMIES_BLOCKS},
        {"megatron-core-2026", DUMMIES_EXPERTS},
        {"{like: megatron-core-2026, fused_accumulation: false}", DUMMIES_NONE},
        {"primus-megatron", DUMMIES_NONE},
        {"{like: megatron-core-2026, dummy_gradients: none}", DUMMIES_NONE},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct simulated simulated;

        run_text(&simulated, "model: {preset: mixtral-8x7b}\ncluster: {platform: dgx-h100, nodes: 1}\n"
                 "batch: {global: 8, micro: 1}\nsimulation: {engine: fast}\nsoftware: %s\n"
                 "strategy: {expert: 8, zero: 1}\nmemory: {enforce: false, precision: mixed-bf16}\n", cases[i].software);
        assert_int_equal(simulated.scenario.memory.dummy_gradients, cases[i].kept);
        assert_true((dummies_of(&simulated, 0) > 0) == (cases[i].kept != DUMMIES_NONE));
        simulated_release(&simulated);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_llama_405b), cmocka_unit_test(test_shapes), cmocka_unit_test(test_releases),
    };

    return cmocka_run_group_tests_name("dummy_gradients", tests, NULL, NULL);
}
