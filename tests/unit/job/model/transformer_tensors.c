/* transformer_tensors: the parameters of a layer, one by one, on a GPU of the tensor-parallel group. */
#include "model_files.h"

/* Tensors in the model's order; split ones divided, the others whole on every GPU. */
static void parameters_per_gpu(void **state)
{
    (void)state;
    static const double block_of_two[] = {64, 64, 96 * 64, 96, 32 * 64, 64, 64, 64, 128 * 64, 128, 128 * 64, 64};
    struct model model = load_good("transformer: {layers: 1, hidden: 64, heads: 4, sequence: 32, vocabulary: 101}");
    struct layers layers = cut(&model, plain(1, 2));

    assert_int_equal(layers.items[1].ntensors, COUNT(block_of_two));
    for (size_t i = 0; i < COUNT(block_of_two); i++)
        assert_true(layers.items[1].tensors[i] == block_of_two[i]);
    assert_true(layers.items[0].parameters == 128 * 64 + 32 * 64);   /* 101 rows on two GPUs: padded to 2 x 128 */
    assert_true(layers.items[2].parameters == 2 * 64);
    assert_true(layers.items[2].tied == 128 * 64);
    for (size_t i = 0; i < layers.count; i++) {
        double sum = 0;

        for (size_t k = 0; k < layers.items[i].ntensors; k++)
            sum += layers.items[i].tensors[k];
        assert_true(sum == layers.items[i].parameters);
    }
    model.transformer->tied = false;
    layers = cut(&model, plain(1, 2));
    assert_true(layers.items[2].parameters == 128 * 64 + 2 * 64 && layers.items[2].tied == 0);
}

static void whole_parameters_are_the_sum(void **state)
{
    (void)state;
    static const char *const names[] = {"gpt2-124m", "llama3-8b", "bert-large", "megatron-1.7b", "resnet50"};

    for (size_t i = 0; i < COUNT(names); i++) {
        struct model model = preset(names[i]);
        struct layers layers = cut(&model, plain(1, 1));
        double sum = 0;

        for (size_t k = 0; k < layers.count; k++)
            sum += layers.items[k].parameters;
        assert_true(sum == model_parameters(&model));
    }
}

/* What models of others have more, counted by hand: biases of the projection alone, norms of queries and keys, four
 * norms in a block, a gate of the shared experts, a narrow embedding, a bias of the output layer. */
static void parts_of_others(void **state)
{
#define BASE "layers: 1, hidden: 64, heads: 4, kv_heads: 2, sequence: 32, vocabulary: 128, positions: 0, norm: " \
             "rmsnorm, bias: false, qkv_bias: false"
    static const struct { const char *more; double block, first, last; } cases[] = {
        {"projection_bias: true", 64, 0, 0},
        {"norm_bias: true", 2 * 64, 0, 64},
        {"post_norms: true", 2 * 64, 0, 0},
        {"post_norms: true, norm_bias: true", 2 * 64 + 4 * 64, 0, 64},
        {"parallel: true", -64, 0, 0},
        {"qk_norm: head", 16 + 16, 0, 0},
        {"qk_norm: width", 64 + 32, 0, 0},
        {"qk_norm: width, norm_bias: true", 2 * 96 + 2 * 64, 0, 64},
        {"head_bias: true", 0, 0, 128},
        {"embedding_size: 16", 0, 64 * 16 - 128 * 48, 64 * 16},
        {"embedding_size: 16, tied: false", 0, 64 * 16 - 128 * 48, 64 * 16 + 128 * 16},
    };
    struct model plain_model = load_good("transformer: {" BASE "}"), shared, gated;
    struct layers base = cut(&plain_model, plain(1, 1));

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct model model = load_good(arena_printf(&arena, "transformer: {" BASE ", %s}", cases[i].more));
        struct layers layers = cut(&model, plain(1, 1)), half = cut(&model, plain(1, 2));

        if (layers.items[1].parameters - base.items[1].parameters != cases[i].block ||
            layers.items[0].parameters - base.items[0].parameters != cases[i].first ||
            layers.items[2].parameters - base.items[2].parameters != cases[i].last)
            fail_msg("%s: %.0f more in the block, %.0f in the embedding, %.0f in the output layer", cases[i].more,
                     layers.items[1].parameters - base.items[1].parameters,
                     layers.items[0].parameters - base.items[0].parameters,
                     layers.items[2].parameters - base.items[2].parameters);
        assert_true(half.items[1].parameters < layers.items[1].parameters);
        assert_true(model_parameters(&model) ==
                    layers.items[0].parameters + layers.items[1].parameters + layers.items[2].parameters);
    }
    shared = load_good("transformer: {" BASE ", experts: 4, experts_per_token: 2, expert_ffn: 32, shared_experts: 1}");
    gated = load_good("transformer: {" BASE ", experts: 4, experts_per_token: 2, expert_ffn: 32, shared_experts: 1, "
                      "shared_ffn: 96, shared_gate: true}");
    assert_true(model_parameters(&gated) - model_parameters(&shared) == 2 * 64 * (96 - 32) + 64);
}

static void blocks_by_lists(void **state)
{
    struct model model = load_good("transformer: {layers: 4, hidden: 64, heads: 4, sequence: 32, vocabulary: 128, "
                                   "experts: 2, experts_per_token: 1, expert_blocks: [0, 3], window: 8, full_blocks: "
                                   "[1]}");

    (void)state;
    for (int i = 0; i < 4; i++) {
        assert_true(transformer_halves(model.transformer, i).experts == (i == 0 || i == 3));
        assert_true(transformer_halves(model.transformer, i).window == (i != 1));
    }
    refused("transformer: {layers: 4, hidden: 64, heads: 4, sequence: 32, vocabulary: 128, window: 8, full_every: 2, "
            "full_blocks: [1]}", "1:102: transformer: full_blocks and full_every say the same; expected one of them");
    clashes("transformer: {layers: 4, hidden: 64, heads: 4, sequence: 32, vocabulary: 128, full_blocks: [1]}",
            "1:92: transformer: full_blocks goes with 'window', which is missing");
    clashes("transformer: {layers: 4, hidden: 64, heads: 4, sequence: 32, vocabulary: 128, alibi: true}",
            "1:86: transformer: alibi: goes with 'positions: 0', found 32 learned positions");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_teardown(name, forget)
    const struct CMUnitTest tests[] = {TEST(parameters_per_gpu), TEST(whole_parameters_are_the_sum),
                                       TEST(parts_of_others), TEST(blocks_by_lists)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
