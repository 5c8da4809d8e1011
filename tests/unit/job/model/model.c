/* model: parameter counts of published models, defaults, given times, messages. */
#include "model_files.h"

static void published_counts(void **state)
{
    (void)state;
    static const struct { const char *name; double parameters; } cases[] = {
        {"gpt2-124m", 124439808}, {"gpt2-355m", 354823168}, {"gpt2-774m", 774030080}, {"gpt2-1.5b", 1557611200},
        {"llama2-7b", 6738415616}, {"llama2-13b", 13015864320}, {"llama2-70b", 68976648192},
        {"llama3-8b", 8030261248}, {"llama3-70b", 70553706496},
        {"bert-large", 335174458}, /* BertForMaskedLM */
        {"gpt3-175b", 174604259328.0 /* 174.6 B */}, {"vgg16", 138357544}, {"resnet50", 25557032},
        {"qwen3-0.6b", 596049920}, {"qwen3-1.7b", 1720574976}, {"qwen3-4b", 4022468096}, {"qwen3-8b", 8190735360},
        {"qwen3-14b", 14768307200}, {"qwen3-32b", 32762123264}, {"qwen3-30b-a3b", 30532122624},
        {"qwen3-235b-a22b", 235093634560}, {"qwen2.5-0.5b", 494032768}, {"qwen2.5-7b", 7615616512},
        {"qwen2.5-14b", 14770033664}, {"qwen2.5-32b", 32763876352}, {"qwen2.5-72b", 72706203648},
        {"llama3.2-1b", 1235814400}, {"llama3.2-3b", 3212749824}, {"deepseek-v2-lite", 15706484224},
        {"resnet101-370", 44549160}, {"amoebanet-d-18-256", 122470120}, {"unet-5-64", 232687328},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct model model = preset(cases[i].name);

        if (model_parameters(&model) != cases[i].parameters)
            fail_msg("%s: %.0f instead of %.0f", cases[i].name, model_parameters(&model), cases[i].parameters);
        assert_non_null(model.title);
        if (model.published_parameters > 0)      /* else only other sizes of it are printed */
            assert_true(fabs(model.published_parameters / cases[i].parameters - 1) < 0.05);
    }
}

/* BertModel has a pooler (a product of h x h with its bias) where BertForMaskedLM has the same product, a norm of 2 h
 * and a bias of V. */
static void bert_with_a_pooler(void **state)
{
    (void)state;
    struct model model = preset("bert-large");

    assert_true(model_parameters(&model) - 2 * 1024 - 30522 == 335141888);
}

/* Multiply-adds of one image: VGG-16 15.47 G, ResNet-50 (v1.5) 4.09 G. */
static void published_flops(void **state)
{
    (void)state;
    double forward;
    struct model model = preset("vgg16");

    assert_close(model_flop(&model, NULL, &forward), 3 * 2 * 15470264320.0);
    assert_close(forward, 2 * 15470264320.0);
    model = preset("resnet50");
    assert_close(model_flop(&model, NULL, NULL), 3 * 2 * 4089184256.0);
    assert_false(model_is_timed(&model));
    assert_true(model_has_samples(&model));
}

static void transformer_defaults(void **state)
{
    (void)state;
    struct model model = load_good("transformer: {layers: 2, hidden: 64, heads: 4, sequence: 32, vocabulary: 100}");
    const struct transformer *shape = model.transformer;

    assert_int_equal(shape->kv_heads, 4);
    assert_int_equal(shape->head_size, 16);
    assert_int_equal(shape->ffn, 256);
    assert_int_equal(shape->positions, 32);
    assert_int_equal(shape->norm, NORM_LAYERNORM);
    assert_int_equal(shape->mlp, MLP_GELU);
    assert_true(shape->tied && shape->bias && shape->qkv_bias && shape->causal && shape->final_norm);
    assert_true(shape->dropout == 0.1 && shape->attention_dropout == 0.1);
    assert_int_equal(model.sequence, 32);
}

static void sequence_beside(void **state)
{
    (void)state;
    struct model model = load_good("{preset: megatron-1.7b, sequence: 512}");

    assert_int_equal(model.transformer->sequence, 512);
    assert_int_equal(model.transformer->positions, 512);
    model = load_good("{preset: gpt2-124m, sequence: 256}");
    assert_int_equal(model.transformer->sequence, 256);
    assert_int_equal(model.transformer->positions, 1024);
    model = load_good("{hf_config: " MODELS "llama3-8b/config.json, sequence: 16384}");
    assert_int_equal(model.transformer->sequence, 16384);
    assert_int_equal(model.transformer->positions, 0);
}

/* What a resolved scenario prints is the same model, whatever it was read from. */
static void dumps_read_back(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "preset: gpt2-124m", "preset: llama3-70b", "{preset: megatron-1t, sequence: 1024, title: mine}",
        "preset: vgg16",
        "hf_config: " MODELS "bert-large-uncased/config.json", "stages: {forward: 1 s}",
        "layers: [{name: a, forward: 1 ms, backward_input: 1 ms, parameters: 3 k}]",
        "layers: [{name: a, flops: 1 GFLOP, efficiency: 0.5, traffic: 1 kB}]",
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct model model = load_good(cases[i]), again;
        struct node *dump = field_dump(&arena, &model_table, &model), *second;
        char *texts[2] = {0};
        size_t sizes[2];
        FILE *out;

        assert_null(model.preset);
        assert_null(model.hf_config);
        assert_int_equal(model_load(&arena, dump, &again, &error), 0);
        second = field_dump(&arena, &model_table, &again);
        for (int k = 0; k < 2; k++) {
            out = open_memstream(&texts[k], &sizes[k]);
            node_print(k ? second : dump, out);
            fclose(out);
        }
        assert_string_equal(texts[0], texts[1]);
        assert_true(sizes[0] > 40);
        if (!isnan(model_parameters(&model)))
            assert_true(model_parameters(&again) == model_parameters(&model));
        free(texts[0]);
        free(texts[1]);
    }
}

static void stage_defaults(void **state)
{
    (void)state;
    struct model model = load_good("stages: {forward: 3 s}");
    const struct given_layer *stage = model.stages.items;

    assert_int_equal(model.stages.count, 1);
    assert_true(stage->backward == 6 && stage->recompute == 3);
    assert_true(stage->backward_input == 3 && stage->backward_weight == 3);
    assert_true(isnan(stage->flops) && isnan(model_parameters(&model)) && isnan(model_flop(&model, NULL, NULL)));
    assert_true(model_is_timed(&model));
    assert_false(model_has_samples(&model));

    model = load_good("stages: [{forward: 1 s, backward_input: 1 s, backward_weight: 2 s, parameters: 1 M},"
                      " {forward: 1 s, backward: 5 s, backward_input: 2 s, recompute: 0 s, parameters: 2 M},"
                      " {forward: 1 s, backward: 5 s, backward_input: 2 s, backward_weight: 2 s}]");
    stage = model.stages.items;
    assert_true(stage[0].backward == 3);
    assert_true(stage[1].backward_weight == 3 && stage[1].recompute == 0);
    assert_true(stage[2].backward == 5 && stage[2].backward_input + stage[2].backward_weight == 4);
    assert_true(model_parameters(&model) == 3e6);
}

static void timed_layers(void **state)
{
    (void)state;
    struct model model = load_good("layers: [{name: a, forward: 1 s, backward: 3 s, boundary: 5 B, activation: 7 B},"
                                   " {name: b, forward: 2 s, parameters: 10}]");
    struct layers layers = cut(&model, (struct shard){.micro = 4, .tensor = 1, .dtype = DTYPE_FP16});

    assert_true(model_is_timed(&model));
    assert_int_equal(layers.count, 2);
    assert_string_equal(layers.items[1].name, "b");
    assert_int_equal(layers.items[0].role, LAYER_BLOCK);
    assert_true(layers.items[0].timed && layers.items[0].nkernels == 0 && layers.items[0].ntensors == 0);
    assert_true(layers.items[0].given[PHASE_BACKWARD_INPUT] == 1.5 && layers.items[0].given_backward == 3);
    assert_true(layers.items[0].boundary == 5 && layers.items[0].activation == 7 && layers.items[0].checkpoint == 0);
    assert_true(layers.items[1].checkpoint == 5 && layers.items[1].given_recompute == 2);
    assert_true(layers.items[1].ntensors == 1 && layers.items[1].tensors[0] == 10);
}

/* FLOPs and bytes are a sample's, bytes at 4 a value. */
static void layers_by_flops(void **state)
{
    (void)state;
    struct model model = load_good("layers: [{name: a, flops: 1 GFLOP, parameters: 100, boundary: 40 B,"
                                   " activation: 80 B}, {name: b, flops: 2 GFLOP}]");
    struct layers layers = cut(&model, (struct shard){.micro = 4, .tensor = 1, .dtype = DTYPE_FP16});
    const struct layer *first = &layers.items[0];

    assert_false(first->timed);
    assert_true(first->activation == 160 && first->boundary == 80 && layers.items[1].checkpoint == 80);
    for (int phase = PHASE_FORWARD; phase <= PHASE_BACKWARD_WEIGHT; phase++)
        assert_true(flop_of(first, (enum phase)phase) == 4e9);
    assert_true(first->kernels[0].bytes == 100 * 2 + 2 * 160);
    assert_true(model_flop(&model, NULL, NULL) == 9e9);
}

/* An operation that is no product is a separate kernel, in the forward and in the backward for the input. A layer
 * without FLOPs has no other kernels. */
static void layers_with_traffic(void **state)
{
    (void)state;
    struct model model = load_good("layers: [{flops: 1 GFLOP, parameters: 10, efficiency: 1.5, operands: 40 B,"
                                   " traffic: 8 B, activation: 80 B}, {flops: 0, traffic: 8 B, traffic_backward: 12 B},"
                                   " {flops: 1 GFLOP, efficiency: 0.5, efficiency_backward: 0.25}]");
    struct layers layers = cut(&model, (struct shard){.micro = 3, .tensor = 1, .dtype = DTYPE_FP16});
    const struct kernel *kernels = layers.items[0].kernels;
    static const double efficiency[] = {0.5, 0.25, 0.25};

    assert_int_equal(layers.items[0].nkernels, 5);
    for (int phase = PHASE_FORWARD; phase <= PHASE_BACKWARD_WEIGHT; phase++) {
        assert_true(kernels[phase].kind == KERNEL_MATMUL && kernels[phase].bytes == 10 * 2 + 3 * 40 / 2);
        assert_true(kernels[phase].efficiency == 1.5);
        assert_true(layers.items[2].kernels[phase].efficiency == efficiency[phase]);
    }
    for (int phase = PHASE_FORWARD; phase <= PHASE_BACKWARD_INPUT; phase++) {
        const struct kernel *other = &layers.items[1].kernels[phase];

        assert_true(kernels[3 + phase].kind == KERNEL_MEMORY && kernels[3 + phase].phase == (enum phase)phase);
        assert_true(kernels[3 + phase].bytes == 3 * (phase ? 16 : 8) / 2.0 && kernels[3 + phase].flop == 0);
        assert_true(other->kind == KERNEL_MEMORY && other->bytes == 3 * (phase ? 12 : 8) / 2.0);
    }
    assert_int_equal(layers.items[1].nkernels, 2);
    assert_int_equal(layers.items[2].nkernels, 3);
}

static void messages(void **state)
{
    (void)state;
    refused("{preset: gpt2-124m, stages: {forward: 1 s}}", "1:21: model: 'preset' and 'stages' exclude each other");
    refused("{sequence: 5}", "1:1: model: expected exactly one of preset, transformer, hf_config, layers, stages");
    clashes("transformer: {layers: 2, hidden: 64, heads: 8, kv_heads: 3, sequence: 32, vocabulary: 100}",
            "1:58: transformer: kv_heads: 3 does not divide the 8 heads");
    clashes("transformer: {layers: 2, hidden: 64, heads: 8, positions: 16, sequence: 32, vocabulary: 100}",
            "1:73: transformer: sequence: 32 is longer than the 16 learned positions");
    clashes("{preset: gpt2-124m, sequence: 2048}",
            "1:31: model: sequence: 2048 is longer than the 1024 learned positions");
    clashes("{stages: {forward: 1 s}, sequence: 2048}",
            "1:36: model: sequence: this model has no tokens; only a transformer has a sequence");
    refused("layers: []", "1:9: model: layers: found an empty list; expected at least one");
    refused("layers: [{forward: 1 s}, {flops: 1 GFLOP}]",
            "1:34: layers: some layers have times, others flops; expected the same for all layers");
    refused("layers: [{flops: 1 GFLOP, backward: 1 s}]",
            "1:37: layers: backward: a time cannot go with flops; expected forward instead of flops");
    refused("layers: [{forward: 1 s, traffic: 1 B}]",
            "1:34: layers: traffic goes with flops, not with times");
    refused("layers: [{name: a}]", "1:10: layers: expected exactly one of forward, flops, csv");
    refused("stages: {forward: 1 s, backward_input: 3 s}",
            "1:40: stages: backward_input is longer than the whole backward; give backward, or both parts");
    refused("stages: {forward: 1 s, backward: 1 s, backward_weight: 3 s}",
            "1:56: stages: backward_weight is longer than the whole backward; give backward, or both parts");
}

static void tensor_messages(void **state)
{
    (void)state;
    static const struct { const char *model; struct shard shard; const char *expected; } cases[] = {
        {"preset: gpt2-355m", {.tensor = 3},
         "7:8: strategy: tensor: 3 does not divide the 16 attention heads; try 1, 2, 4, 8 or 16"},
        {"preset: llama3-70b", {.tensor = 16},
         "7:8: strategy: tensor: 16 does not divide the 8 heads of keys and values; try 1, 2, 4 or 8, or software whose "
         "release gathers them ('software: {gathered_qkv: true}')"},
        {"transformer: {layers: 1, hidden: 64, heads: 8, ffn: 100, sequence: 32, vocabulary: 100}", {.tensor = 8},
         "7:8: strategy: tensor: 8 does not divide the 100 columns of the MLP; try 1, 2 or 4"},
        {"{preset: gpt2-355m, sequence: 30}", {.tensor = 4, .sequence_parallel = true},
         "7:8: strategy: tensor: 4 does not divide the 30 tokens of a sample that sequence_parallel splits;"
         " try 1 or 2"},
        {"preset: vgg16", {.tensor = 2},
         "7:8: strategy: tensor: 2, but a model that is given layer by layer does not say how a layer is"
         " split; try 1"},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct model model = load_good(cases[i].model);
        struct shard shard = cases[i].shard;
        struct layers layers;

        shard.micro = 1;
        assert_int_equal(model_layers(&arena, &model, &shard, (struct loc){"test.yaml", 7, 8}, &layers.items,
                                      &layers.count, &error), -1);
        expect_message(EXIT_INFEASIBLE, cases[i].expected);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_teardown(name, forget)
    const struct CMUnitTest tests[] = {
        TEST(published_counts), TEST(bert_with_a_pooler), TEST(published_flops), TEST(transformer_defaults),
        TEST(sequence_beside), TEST(dumps_read_back), TEST(stage_defaults), TEST(timed_layers), TEST(layers_by_flops),
        TEST(layers_with_traffic), TEST(messages), TEST(tensor_messages),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
