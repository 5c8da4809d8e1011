/* What a config.json means: defaults of classes, which blocks have windows and experts, notes, and what is refused. */
#include "config_file.h"

/* Whether the first message has this code and begins so. */
static void refused_as(enum exit_code code, const char *text, const char *expected)
{
    const struct error_message *message = &error.messages[0];
    struct model model;
    const char *found;

    write_config(text);
    assert_int_equal(load(arena_printf(&arena, "hf_config: %s", path), &model), -1);
    found = arena_printf(&arena, "%d:%d: %s", message->loc.line, message->loc.column, message->text);
    if (message->code != code || strncmp(found, expected, strlen(expected)))
        fail_msg("%s: '%s' instead of '%s'", text, found, expected);
    error_release(&error);
    memset(&error, 0, sizeof error);
}

static void refused_config(const char *text, const char *expected)
{
    refused_as(EXIT_INPUT, text, expected);
}

/* "w" for a block with a window, "." for one without; "e" for one with experts. */
static const char *blocks(const struct model *model, bool experts)
{
    const struct transformer *shape = model->transformer;
    char *text = arena_alloc(&arena, (size_t)shape->layers + 1);

    for (int i = 0; i < shape->layers; i++)
        text[i] = experts && transformer_halves(shape, i).experts ? 'e' :
                  !experts && transformer_halves(shape, i).window ? 'w' :
                                                                 '.';
    return text;
}

static void windows(void **state)
{
    static const struct { const char *config, *blocks; int window; } cases[] = {
        {"{model_type: mistral, num_hidden_layers: 3}", "www", 4096},
        {"{model_type: mistral, num_hidden_layers: 3, sliding_window: null}", "...", 0},
        {"{model_type: mistral, num_hidden_layers: 3, layer_types: [full_attention, sliding_attention, "
         "sliding_attention]}", ".ww", 4096},
        {"{model_type: llama, num_hidden_layers: 2, sliding_window: 512}", "..", 0},     /* its class has no such key */
        {"{model_type: gemma2, num_hidden_layers: 4}", "w.w.", 4096},
        {"{model_type: gemma3_text, num_hidden_layers: 7, sliding_window: 512}", "wwwww.w", 512},
        {"{model_type: exaone4, num_hidden_layers: 6}", "www.ww", 4096},
        {"{model_type: exaone4, num_hidden_layers: 6, sliding_window_pattern: LLG}", "ww.ww.", 4096},
        {"{model_type: exaone4, num_hidden_layers: 6, sliding_window_pattern: \"GLLLL\", sliding_window: 64}", ".wwww.", 64},
        {"{model_type: exaone4, num_hidden_layers: 3, sliding_window: null}", "...", 0},
        {"{model_type: gemma3_text, num_hidden_layers: 4, _sliding_window_pattern: 2}", "w.w.", 4096},
        {"{model_type: gemma3_text, num_hidden_layers: 2, layer_types: [full_attention, full_attention]}", "..", 0},
        {"{model_type: cohere2, num_hidden_layers: 5}", "www.w", 4096},
        {"{model_type: olmo3, num_hidden_layers: 5}", "www.w", 4096},
        {"{model_type: gpt_oss, num_hidden_layers: 3}", "w.w", 128},
        {"{model_type: qwen2, num_hidden_layers: 3}", "...", 0},
        {"{model_type: mimo, num_hidden_layers: 3, max_window_layers: 1}", "...", 0},
        {"{model_type: mimo, num_hidden_layers: 3, max_window_layers: 1, use_sliding_window: true, sliding_window: 64}", ".ww", 64},
        {"{model_type: dots1, num_hidden_layers: 3, max_window_layers: 1}", ".ww", 4096},
        {"{model_type: ministral3, num_hidden_layers: 2}", "..", 0},
        {"{model_type: ministral3, num_hidden_layers: 2, sliding_window: 32}", "ww", 32},
        {"{model_type: qwen2, num_hidden_layers: 3, use_sliding_window: true, max_window_layers: 1}", ".ww", 4096},
        {"{model_type: qwen2_moe, num_hidden_layers: 5, use_sliding_window: true, max_window_layers: 3}", "w.w..",
         4096},
        {"{model_type: smollm3, num_hidden_layers: 5, use_sliding_window: true, sliding_window: 64}", "...w.", 64},
        {"{model_type: llama4_text, num_hidden_layers: 5}", "www.w", 8192},
        {"{model_type: llama4_text, num_hidden_layers: 3, no_rope_layers: [0, 1, 0]}", ".w.", 8192},
        {"{model_type: gpt_neo, num_layers: 4, attention_types: [[[global, local], 2]]}", ".w.w", 256},
        {"{model_type: gpt_neo, num_layers: 3, attention_types: [[[global], 3]]}", "...", 0},
    };

    struct model model;

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        model = read_config(cases[i].config);
        if (strcmp(blocks(&model, false), cases[i].blocks) || model.transformer->window != cases[i].window)
            fail_msg("%s: %s with a window of %d", cases[i].config, blocks(&model, false), model.transformer->window);
        assert_true(model.transformer->chunked == (strstr(cases[i].config, "llama4") != NULL));
    }
    /* what the scenario says takes the place of the list */
    write_config(cases[2].config);
    model = load_good(arena_printf(&arena, "{hf_config: %s, with: {full_every: 2}}", path));
    assert_string_equal(blocks(&model, false), "w.w");
}

static void experts(void **state)
{
    static const struct { const char *config, *blocks; } cases[] = {
        {"{model_type: mixtral, num_hidden_layers: 3}", "eee"},
        {"{model_type: deepseek_v3, num_hidden_layers: 5}", "...ee"},
        {"{model_type: deepseek, num_hidden_layers: 5, n_routed_experts: 8, num_experts_per_tok: 2, "
         "first_k_dense_replace: 1, moe_layer_freq: 2}", "..e.e"},
        {"{model_type: deepseek, num_hidden_layers: 2}", ".."},          /* its class has no experts */
        {"{model_type: glm4_moe, head_dim: 128, num_hidden_layers: 3}", ".ee"},
        {"{model_type: glm_moe_dsa, num_hidden_layers: 5, first_k_dense_replace: 2}", "..eee"},
        {"{model_type: bailing_moe_v2, num_hidden_layers: 3}", ".ee"},
        {"{model_type: bailing_moe, num_hidden_layers: 3, intermediate_size: 64}", "eee"},
        {"{model_type: glm4_moe_lite, num_hidden_layers: 3}", ".ee"},
        {"{model_type: dots1, num_hidden_layers: 3, n_routed_experts: 8, num_experts_per_tok: 2, first_k_dense_replace: 2}", "..e"},
        {"{model_type: mixtral, num_hidden_layers: 2, num_local_experts: 0}", ".."},
        {"{model_type: step3_text, num_hidden_layers: 6}", "....ee"},
        {"{model_type: step3_text, num_hidden_layers: 4, moe_layers_enum: \"1,3\"}", ".e.e"},
        {"{model_type: step3_text, num_hidden_layers: 4, moe_layers_enum: [0, 2]}", "e.e."},
        {"{model_type: step3_text, num_hidden_layers: 14, moe_layers_enum: \"2, 12\"}", "..e.........e."},
        {"{model_type: qwen3_moe, num_hidden_layers: 5, decoder_sparse_step: 2}", ".e.e."},
        {"{model_type: qwen3_moe, num_hidden_layers: 4, mlp_only_layers: [0, 2]}", ".e.e"},
        {"{model_type: qwen3_moe, num_hidden_layers: 4, mlp_only_layers: [3]}", "eee."},
        {"{model_type: llama4_text, num_hidden_layers: 5, interleave_moe_layer_step: 2}", ".e.e."},
        {"{model_type: llama4_text, num_hidden_layers: 3, moe_layers: [1]}", ".e."},
        {"{model_type: ernie4_5_moe, num_hidden_layers: 5}", ".eeee"},
        {"{model_type: ernie4_5_moe, num_hidden_layers: 5, moe_layer_end_index: 3, moe_layer_interval: 2}", ".e.e."},
        {"{model_type: glm4_moe, head_dim: 128, num_hidden_layers: 3, mlp_layer_types: [sparse, dense, sparse]}",
         "e.e"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct model model = read_config(cases[i].config);

        if (strcmp(blocks(&model, true), cases[i].blocks))
            fail_msg("%s: %s", cases[i].config, blocks(&model, true));
    }
}

/* A class's default counts where the file has no value; a key that is null has no value. */
static void defaults(void **state)
{
    struct model model = read_config("{model_type: mistral, hidden_size: 64, num_attention_heads: 16, vocab_size: 100, "
                                     "num_hidden_layers: 2, intermediate_size: 128, eos_token_id: [1, 2], head_dim: "
                                     "null}");

    (void)state;
    assert_int_equal(model.transformer->kv_heads, 8);
    assert_int_equal(model.transformer->head_size, 4);
    assert_int_equal(model.transformer->sequence, 131072);
    assert_true(model.longest && !model.transformer->tied && model.transformer->dropout == 0);
    model = read_config("{model_type: gpt2, n_layer: 2, n_embd: 64, n_head: 4, vocab_size: 100}");
    assert_int_equal(model.transformer->positions, 1024);
    assert_int_equal(model.transformer->ffn, 256);
    assert_true(model.transformer->tied && model.transformer->dropout == 0.1);
    /* other names for sizes (attribute_map) */
    model = read_config("{model_type: gpt2, num_hidden_layers: 3, hidden_size: 96, num_attention_heads: 6}");
    assert_true(model.transformer->layers == 3 && model.transformer->hidden == 96 && model.transformer->heads == 6);
    model = read_config("{model_type: qwen3_vl_moe_text, num_local_experts: 8, num_experts_per_tok: 2}");
    assert_int_equal(model.transformer->experts, 8);
    model = read_config("{model_type: llama, d_model: 96, hidden_size: 64}");
    assert_int_equal(model.transformer->hidden, 64);
    model = read_config("{model_type: llama, num_experts: 8}");
    assert_int_equal(model.transformer->experts, 0);
    model = read_config("{model_type: mpt, hidden_size: 64, n_heads: 4}");
    assert_int_equal(model.transformer->ffn, 256);
    /* biases of attention alone, of queries, keys and values alone, of the MLP alone */
    model = read_config("{model_type: llama, attention_bias: true, head_dim: 64, hidden_size: 2048, intermediate_size: "
                        "8192, num_attention_heads: 32, num_hidden_layers: 16, num_key_value_heads: 8, "
                        "tie_word_embeddings: true, vocab_size: 128256}");
    assert_true(model_parameters(&model) == 1235896320);
    model = read_config("{model_type: glm4_moe, head_dim: 128, attention_bias: true}");
    assert_true(model.transformer->qkv_bias && !model.transformer->projection_bias && !model.transformer->bias);
    model = read_config("{model_type: seed_oss}");
    assert_true(model.transformer->qkv_bias && !model.transformer->projection_bias && !model.transformer->bias);
    model = read_config("{model_type: seed_oss, attention_bias: false, attention_out_bias: true}");
    assert_true(!model.transformer->qkv_bias && model.transformer->projection_bias && !model.transformer->bias);
    model = read_config("{model_type: bailing_moe_v2, num_shared_experts: 2, use_qk_norm: false, use_qkv_bias: true}");
    assert_true(model.transformer->shared_experts == 2 && model.transformer->qk_norm == 0 && model.transformer->qkv_bias);
    model = read_config("{model_type: gpt_bigcode}");
    assert_true(model.transformer->kv_heads == 1 && model.transformer->positions == 1024 && model.transformer->tied);
    model = read_config("{model_type: gpt_bigcode, multi_query: false}");
    assert_int_equal(model.transformer->kv_heads, 12);
    model = read_config("{model_type: apertus}");
    assert_true(model.transformer->mlp == MLP_XIELU && model.transformer->qk_norm == QK_NORM_HEAD);
    model = read_config("{model_type: nemotron, mlp_bias: true}");
    assert_true(!model.transformer->qkv_bias && !model.transformer->projection_bias && model.transformer->bias);
    /* a key of the whole model, and its number format */
    model = read_config("{model_type: qwen3_vl, tie_word_embeddings: true, torch_dtype: bfloat16, text_config: "
                        "{model_type: qwen3_vl_text}}");
    assert_true(model.transformer->tied && !strcmp(model.dtype, "bfloat16"));
    model = read_config("{model_type: llama, dtype: null}");
    assert_true(!model.dtype);
}

static void with_fills(void **state)
{
    static const char config[] = "{model_type: deepseek_v2, num_hidden_layers: null}";
    struct model model;

    (void)state;
    refused_config(config, "1:1: hf_config: missing key 'num_hidden_layers' (model_type deepseek_v2); expected it, or "
                   "'with: {layers: ...}' next to hf_config");
    write_config(config);
    model = load_good(arena_printf(&arena, "{hf_config: %s, with: {layers: 2, experts_per_token: 6}}", path));
    assert_int_equal(model.transformer->layers, 2);
    assert_int_equal(model.transformer->experts_per_token, 6);
    /* what the scenario says is not the class's */
    write_config("{model_type: gemma3_text}");
    model = load_good(arena_printf(&arena, "{hf_config: %s, sequence: 8, with: {vocabulary: 1000}}", path));
    assert_true(!model.longest && !strstr(model.note, "vocab_size") && strstr(model.note, "num_hidden_layers: 26"));
}

static void notes(void **state)
{
    static const struct { const char *config, *note; } cases[] = {
        {"{model_type: gemma2, attn_logit_softcapping: null}", "final_logit_softcapping"},
        {"{model_type: gemma2, final_logit_softcapping: null}", "attn_logit_softcapping"},
        {"{model_type: gemma3_text, use_bidirectional_attention: true}", "use_bidirectional_attention"},
        {"{model_type: deepseek_v3, num_nextn_predict_layers: 1}", "num_nextn_predict_layers"},
        {"{model_type: qwen3_5_text, mtp_num_hidden_layers: 1}", "mtp_num_hidden_layers"},
        {"{model_type: minimax_m2, use_mtp: true, num_mtp_modules: 3}", "use_mtp"},
        {"{model_type: deepseek_v32}", "index_topk"},
        {"{model_type: glm_moe_dsa}", "index_topk"},
        {"{model_type: llama, quantization_config: {quant_method: fp8}}", "quantization_config"},
        {"{model_type: gemma3, text_config: {model_type: gemma3_text}}", "the part in text_config alone"},
        {"{model_type: qwen2_vl, vision_config: {depth: 2}}", "the part that computes text alone"},
        {"{model_type: llama}", "config.json leaves out what Transformers' LlamaConfig defaults to: vocab_size: 32000, "
         "hidden_size: 4096, intermediate_size: 11008, num_hidden_layers: 32, num_attention_heads: 32"},
        {"{model_type: mistral}", "sliding_window: 4096"},
    };
    struct model model;

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        model = read_config(cases[i].config);
        if (!model.note || !strstr(model.note, cases[i].note))
            fail_msg("%s: the note is '%s'", cases[i].config, model.note ? model.note : "");
    }
    model = read_config("{model_type: llama, vocab_size: 1000, hidden_size: 64, intermediate_size: 128, "
                        "num_hidden_layers: 2, num_attention_heads: 4, num_nextn_predict_layers: 0, "
                        "quantization_config: null, final_logit_softcapping: null}");
    assert_null(model.note);
}

static void refusals(void **state)
{
    static const struct { const char *type, *word; } mechanisms[] = {
        {"jamba", "Mamba-1"}, {"mamba", "Mamba-1"}, {"falcon_mamba", "Mamba-1"}, {"zamba2", "shared blocks"},
        {"minimax_m3", "block-sparse attention"}, {"minimax_m3_vl", "block-sparse attention"}, {"deepseek_v4", "compressed attention"}, {"gemma3n", "per-layer embeddings"},
        {"gemma3n_text", "per-layer embeddings"}, {"bailing_moe_linear", "linear attention of another kind"},
        {"falcon_h1", "attention and Mamba-2 side by side"}, {"lfm2", "convolutions"},
    };

    (void)state;
#define SUPPORTED "supported are llama, mistral, ministral3, "
    refused_config("[1]", "1:1: hf_config: expected a mapping, as in a config.json");
    refused_config("{\n  \"hidden_size\": 64\n}", "1:1: hf_config: missing key 'model_type'; " SUPPORTED);
    refused_config("{\"model_type\": \"bart\"}", "1:16: hf_config: model_type 'bart' is not supported; " SUPPORTED);
    for (size_t i = 0; i < COUNT(mechanisms); i++)
        refused_config(arena_printf(&arena, "{model_type: %s, hidden_size: 64}", mechanisms[i].type),
                       arena_printf(&arena, "1:14: hf_config: model_type '%s' has %s", mechanisms[i].type, mechanisms[i].word));
    refused_config("{model_type: kimi_k3, text_config: {model_type: kimi_linear}}", "1:14: hf_config: model_type 'kimi_k3' has attention over");
    refused_config("{model_type: some, thinker_config: {text_config: {model_type: jamba}}}",
                   "1:63: hf_config: model_type 'jamba' has Mamba-1");
    refused_config("{model_type: kimi_linear, model_max_length: 64, linear_attn_config: {kda_layers: [1], use_full_rank_gate: true}}",
                   "1:107: hf_config: linear_attn_config.use_full_rank_gate: is not modelled");
    refused_config("{model_type: kimi_linear, model_max_length: 64, num_experts: 8, num_experts_per_token: 2,\n attn_res_block_size: 12}",
                   "2:23: hf_config: attn_res_block_size: is not modelled for kimi_linear; expected false, or none");
    refused_config("{model_type: minimax, shared_intermediate_size: [0, 64]}", "1:49: hf_config: shared_intermediate_size: is not modelled");
    refused_config("{model_type: nemotron_h, layers_block_type: [mamba, mamba2]}", "1:53: hf_config: 'mamba2' is no kind of layer");
    refused_config("{model_type: nemotron_h, hybrid_override_pattern: \"M-X*\"}", "1:1: transformer: pattern: unknown letter 'X' at 3");
    refused_config("{model_type: qwen3_next, num_hidden_layers: 2, layer_types: [linear_attention, recurrent]}",
                   "1:80: hf_config: layer_types: 'recurrent' is not modelled");
    refused_config("{model_type: llama, num_hidden_layers: 2,\n layer_types: [full_attention, linear_attention]}",
                   "2:32: hf_config: layer_types: 'linear_attention' is not modelled; expected full_attention, "
                   "sliding_attention or chunked_attention");
    refused_config("{model_type: llama, num_hidden_layers: 2, layer_types: [full_attention]}",
                   "1:56: hf_config: layer_types has 1 items; expected one for each of the 2 layers");
    refused_config("{model_type: llama, num_hidden_layers: 1, layer_types: [sliding_attention]}",
                   "1:56: hf_config: layer_types names windows; expected 'sliding_window' too");
    refused_config("{model_type: some_vl, text_config: {hidden_size: 64}}", "1:36: hf_config: text_config has no "
                   "'model_type', and the whole's, 'some_vl', is not supported; expected one of llama");
    refused_config("{model_type: some_vl, text_config: {model_type: some_text}}",
                   "1:49: hf_config: model_type 'some_text' is not supported");
    refused_config("{model_type: deepseek_v3, attention_bias: true}", "1:43: hf_config: attention_bias: is not modelled "
                   "for deepseek_v3; expected false, or none");
    refused_config("{model_type: qwen3_moe, decoder_sparse_step: \"2\"}",
                   "1:46: hf_config: decoder_sparse_step: expected an integer");
    refused_config("{model_type: qwen2, use_sliding_window: 1}",
                   "1:41: hf_config: use_sliding_window: expected true or false");
    refused_config("{model_type: hunyuan_v1_moe, num_experts: 8, moe_topk: [2, 3]}",
                   "1:60: hf_config: moe_topk: layers differ, which is not modelled; expected the same value for all");
    refused_as(EXIT_INFEASIBLE,
               "{\"model_type\": \"gpt2\", \"n_layer\": 2, \"n_embd\": 64,\n \"n_head\": 7, \"vocab_size\": 100}",
               "2:12: transformer: heads: 7 does not divide hidden 64; if that is intended, give head_size");
    refused_config("{model_type: hunyuan_v1_moe, num_shared_expert: [], use_mixed_mlp_moe: true, hidden_size: []}",
                   "1:91: transformer: hidden: expected an integer");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_teardown(name, forget)
    const struct CMUnitTest tests[] = {TEST(windows), TEST(experts), TEST(defaults), TEST(with_fills), TEST(notes),
                                       TEST(refusals)};

    return cmocka_run_group_tests(tests, make_file, drop_file);
}
