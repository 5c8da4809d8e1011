/* Models in separate files: Hugging Face's configurations against the presets of the same models, changes by `with`. */
#include "model_files.h"

#include <unistd.h>

static void assert_same_shape(const char *config, const char *name)
{
    struct model model = preset(name);
    struct transformer a, b = *model.transformer;

    model = load_good(arena_printf(&arena, "{hf_config: " MODELS "%s/config.json, sequence: %d}", config, b.sequence));
    a = *model.transformer;
    a.node = b.node;
    assert_int_equal(a.layers, b.layers);
    assert_int_equal(a.hidden, b.hidden);
    assert_int_equal(a.heads, b.heads);
    assert_int_equal(a.kv_heads, b.kv_heads);
    assert_int_equal(a.head_size, b.head_size);
    assert_int_equal(a.ffn, b.ffn);
    assert_int_equal(a.sequence, b.sequence);
    assert_int_equal(a.vocabulary, b.vocabulary);
    assert_int_equal(a.positions, b.positions);
    assert_int_equal(a.token_types, b.token_types);
    assert_int_equal(a.norm, b.norm);
    assert_int_equal(a.mlp, b.mlp);
    assert_int_equal(a.head, b.head);
    assert_true(a.qkv_bias == b.qkv_bias && a.bias == b.bias && a.tied == b.tied && a.causal == b.causal);
    assert_true(a.final_norm == b.final_norm && a.embedding_norm == b.embedding_norm);
    assert_true(a.dropout == b.dropout && a.attention_dropout == b.attention_dropout);
    assert_true(a.kv_rank == b.kv_rank && a.q_rank == b.q_rank && a.rope_head_size == b.rope_head_size);
    assert_true(a.value_head_size == b.value_head_size && a.ways.flash_attention == b.ways.flash_attention);
    assert_true(a.experts == b.experts && a.experts_per_token == b.experts_per_token && a.expert_ffn == b.expert_ffn);
    assert_true(a.shared_experts == b.shared_experts && a.dense_layers == b.dense_layers);
    assert_int_equal(a.moe_every, b.moe_every);
}

static void hf_configs(void **state)
{
    (void)state;
    static const char yaml[] = "hf_config: gpt2-xl/config.json";
    struct model model;
    struct node *root;

    assert_same_shape("gpt2-xl", "gpt2-1.5b");
    assert_same_shape("llama3-8b", "llama3-8b");
    assert_same_shape("bert-large-uncased", "bert-large");
    assert_same_shape("mixtral-8x7b", "mixtral-8x7b");
    assert_same_shape("deepseek-v3", "deepseek-v3");
    model = load_good("hf_config: " MODELS "mistral-7b/config.json");
    assert_true(model_parameters(&model) == 7241732096);
    model = load_good("hf_config: " MODELS "gpt-neox-20b/config.json");
    assert_true(model_parameters(&model) == 20554567680);
    /* The path is relative to the file in which it is written. */
    assert_int_equal(conf_parse(&arena, MODELS "scenario.yaml", yaml, strlen(yaml), &root, &error), 0);
    assert_int_equal(model_load(&arena, root, &model, &error), 0);
    assert_true(model_parameters(&model) == 1557611200);
}

static char config_path[64] = "/tmp/dtsim-config-XXXXXX";

static void write_config(const char *text)
{
    FILE *file = fopen(config_path, "w");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void preset_messages(void **state)
{
    (void)state;
    struct model model;

    assert_int_equal(load("preset: gpt2-125m", &model), -1);
    assert_non_null(strstr(error.messages[0].text, "did you mean 'gpt2-124m'?"));
    error_release(&error);
    memset(&error, 0, sizeof error);
    write_config("");
    assert_int_equal(rename(config_path, arena_printf(&arena, "%s.yaml", config_path)), 0);
    strcat(config_path, ".yaml");
    write_config(arena_printf(&arena, "preset: %s", config_path));
    refused(arena_printf(&arena, "preset: %s", config_path),
            "1:9: model: preset: more than 4 presets, each based on the next");
    assert_int_equal(model_load(&arena, NULL, &model, &error), -1);
    expect_message(EXIT_INPUT, "0:0: model: missing; expected one of preset transformer hf_config layers stages");
}

/* A named model with some changed keys equals a model that gives all keys. */
static void with_changes(void **state)
{
    static const char *const same[] = {
        "{preset: llama2-7b, with: {layers: 8}}",
        "{transformer: {layers: 8, hidden: 4096, heads: 32, ffn: 11008, sequence: 4096, vocabulary: 32000, positions: 0,"
        " norm: rmsnorm, mlp: swiglu, qkv_bias: false, bias: false, tied: false, dropout: 0}}",
    };
    struct model models[2], model;

    (void)state;
    for (size_t i = 0; i < COUNT(same); i++)
        models[i] = load_good(same[i]);
    models[0].transformer->node = models[1].transformer->node = NULL;
    assert_memory_equal(models[0].transformer, models[1].transformer, sizeof *models[0].transformer);
    assert_true(models[0].published_parameters == 0 && !models[0].with);
    assert_true(preset("llama2-7b").transformer->layers == 32);

    model = load_good("{hf_config: " MODELS "llama3-8b/config.json, sequence: 2048, with: {tied: true}}");
    assert_true(model.transformer->tied && model.transformer->sequence == 2048);
    write_config("{preset: gpt2-124m, with: {dropout: 0, causal: false}}");
    assert_int_equal(rename(config_path, arena_printf(&arena, "%s.yaml", config_path)), 0);
    model = load_good(arena_printf(&arena, "{preset: %s.yaml, with: {dropout: 0.2}}", config_path));
    assert_true(!model.transformer->causal && model.transformer->dropout == 0.2);
    write_config("");
    assert_int_equal(rename(arena_printf(&arena, "%s.yaml", config_path), config_path), 0);
    write_config("{preset: gpt2-124m, sequence: 512}");
    assert_int_equal(rename(config_path, arena_printf(&arena, "%s.yaml", config_path)), 0);
    model = load_good(arena_printf(&arena, "{preset: %s.yaml, with: {dropout: 0.2}}", config_path));
    assert_true(model.transformer->sequence == 512 && model.sequence == 512);
    model = load_good(arena_printf(&arena, "{preset: %s.yaml, with: {sequence: 256}}", config_path));
    assert_true(model.transformer->sequence == 256 && model.sequence == 256);
    assert_int_equal(rename(arena_printf(&arena, "%s.yaml", config_path), config_path), 0);
}

static void with_messages(void **state)
{
    (void)state;
    refused("{preset: llama2-7b, with: {vocabulery: 8}}",
            "1:28: with: unknown key 'vocabulery'; did you mean 'vocabulary'?");
    refused("{preset: llama2-7b, with: {layers: 0}}", "1:36: with: layers: 0 is out of range; expected 1 to 100000");
    refused("{preset: llama2-7b, sequence: 8, with: {sequence: 4}}",
            "1:51: model: with: sequence is also given outside of 'with'; expected only one of them");
    clashes("{preset: resnet50, with: {layers: 3}}",
            "1:26: model: with: this model is not a transformer; expected changes in the preset's file");
    refused("{stages: {forward: 1 s}, with: {layers: 3}}",
            "1:32: model: with: goes only with preset or hf_config; expected its keys in 'transformer' itself");
}

static int make_config(void **state)
{
    int descriptor = mkstemp(config_path);

    (void)state;
    return descriptor < 0 ? -1 : close(descriptor);
}

static int drop_config(void **state)
{
    (void)state;
    return unlink(config_path);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_teardown(name, forget)
    const struct CMUnitTest tests[] = {TEST(hf_configs), TEST(with_changes), TEST(with_messages),
                                       TEST(preset_messages)};

    return cmocka_run_group_tests(tests, make_config, drop_config);
}
