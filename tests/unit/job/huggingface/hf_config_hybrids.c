/* What the config.json of a hybrid model means: which mixer each layer has, and how wide it is. */
#include "config_file.h"

/* Which mixer each layer of a hybrid has, from each way in which a file says it; the shortest pattern that repeats to it. */
static void patterns(void **state)
{
    static const struct { const char *config, *pattern; int layers; } cases[] = {
        {"{model_type: qwen3_next}", "(GE)(GE)(GE)(*E)", 48},
        {"{model_type: qwen3_next, num_hidden_layers: 6}", "(GE)(GE)(GE)(*E)(GE)(GE)", 6},
        {"{model_type: qwen3_next, num_hidden_layers: 4, full_attention_interval: 2, mlp_only_layers: [0]}", "(G-)(*E)(GE)(*E)", 4},
        {"{model_type: qwen3_next, num_hidden_layers: 4, decoder_sparse_step: 2}", "(G-)(GE)(G-)(*E)", 4},
        {"{model_type: qwen3_next, num_hidden_layers: 3, layer_types: [full_attention, linear_attention, linear_attention]}",
         "(*E)(GE)(GE)", 3},
        {"{model_type: qwen3_next, num_hidden_layers: 2, num_experts: 0}", "(G-)", 2},
        {"{model_type: qwen3_5, text_config: {model_type: qwen3_5_text, num_hidden_layers: 8}}", "(G-)(G-)(G-)(*-)", 8},
        {"{model_type: qwen3_5_moe, text_config: {num_hidden_layers: 8}}", "(GE)(GE)(GE)(*E)", 8},
        {"{model_type: kimi_linear, model_max_length: 64, num_hidden_layers: 5, num_experts: 8, num_experts_per_token: 2, "
         "moe_intermediate_size: 64, first_k_dense_replace: 1, kv_lora_rank: 64, qk_nope_head_dim: 16, linear_attn_config: {kda_layers: "
         "[1, 2, 3, 5], full_attn_layers: [4], num_heads: 4, head_dim: 16, short_conv_kernel_size: 4}}", "(K-)(KE)(KE)(+E)(KE)", 5},
        {"{model_type: nemotron_h, hybrid_override_pattern: \"M-M*-\", num_hidden_layers: 99}", "M-M*-", 5},
        {"{model_type: nemotron_h, layers_block_type: [mamba, moe, attention, mlp, linear_attention, full_attention]}", "ME*-M*", 6},
        {"{model_type: nemotron_h}", "ME*-", 4},
        {"{model_type: nemotron_h, hybrid_override_pattern: \"MEM*E\", num_nextn_predict_layers: 1, mtp_hybrid_override_pattern: "
         "\"*E\"}", "MEM*E", 5},
        {"{model_type: nemotron_h, layers_block_type: [mamba, attention, mlp], num_nextn_predict_layers: 1, mtp_layers_block_type: "
         "[attention, mlp]}", "M*-", 3},
        {"{model_type: granitemoehybrid, num_hidden_layers: 4, layer_types: [mamba, mamba, attention, mamba]}", "(ME)(ME)(*E)(ME)", 4},
        {"{model_type: granitemoehybrid, num_hidden_layers: 4, layers_block_type: [mamba, attention, mamba, attention]}",
         "(ME)(*E)", 4},
        {"{model_type: granitemoehybrid, num_hidden_layers: 4, num_local_experts: 0, num_experts_per_tok: 0}", "(M-)", 4},
        {"{model_type: granitemoehybrid, num_hidden_layers: 2, layer_types: [attention, attention]}", "(*E)", 2},
        {"{model_type: bamba, num_hidden_layers: 4, attn_layer_indices: [1, 3]}", "(M-)(*-)", 4},
        {"{model_type: minimax, num_hidden_layers: 4}", "(*E)(LE)", 4},
        {"{model_type: minimax_text_01, num_hidden_layers: 4, attn_type_list: [0, 0, 0, 1]}", "(LE)(LE)(LE)(*E)", 4},
        {"{model_type: minimax_m1, num_hidden_layers: 2, decoder_attention_types: [0, 1]}", "(LE)(*E)", 2},
        {"{model_type: minimax, num_hidden_layers: 2, layer_types: [linear_attention, full_attention]}", "(LE)(*E)", 2},
    };
    struct model model;

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        model = read_config(cases[i].config);
        if (strcmp(model.transformer->pattern, cases[i].pattern) || model.transformer->layers != cases[i].layers)
            fail_msg("%s: %s, %d layers", cases[i].config, model.transformer->pattern, model.transformer->layers);
    }
    write_config("{model_type: nemotron_h, layers_block_type: [mamba, moe, attention], mtp_layers_block_type: [attention, moe]}");
    model = load_good(arena_printf(&arena, "{hf_config: %s, with: {mtp: 1}}", path));
    assert_string_equal(model.transformer->pattern, "ME*/*E");
}

/* Widths of mixers, and what is not in the file comes from the class; only of mixers that the layers have. */
static void widths(void **state)
{
    struct model model = read_config("{model_type: nemotron_h, hybrid_override_pattern: \"M-*-\", ssm_state_size: 64, mamba_num_heads: 32, "
                                     "n_groups: 4, attention_head_dim: 64, mamba_chunk_size: 256}");
    const struct transformer *shape = model.transformer;

    (void)state;
    assert_true(shape->mamba->state == 64 && shape->mamba->heads == 32 && shape->mamba->groups == 4);
    assert_true(shape->mamba->head_size == 64 && shape->mamba->conv == 4 && shape->mamba->chunk == 256);
    assert_true(shape->head_size == 64 && shape->experts == 0 && !shape->router_bias && shape->mlp == MLP_SQUARED_RELU);
    model = read_config("{model_type: nemotron_h, hybrid_override_pattern: \"*E\", moe_latent_size: 512}");
    shape = model.transformer;
    assert_true(!shape->mamba && shape->expert_latent == 512 && shape->router_bias && shape->shared_ffn == 7688);
    model = read_config("{model_type: bamba, hidden_size: 512, mamba_n_heads: 16, mamba_d_head: auto}");
    assert_int_equal(model.transformer->mamba->head_size, 64);
    model = read_config("{model_type: bamba, hidden_size: 512, mamba_n_heads: 8, mamba_expand: 4}");
    assert_int_equal(model.transformer->mamba->head_size, 256);
    model = read_config("{model_type: granitemoehybrid, num_local_experts: 0, shared_intermediate_size: 96}");
    assert_true(model.transformer->ffn == 96 && model.transformer->experts == 0 && model.transformer->mamba->chunk == 256);
    model = read_config("{model_type: minimax, num_attention_heads: 16, hidden_size: 1024, block_size: 64, sliding_window: 32}");
    shape = model.transformer;
    assert_true(shape->linear->heads == 16 && shape->linear->head_size == 64 && shape->linear->block == 64 && shape->window == 32);
    model = read_config("{model_type: qwen3_next, linear_num_value_heads: 48, linear_key_head_dim: 64}");
    shape = model.transformer;
    assert_true(shape->delta->value_heads == 48 && shape->delta->key_size == 64 && shape->attention_gate && shape->shared_gate);
    /* a part of the file, and what the scenario says instead of one of the widths */
    model = read_config("{model_type: some, llm_config: {model_type: qwen3_next}}");
    assert_true(strstr(model.note, "the part in llm_config alone"));
    model = read_config("{model_type: some, language_config: {model_type: qwen3_next}}");
    assert_true(strstr(model.note, "the part in language_config alone"));
    model = read_config("{model_type: some, thinker_config: {model_type: other, text_config: {model_type: qwen3_5_text}}}");
    assert_string_equal(model.transformer->pattern, "(G-)(G-)(G-)(*-)");
    model = load_good(arena_printf(&arena, "{hf_config: %s, with: {delta: {key_heads: 8, key_size: 128, value_heads: 32, value_size: "
                                   "128, chunk: 128}}}", path));
    assert_true(model.transformer->delta->chunk == 128 && model.transformer->delta->key_heads == 8);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_teardown(name, forget)
    const struct CMUnitTest tests[] = {TEST(patterns), TEST(widths)};

    return cmocka_run_group_tests(tests, make_file, drop_file);
}
