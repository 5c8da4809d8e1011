/* Models in files of their own: Hugging Face's configurations against the presets of the same models; messages. */
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
    assert_true(a.value_head_size == b.value_head_size && a.flash_attention == b.flash_attention);
    assert_true(a.experts == b.experts && a.experts_per_token == b.experts_per_token && a.expert_ffn == b.expert_ffn);
    assert_true(a.shared_experts == b.shared_experts && a.dense_layers == b.dense_layers);
    assert_int_equal(a.moe_every, b.moe_every);
}

static void hf_configs(void **state)
{
    (void)state;
    static const char beside[] = "hf_config: gpt2-xl/config.json";
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
    /* The path stands beside the file that it is written in. */
    assert_int_equal(conf_parse(&arena, MODELS "scenario.yaml", beside, strlen(beside), &root, &error), 0);
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

static void hf_refused(const char *text, const char *expected)
{
    write_config(text);
    refused(arena_printf(&arena, "hf_config: %s", config_path), expected);
}

static void hf_messages(void **state)
{
    (void)state;
#define SUPPORTED "supported are llama, mistral, mixtral, deepseek_v2, deepseek_v3, kimi_k2, glm4_moe, minimax_m2, " \
                  "olmo2, granite, smollm3, nemotron, starcoder2, qwen2, qwen3, qwen3_moe, gemma2, gemma3_text, phi3, " \
                  "opt, gpt_oss, gpt2, gpt_neox and bert"
    hf_refused("{\n  \"hidden_size\": 64\n}", "1:1: hf_config: missing key 'model_type'; " SUPPORTED);
    hf_refused("{\"model_type\": \"t5\"}", "1:16: hf_config: model_type 't5' is not supported; " SUPPORTED);
    hf_refused("{\"model_type\": \"llama\", \"hidden_size\": 64, \"num_attention_heads\": 4,"
               " \"intermediate_size\": 128, \"vocab_size\": 100, \"num_hidden_layers\": null}",
               "1:1: hf_config: missing key 'num_hidden_layers' (model_type llama)");
    hf_refused("{\"model_type\": \"llama\", \"hidden_size\": 64, \"num_attention_heads\": 4,"
               " \"intermediate_size\": 128, \"vocab_size\": 100, \"num_hidden_layers\": 2, \"attention_bias\": true}",
               "1:1: hf_config: attention_bias and mlp_bias differ, which is not supported");
    hf_refused("[1]", "1:1: hf_config: expected a mapping, as in a config.json");
    write_config("{\"model_type\": \"gpt2\", \"n_layer\": 2, \"n_embd\": 64,\n \"n_head\": 7, \"vocab_size\": 100}");
    clashes(arena_printf(&arena, "hf_config: %s", config_path),
            "2:12: transformer: heads: 7 does not divide hidden 64; if that is intended, give head_size");
}

/* Keys that config.json may leave out, and one that is not known. */
static void hf_defaults(void **state)
{
    (void)state;
    struct model model;

    write_config("{\"model_type\": \"mistral\", \"hidden_size\": 64, \"num_attention_heads\": 16, \"vocab_size\": 100,"
                 " \"num_hidden_layers\": 2, \"intermediate_size\": 128, \"eos_token_id\": [1, 2],"
                 " \"head_dim\": null}");
    model = load_good(arena_printf(&arena, "hf_config: %s", config_path));
    assert_int_equal(model.transformer->kv_heads, 8);
    assert_int_equal(model.transformer->head_size, 4);
    assert_int_equal(model.transformer->sequence, 131072);
    assert_false(model.transformer->tied);
    assert_true(model.transformer->dropout == 0);
    write_config("{\"model_type\": \"gpt2\", \"n_layer\": 2, \"n_embd\": 64, \"n_head\": 4, \"vocab_size\": 100}");
    model = load_good(arena_printf(&arena, "hf_config: %s", config_path));
    assert_int_equal(model.transformer->positions, 1024);
    assert_int_equal(model.transformer->ffn, 256);
    assert_true(model.transformer->tied && model.transformer->dropout == 0.1);
    /* zai-org/GLM-4.5-Air with fewer layers: the bias is of queries, keys and values alone */
    write_config("{model_type: glm4_moe, hidden_size: 4096, num_attention_heads: 96, num_key_value_heads: 8, head_dim: "
                 "128, intermediate_size: 10944, moe_intermediate_size: 1408, num_hidden_layers: 4, n_routed_experts: "
                 "128, n_shared_experts: 1, num_experts_per_tok: 8, first_k_dense_replace: 1, attention_bias: true, "
                 "vocab_size: 151552}");
    model = load_good(arena_printf(&arena, "hf_config: %s", config_path));
    assert_true(model.transformer->qkv_bias && !model.transformer->bias && !model.transformer->tied);
    assert_int_equal(model.transformer->experts, 128);
    assert_int_equal(model.transformer->expert_ffn, 1408);
    assert_int_equal(model.transformer->dense_layers, 1);
}

/* Configurations as published (huggingface.co, config.json of each model; keys that say nothing of the shape left out),
 * and the number of parameters that each model's page states: within half a percent. What they do in part of the
 * attention is noted. */
static void hf_published(void **state)
{
    static const struct { const char *config; double parameters; const char *note; } published[] = {
        {"{model_type: qwen2, hidden_size: 3584, num_attention_heads: 28, num_key_value_heads: 4, intermediate_size: "
         "18944, num_hidden_layers: 28, vocab_size: 152064, tie_word_embeddings: false, use_sliding_window: false, "
         "sliding_window: 131072}", 7615616512, NULL},      /* Qwen/Qwen2-7B */
        {"{model_type: qwen3, hidden_size: 4096, num_attention_heads: 32, num_key_value_heads: 8, head_dim: 128, "
         "intermediate_size: 12288, num_hidden_layers: 36, vocab_size: 151936, attention_bias: false}", 8190735360,
         NULL},                                             /* Qwen/Qwen3-8B */
        {"{model_type: qwen3_moe, hidden_size: 2048, num_attention_heads: 32, num_key_value_heads: 4, head_dim: 128, "
         "intermediate_size: 6144, moe_intermediate_size: 768, num_hidden_layers: 48, num_experts: 128, "
         "num_experts_per_tok: 8, decoder_sparse_step: 1, mlp_only_layers: [], vocab_size: 151936}", 30532122624,
         NULL},                                             /* Qwen/Qwen3-30B-A3B */
        {"{model_type: gemma2, hidden_size: 3584, num_attention_heads: 16, num_key_value_heads: 8, head_dim: 256, "
         "intermediate_size: 14336, num_hidden_layers: 42, vocab_size: 256000, sliding_window: 4096, "
         "attn_logit_softcapping: 50.0}", 9241705984,
         "attn_logit_softcapping"},                         /* google/gemma-2-9b */
        {"{model_type: phi3, hidden_size: 3072, num_attention_heads: 32, num_key_value_heads: 32, intermediate_size: "
         "8192, num_hidden_layers: 32, vocab_size: 32064, sliding_window: 2047}", 3821079552,
         NULL},                                             /* microsoft/Phi-3-mini-4k-instruct */
        {"{model_type: opt, hidden_size: 4096, num_attention_heads: 32, ffn_dim: 16384, num_hidden_layers: 32, "
         "vocab_size: 50272, max_position_embeddings: 2048}", 6658473984, NULL},      /* facebook/opt-6.7b */
        {"{model_type: gpt_oss, hidden_size: 2880, num_attention_heads: 64, num_key_value_heads: 8, head_dim: 64, "
         "intermediate_size: 2880, num_hidden_layers: 24, num_local_experts: 32, num_experts_per_tok: 4, "
         "vocab_size: 201088, attention_bias: true, sliding_window: 128}", 20914757184, NULL},
                                                            /* openai/gpt-oss-20b */
        {"{model_type: deepseek_v2, hidden_size: 2048, num_attention_heads: 16, num_key_value_heads: 16, "
         "intermediate_size: 10944, moe_intermediate_size: 1408, num_hidden_layers: 27, n_routed_experts: 64, "
         "n_shared_experts: 2, num_experts_per_tok: 6, first_k_dense_replace: 1, moe_layer_freq: 1, q_lora_rank: null, "
         "kv_lora_rank: 512, qk_nope_head_dim: 128, qk_rope_head_dim: 64, v_head_dim: 128, vocab_size: 102400}",
         15.7e9, NULL},                                     /* deepseek-ai/DeepSeek-V2-Lite */
        {"{model_type: deepseek_v2, hidden_size: 5120, num_attention_heads: 128, num_key_value_heads: 128, "
         "intermediate_size: 12288, moe_intermediate_size: 1536, num_hidden_layers: 60, n_routed_experts: 160, "
         "n_shared_experts: 2, num_experts_per_tok: 6, first_k_dense_replace: 1, moe_layer_freq: 1, q_lora_rank: 1536, "
         "kv_lora_rank: 512, qk_nope_head_dim: 128, qk_rope_head_dim: 64, v_head_dim: 128, vocab_size: 102400}",
         236e9, NULL},                                      /* deepseek-ai/DeepSeek-V2 */
        {"{model_type: minimax_m2, hidden_size: 3072, num_attention_heads: 48, num_key_value_heads: 8, head_dim: 128, "
         "intermediate_size: 1536, num_hidden_layers: 62, num_local_experts: 256, num_experts_per_tok: 8, "
         "vocab_size: 200064, tie_word_embeddings: false}", 229e9, NULL},     /* MiniMaxAI/MiniMax-M2 */
        {"{model_type: gemma3_text, hidden_size: 1152, num_attention_heads: 4, num_key_value_heads: 1, head_dim: 256, "
         "intermediate_size: 6912, num_hidden_layers: 26, sliding_window: 512, sliding_window_pattern: 6, "
         "vocab_size: 262144}", 999885952, NULL},           /* google/gemma-3-1b-pt */
        {"{model_type: gemma3, vision_config: {hidden_size: 1152}, text_config: {model_type: gemma3_text, hidden_size: "
         "5376, num_attention_heads: 32, num_key_value_heads: 16, head_dim: 128, intermediate_size: 21504, "
         "num_hidden_layers: 62, sliding_window: 1024, vocab_size: 262208}}", 27.01e9,
         "the part in text_config alone"},                  /* google/gemma-3-27b-pt, without its images */
        {"{model_type: olmo2, hidden_size: 4096, num_attention_heads: 32, num_key_value_heads: 32, intermediate_size: "
         "11008, num_hidden_layers: 32, attention_bias: false, tie_word_embeddings: false, vocab_size: 100352}",
         7.3e9, NULL},                                      /* allenai/OLMo-2-1124-7B */
        {"{model_type: granite, hidden_size: 4096, num_attention_heads: 32, num_key_value_heads: 8, intermediate_size: "
         "12800, num_hidden_layers: 40, attention_bias: false, mlp_bias: false, tie_word_embeddings: true, "
         "vocab_size: 49155}", 8.17e9, NULL},               /* ibm-granite/granite-3.0-8b-base */
        {"{model_type: smollm3, hidden_size: 2048, num_attention_heads: 16, num_key_value_heads: 4, intermediate_size: "
         "11008, num_hidden_layers: 36, vocab_size: 128256}", 3.08e9, NULL},  /* HuggingFaceTB/SmolLM3-3B */
        {"{model_type: nemotron, hidden_size: 3072, num_attention_heads: 24, num_key_value_heads: 8, head_dim: 128, "
         "intermediate_size: 9216, num_hidden_layers: 32, tie_word_embeddings: false, vocab_size: 256000}", 4.19e9,
         NULL},                                             /* nvidia/Minitron-4B-Base */
        {"{model_type: starcoder2, hidden_size: 4608, num_attention_heads: 36, num_key_value_heads: 4, "
         "intermediate_size: 18432, num_hidden_layers: 32, sliding_window: 4096, use_bias: true, vocab_size: 49152}",
         7.17e9, NULL},                                     /* bigcode/starcoder2-7b */
    };

    (void)state;
    for (size_t i = 0; i < COUNT(published); i++) {
        struct model model;
        double parameters;

        write_config(published[i].config);
        model = load_good(arena_printf(&arena, "hf_config: %s", config_path));
        parameters = model_parameters(&model);
        if (fabs(parameters / published[i].parameters - 1) > 0.005)
            fail_msg("%s: %.0f parameters, published are %.0f", published[i].config, parameters,
                     published[i].parameters);
        if (!published[i].note != !model.note || (model.note && !strstr(model.note, published[i].note)))
            fail_msg("%s: the note is '%s'", published[i].config, model.note ? model.note : "");
    }
}

/* moonshotai/Kimi-K2-Base with fewer layers: DeepSeek-V3's layers under another name. */
static void hf_alike(void **state)
{
    static const char *const types[] = {"deepseek_v3", "kimi_k2"};
    double parameters[2];

    (void)state;
    for (size_t i = 0; i < COUNT(types); i++) {
        struct model model;

        write_config(arena_printf(
            &arena, "{model_type: %s, hidden_size: 7168, num_attention_heads: 64, num_key_value_heads: 64, "
            "intermediate_size: 18432, moe_intermediate_size: 2048, num_hidden_layers: 4, n_routed_experts: 384, "
            "n_shared_experts: 1, num_experts_per_tok: 8, first_k_dense_replace: 1, moe_layer_freq: 1, q_lora_rank: "
            "1536, kv_lora_rank: 512, qk_nope_head_dim: 128, qk_rope_head_dim: 64, v_head_dim: 128, vocab_size: 163840}",
            types[i]));
        model = load_good(arena_printf(&arena, "hf_config: %s", config_path));
        parameters[i] = model_parameters(&model);
    }
    assert_true(parameters[0] == parameters[1] && parameters[1] > 50e9);
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

/* A named model with some keys of its own is the model that says all of them. */
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
    const struct CMUnitTest tests[] = {TEST(hf_configs), TEST(hf_published), TEST(hf_alike),
                                       TEST(hf_messages), TEST(hf_defaults), TEST(with_changes),
                                       TEST(with_messages), TEST(preset_messages)};

    return cmocka_run_group_tests(tests, make_config, drop_config);
}
