/* Multi-token prediction: parameters, kernels, memory and places of its modules, from blocks and output layers. */
#include "model_files.h"

enum { TOKENS = 2 * 32, HIDDEN = 64, VOCABULARY = 256 };

static struct model model_of(const char *more)
{
    return load_good(arena_printf(&arena, "transformer: {layers: 3, hidden: %d, heads: 4, kv_heads: 2, ffn: 128, sequence: "
                                  "32, vocabulary: %d, positions: 0, norm: rmsnorm, mlp: swiglu, qkv_bias: false, bias: "
                                  "false, dropout: 0, flash_attention: true%s}", HIDDEN, VOCABULARY, more));
}

static const char experts[] = ", tied: false, experts: 4, experts_per_token: 2, expert_ffn: 32, dense_layers: 1";

/* DeepSeek-V3, section 2.2: a block, 2 h x h and three norms each. Published with the modules are 685 billion
 * parameters (its README: 671 and 14); these 14 count the shared embedding and output layer a second time. */
static void parameters(void **state)
{
    (void)state;
    struct model without = preset("deepseek-v3"), with = load_good("{preset: deepseek-v3, with: {mtp: 1}}");
    const struct transformer *shape = with.transformer;
    double h = shape->hidden, shared = 2. * shape->vocabulary * h, more = model_parameters(&with) - model_parameters(&without);
    struct layers layers = cut(&with, plain(1, 1));
    const struct layer *block = &layers.items[shape->layers];

    assert_true(more == block->parameters + 2 * h * h + 3 * h);
    assert_in_range((long)((more + shared) / 1e8), 130, 145);
    assert_in_range((long)(model_parameters(&with) / 1e9 + shared / 1e9), 684, 685);
    /* of 256 experts a token meets 8 */
    assert_true(model_active_parameters(&with) - model_active_parameters(&without) ==
                more - 248. * 3 * h * shape->expert_ffn);
}

/* Modules with one set of weights have the parameters of one, and the work and memory of all. */
static void repeats(void **state)
{
    (void)state;
    for (int k = 0; k < 2; k++) {
        const char *more = k ? experts : "";
        struct model one = model_of(arena_printf(&arena, "%s, mtp: 1", more)), apart = model_of(arena_printf(&arena, "%s, mtp: 3", more));
        struct model repeated = model_of(arena_printf(&arena, "%s, mtp: 3, mtp_repeats: true", more));
        struct layers layers = cut(&repeated, plain(2, 1)), others = cut(&apart, plain(2, 1));

        assert_true(model_parameters(&repeated) == model_parameters(&one));
        assert_true(model_active_parameters(&repeated) == model_active_parameters(&one));
        assert_true(model_flop(&repeated, NULL, NULL) == model_flop(&apart, NULL, NULL));
        assert_int_equal(layers.count, others.count);
        for (size_t i = 0; i < layers.count; i++) {
            assert_true(kernels_flop(&layers.items[i]) == kernels_flop(&others.items[i]));
            assert_true(layers.items[i].activation == others.items[i].activation);
            assert_true(layers.items[i].parameters == (i == 6 || i == 8 ? 0 : others.items[i].parameters));
        }
    }
}

/* Each module is a block like the last one with a product of 2 h x h, and the output layer's products once more. */
static void products(void **state)
{
    (void)state;
    struct model without = model_of(experts), with = model_of(arena_printf(&arena, "%s, mtp: 2", experts));
    struct layers layers = cut(&with, plain(2, 1)), others = cut(&without, plain(2, 1));
    const struct layer *block = &others.items[3], *output = &others.items[4];
    double projection = 3 * 2. * TOKENS * HIDDEN * 2 * HIDDEN, sum = 0, forward, before;

    assert_int_equal(layers.count, others.count + 4);
    for (size_t i = 0; i < others.count; i++)
        assert_true(kernels_flop(&layers.items[i < 4 ? i : i + 4]) == kernels_flop(&others.items[i]));
    for (int i = 0; i < 2; i++) {
        const struct layer *module = &layers.items[4 + 2 * i], *head = &layers.items[5 + 2 * i];

        assert_true(module->role == LAYER_PREDICTION && head->role == LAYER_LAST);
        assert_close(kernels_flop(module), kernels_flop(block) + projection);
        assert_close(kernels_flop(head), kernels_flop(output));
        assert_true(head->parameters == 0);
        /* two tokens' inputs, and three norms' */
        assert_close(module->activation, block->activation + (2 + 3) * TOKENS * HIDDEN * 2.);
        assert_close(module->checkpoint, 2 * block->checkpoint);
        assert_close(head->activation, output->activation - TOKENS * HIDDEN * 2.);
        assert_int_equal(layer_sends(module, SENT_ROWS, false).forward, layer_sends(block, SENT_ROWS, false).forward);
        sum += flop_of(module, PHASE_FORWARD) + flop_of(head, PHASE_FORWARD);
    }
    model_flop(&with, NULL, &forward);
    model_flop(&without, NULL, &before);
    assert_close(2 * (forward - before), sum);           /* of a sample, here of two */
}

/* The last stage has a copy of the embedding: once, and not of a tied model, whose output layer has it. */
static void copies(void **state)
{
    (void)state;
    struct model untied = model_of(", tied: false, mtp: 2"), tied = model_of(", tied: true, mtp: 2");
    struct layers layers = cut(&untied, plain(1, 2)), others = cut(&tied, plain(1, 2));
    double sums[2] = {0};

    for (size_t i = 0; i < layers.count; i++) {
        sums[0] += layers.items[i].tied;
        sums[1] += others.items[i].tied;
    }
    assert_true(sums[0] == VOCABULARY / 2. * HIDDEN && layers.items[layers.count - 1].tied == 0);
    assert_true(sums[1] == VOCABULARY / 2. * HIDDEN && others.items[others.count - 1].tied == sums[1]);
}

/* Megatron Core divides the product by columns: of a group of two each has a half, and gathers it. */
static void divided(void **state)
{
    (void)state;
    struct model model = model_of(", tied: false, mtp: 1");
    struct layers one = cut(&model, plain(1, 1)), two = cut(&model, plain(1, 2));
    const struct layer *whole = &one.items[4], *half = &two.items[4], *block = &two.items[3];

    assert_true(whole->parameters - one.items[3].parameters == 2. * HIDDEN * HIDDEN + 3 * HIDDEN);
    assert_true(half->parameters - block->parameters == 2. * HIDDEN * HIDDEN / 2 + 3 * HIDDEN);
    assert_int_equal(layer_sends(half, SENT_SUM, false).forward, layer_sends(block, SENT_SUM, false).forward + 1);
    assert_int_equal(layer_sends(half, SENT_INPUT, false).backward, layer_sends(block, SENT_INPUT, false).backward + 2);
    assert_int_equal(layer_sends(whole, SENT_SUM, false).forward, 0);
}

static void messages(void **state)
{
    (void)state;
    clashes("transformer: {layers: 2, hidden: 64, heads: 4, sequence: 32, vocabulary: 128, head: none, mtp: 1}",
            "1:96: transformer: mtp: goes with 'head: language-model', whose output layer predicts tokens");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_teardown(name, forget)
    const struct CMUnitTest tests[] = {TEST(parameters), TEST(products), TEST(repeats), TEST(copies), TEST(divided), TEST(messages)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
