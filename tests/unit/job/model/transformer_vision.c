/* Encoders of text and of images: work and memory by closed forms, shapes as their config.json says them, and what is refused. */
#include "config_file.h"
#include "model_layers.h"
#include "trials.h"

#include "kernels/cost.h"

enum { SHAPES = 24 };
#define IMAGES "qkv_bias: true, bias: true, dropout: 0"

static struct shard whole = {.micro = 1, .tensor = 1, .dtype = DTYPE_BF16};

/* Multiply-adds of an image, half of the forward's FLOPs: published for ViT-B/16 are 17.58 G (torchvision, timm; with what norms
 * and softmax compute). */
static void vit_flop(void **state)
{
    struct model model = load_good("{transformer: {layers: 12, hidden: 768, heads: 12, vision: {image: 224, patch: 16}, head: "
                                   "classifier, classes: 1000, " IMAGES "}}");
    double forward, total = model_flop(&model, NULL, &forward);
    double closed = 197.0 * 12 * 12 * 768 * 768 + 12 * 2 * 197.0 * 197 * 768 + 196.0 * 768 * 768 + 768 * 1000;

    (void)state;
    assert_close(forward, 2 * closed);
    assert_true(fabs(forward / 2 / 17.58e9 - 1) < 0.002);
    assert_close(total, 3 * forward - 2 * 196.0 * 768 * 768);        /* nobody needs the gradient of the image */
    assert_int_equal(model.transformer->sequence, 197);
    assert_true(model_parameters(&model) == 86567656);
}

/* Random images: parameters, kept bytes and FLOPs of what stands before and behind the blocks. */
static void images(void **state)
{
    (void)state;
    EACH_TRIAL(i, SHAPES) {
        uint64_t seed = i * 0x9E3779B97F4A7C15u;
        int patch = 4 << below(&seed, 3), side = 2 + below(&seed, 9), h = 64 * (1 + below(&seed, 6));
        int tokens = 1 + below(&seed, 3), classes = 2 + below(&seed, 999), c = 1 + below(&seed, 5);
        bool bias = below(&seed, 2);
        struct shard shard = {.micro = 1 + below(&seed, 4), .tensor = 1 << below(&seed, 2), .dtype = DTYPE_BF16};
        struct model model = load_good(arena_printf(&arena, "{transformer: {layers: 1, hidden: %d, heads: 4, vision: {image: %d, patch: %d, "
                                                    "channels: %d, tokens: %d, bias: %s}, head: classifier, classes: %d, " IMAGES "}}", h,
                                                    patch * side, patch, c, tokens, bias ? "true" : "false", classes));
        const double patches = (double)side * side, values = (double)c * patch * patch, sequence = patches + tokens;
        const struct layer *layers;
        size_t count;

        layers = layers_of(&model, &shard, &count);
        assert_int_equal(count, 3);
        assert_close(layers[0].parameters, values * h + (bias ? h : 0) + tokens * h + sequence * h);
        assert_close(layers[0].activation, 2 * shard.micro * patches * values);
        assert_close(layers[1].boundary, 2 * shard.micro * sequence * h);
        assert_close(layers[2].parameters, 2 * h + (double)tokens * classes * (h + 1));
        assert_close(layers[2].output, 2.0 * shard.micro * tokens * classes);
        assert_close(layers[2].activation, 2 * shard.micro * (sequence + tokens) * h + 4.0 * shard.micro * tokens * classes);
        assert_true(layers[2].tied == 0);
        forget(NULL);
    }
}

/* Attention that is not causal with a window: as many keys for each query as it says, on both sides together. */
static void windows(void **state)
{
    (void)state;
    for (int window = 0; window <= 1024; window += 128) {
        struct model model = load_good(arena_printf(&arena, "{transformer: {layers: 3, hidden: 256, heads: 4, sequence: 1024, vocabulary: "
                                                    "1000, positions: 0, causal: false, window: %d%s, head: none, flash_attention: true}}",
                                                    window, window ? ", full_blocks: [0]" : ""));
        double forward, seen = window ? window : 1024, all = 1024.0;
        const struct layer *layers;
        size_t count;

        model_flop(&model, NULL, &forward);
        assert_close(forward, 3 * 24 * 256.0 * 256 * all + 4 * 256 * all * (all + 2 * seen));
        layers = layers_of(&model, &whole, &count);
        for (size_t i = 0; i < layers[2].nkernels; i++)
            if (layers[2].kernels[i].kind == KERNEL_ATTENTION)       /* whole blocks of keys are computed */
                assert_true(layers[2].kernels[i].flop >= kernel_whole_flop(&layers[2].kernels[i]) * (1 - 1e-12) &&
                            layers[2].kernels[i].flop <= kernel_whole_flop(&layers[1].kernels[i]) * (1 + 1e-12));
        forget(NULL);
    }
}

/* A shape that a person writes and the config.json of the same model are the same layers. */
static const struct { const char *config, *shape; } twins[] = {
    {"{model_type: vit, num_labels: 10, image_size: 64, patch_size: 8, hidden_size: 128, num_attention_heads: 4, intermediate_size: 512, "
     "num_hidden_layers: 2}",
     "layers: 2, hidden: 128, heads: 4, vision: {image: 64, patch: 8}, head: classifier, classes: 10, " IMAGES},
    {"{model_type: vit, architectures: [ViTModel], hidden_size: 128, num_attention_heads: 4, intermediate_size: 512, num_hidden_layers: 2}",
     "layers: 2, hidden: 128, heads: 4, vision: {image: 224, patch: 16}, head: none, " IMAGES},
    {"{model_type: deit, architectures: [DeiTForImageClassification], id2label: {\"0\": cat, \"1\": dog, \"2\": cow}, hidden_size: 128, "
     "num_attention_heads: 4, intermediate_size: 512, num_hidden_layers: 2}",
     "layers: 2, hidden: 128, heads: 4, vision: {image: 224, patch: 16, tokens: 2, classifiers: 1}, head: classifier, classes: 3, " IMAGES},
    {"{model_type: clip, vision_config: {hidden_size: 128, num_attention_heads: 4, intermediate_size: 256, num_hidden_layers: 2}, "
     "text_config: {hidden_size: 64}}",
     "layers: 2, hidden: 128, heads: 4, ffn: 256, vision: {image: 224, patch: 32, bias: false}, head: none, embedding_norm: true, " IMAGES},
    {"{model_type: roberta, vocab_size: 1000, max_position_embeddings: 130, type_vocab_size: 1, hidden_size: 128, num_attention_heads: 4, "
     "intermediate_size: 512, num_hidden_layers: 2}",
     "layers: 2, hidden: 128, heads: 4, sequence: 128, positions: 130, vocabulary: 1000, token_types: 1, causal: false, head: "
     "masked-language-model, final_norm: false, embedding_norm: true"},
    {"{model_type: modernbert, vocab_size: 1000, max_position_embeddings: 512, hidden_size: 128, num_attention_heads: 4, intermediate_size: "
     "192, num_hidden_layers: 5}",
     "layers: 5, hidden: 128, heads: 4, ffn: 192, sequence: 512, positions: 0, vocabulary: 1000, causal: false, head: masked-language-model, "
     "mlp: swiglu, norm_bias: false, transform_bias: false, bias: false, qkv_bias: false, window: 128, full_blocks: [0, 3], dropout: 0"},
};

static void configs(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(twins); i++) {
        struct model models[2] = {read_config(twins[i].config), load_good(arena_printf(&arena, "{transformer: {%s}}", twins[i].shape))};
        const struct layer *layers[2];
        size_t counts[2];

        for (int k = 0; k < 2; k++)
            layers[k] = layers_of(&models[k], &whole, &counts[k]);
        assert_int_equal(counts[0], counts[1]);
        for (size_t l = 0; l < counts[0]; l++) {
            if (layers[0][l].nkernels != layers[1][l].nkernels || layers[0][l].parameters != layers[1][l].parameters)
                fail_msg("layer %zu of %s is not that of %s", l, twins[i].config, twins[i].shape);
            assert_true(layers[0][l].activation == layers[1][l].activation);
            for (size_t k = 0; k < layers[0][l].nkernels; k++)
                assert_true(layers[0][l].kernels[k].flop == layers[1][l].kernels[k].flop &&
                            layers[0][l].kernels[k].bytes == layers[1][l].kernels[k].bytes);
        }
    }
}

/* `with` changes a key of a mapping, and the sample with it. */
static void changes(void **state)
{
    struct model model = load_good("{preset: vit-l-16, with: {vision: {image: 448}}}");

    (void)state;
    assert_int_equal(model.transformer->vision->patch, 16);
    assert_int_equal(model.transformer->sequence, 785);
    assert_true(model_parameters(&model) == 304326632 + (785 - 197) * 1024);
    model = load_good("{preset: t5-large, with: {encoder: {sequence: 256}}, sequence: 64}");
    assert_int_equal(model.transformer->encoder->layers, 24);
    assert_int_equal(model.transformer->encoder->sequence, 256);
    assert_int_equal(model.transformer->sequence, 64);
}

static const struct { const char *shape, *message; } bad[] = {
    {"layers: 2, hidden: 64, heads: 4, head: none", "missing key"},
    {"layers: 2, hidden: 64, heads: 4, vision: {image: 60, patch: 16}, head: none", "patches of 16 pixels do not divide an image of 60"},
    {"layers: 2, hidden: 64, heads: 4, vision: {image: 64, patch: 16}", "expected 'head: classifier' or 'head: none'"},
    {"layers: 2, hidden: 64, heads: 4, vision: {image: 64, patch: 16}, head: classifier", "needs the key 'classes'"},
    {"layers: 2, hidden: 64, heads: 4, vision: {image: 64, patch: 16, tokens: 0}, head: classifier, classes: 2", "with one token at least"},
    {"layers: 2, hidden: 64, heads: 4, vision: {image: 64, patch: 16, classifiers: 2}, head: classifier, classes: 2", "2 classifiers for 1"},
    {"layers: 2, hidden: 64, heads: 4, vision: {image: 64, patch: 16}, head: none, classes: 2", "goes with 'head: classifier'"},
    {"layers: 2, hidden: 64, heads: 4, vision: {image: 64, patch: 16}, head: none, sequence: 16", "learned tokens of 'vision' are 17"},
    {"layers: 2, hidden: 64, heads: 4, vision: {image: 64, patch: 16}, head: none, causal: true", "patches of an image see each other"},
    {"layers: 2, hidden: 64, heads: 4, vision: {image: 64, patch: 16}, head: none, vocabulary: 100", "goes with a text"},
    {"layers: 2, hidden: 64, heads: 4, sequence: 16, vocabulary: 0", "expected 1 or more"},
    {"layers: 2, hidden: 64, heads: 4, sequence: 16, vocabulary: 100, head: classifier, classes: 2", "reads the learned tokens"},
};

static void wrong(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct model model = {0};

        if (load(arena_printf(&arena, "{transformer: {%s}}", bad[i].shape), &model) == 0)
            fail_msg("loads: %s", bad[i].shape);
        if (!strstr(error.messages[0].text, bad[i].message))
            fail_msg("%s: %s", bad[i].shape, error.messages[0].text);
        forget(NULL);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_teardown(name, forget)
    const struct CMUnitTest tests[] = {TEST(vit_flop), TEST(images), TEST(windows), TEST(configs), TEST(changes), TEST(wrong)};

    return cmocka_run_group_tests(tests, make_file, drop_file);
}
