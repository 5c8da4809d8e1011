/* Hybrid models as they are written: a config.json is the shape that a person writes, and what does not fit is refused at its
 * place. */
#include "simulated.h"

#define SMALL "vocabulary: 1024, positions: 0, dropout: 0, norm: rmsnorm, bias: false, qkv_bias: false"
#define HARDWARE "cluster: {platform: dgx-h100, nodes: 1}\nmemory: {precision: mixed-bf16, enforce: false}\n"

/* A hybrid as its config.json says it, and as a person writes it. */
static const struct { const char *config, *shape; } written[] = {
    {"{model_type: qwen3_next, hidden_size: 512, num_hidden_layers: 8, num_attention_heads: 8, num_key_value_heads: 2, head_dim: 64, "
     "vocab_size: 1024, num_experts: 16, num_experts_per_tok: 2, moe_intermediate_size: 128, shared_expert_intermediate_size: 128, "
     "linear_num_key_heads: 4, linear_num_value_heads: 8, linear_key_head_dim: 64, linear_value_head_dim: 64}",
     "layers: 8, hidden: 512, pattern: \"(GE)(GE)(GE)(*E)\", heads: 8, kv_heads: 2, head_size: 64, attention_gate: true, qk_norm: head, "
     "delta: {key_heads: 4, key_size: 64, value_heads: 8, value_size: 64}, experts: 16, experts_per_token: 2, expert_ffn: 128, "
     "shared_experts: 1, shared_gate: true, ffn: 5632"},
    {"{model_type: nemotron_h, hidden_size: 512, hybrid_override_pattern: \"MEM*EM-\", num_attention_heads: 8, num_key_value_heads: 2, "
     "head_dim: 64, vocab_size: 1024, mamba_num_heads: 16, mamba_head_dim: 64, n_groups: 4, ssm_state_size: 64, intermediate_size: 1024, "
     "n_routed_experts: 16, num_experts_per_tok: 2, moe_intermediate_size: 256, moe_shared_expert_intermediate_size: 512, "
     "moe_latent_size: 128}",
     "hidden: 512, pattern: \"MEM*EM-\", heads: 8, kv_heads: 2, head_size: 64, mamba: {heads: 16, head_size: 64, groups: 4, state: 64}, "
     "ffn: 1024, experts: 16, experts_per_token: 2, expert_ffn: 256, shared_experts: 1, shared_ffn: 512, expert_latent: 128, "
     "router_bias: true, mlp: squared-relu"},
    {"{model_type: kimi_linear, hidden_size: 512, num_hidden_layers: 4, num_attention_heads: 8, intermediate_size: 1024, vocab_size: 1024, "
     "num_experts: 8, num_experts_per_token: 2, num_shared_experts: 1, moe_intermediate_size: 256, first_k_dense_replace: 1, kv_lora_rank: "
     "64, qk_nope_head_dim: 32, qk_rope_head_dim: 16, v_head_dim: 32, model_max_length: 4096, linear_attn_config: {kda_layers: [1, 2, 3], "
     "full_attn_layers: [4], num_heads: 8, head_dim: 64, short_conv_kernel_size: 4}}",
     "hidden: 512, pattern: \"(K-)(KE)(KE)(+E)\", heads: 8, ffn: 1024, experts: 8, experts_per_token: 2, shared_experts: 1, expert_ffn: "
     "256, router_bias: true, kv_rank: 64, head_size: 32, rope_head_size: 16, value_head_size: 32, delta: {key_heads: 8, key_size: 64, "
     "value_heads: 8, value_size: 64}"},
    {"{model_type: minimax, hidden_size: 512, num_hidden_layers: 4, num_attention_heads: 8, num_key_value_heads: 2, intermediate_size: 256, "
     "vocab_size: 1024, num_local_experts: 8, num_experts_per_tok: 2, layer_types: [linear_attention, full_attention, linear_attention, "
     "full_attention]}",
     "layers: 4, hidden: 512, pattern: \"(LE)(*E)\", heads: 8, kv_heads: 2, ffn: 256, experts: 8, experts_per_token: 2, linear: {heads: 8, "
     "head_size: 64}"},
    {"{model_type: bamba, hidden_size: 512, num_hidden_layers: 4, num_attention_heads: 8, num_key_value_heads: 2, intermediate_size: 1024, "
     "vocab_size: 1024, mamba_n_heads: 16, mamba_n_groups: 2, mamba_d_state: 64, attn_layer_indices: [2]}",
     "hidden: 512, pattern: \"(M-)(M-)(*-)(M-)\", heads: 8, kv_heads: 2, ffn: 1024, mamba: {heads: 16, head_size: 64, groups: 2, state: 64, "
     "chunk: 256}"},
};

static void config_files(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(written); i++) {
        struct simulated simulated[2];

        for (int p = 0; p < 2; p++) {
            struct metrics *m = &simulated[p].run.metrics, *first = &simulated[0].run.metrics;

            run_text(&simulated[p], p ? "model: {transformer: {%s, sequence: 512, vocabulary: 1024, tied: false, positions: 0, dropout: 0, "
                     "norm: rmsnorm, bias: false, qkv_bias: false%s}}\n" HARDWARE "strategy: {tensor: 2, data: 4}\nbatch: {global: 8, micro: "
                     "1}\nsimulation: {engine: fast}\nsoftware: megatron-core\n" :
                     "model: {hf_config: %s%s, sequence: 512}\n" HARDWARE "strategy: {tensor: 2, data: 4}\nbatch: {global: 8, micro: 1}\n"
                     "simulation: {engine: fast}\nsoftware: megatron-core\n", p ? written[i].shape : written[i].config,
                     p && !strstr(written[i].shape, "mlp:") ? ", mlp: swiglu" : "");
            expect_near("time", m->iteration_time, first->iteration_time, simulated[p].text);
            expect_near("memory", m->peak_memory, first->peak_memory, simulated[p].text);
            expect_near("model FLOPs", m->model_flop, first->model_flop, simulated[p].text);
            expect_near("hardware FLOPs", m->hardware_flop, first->hardware_flop, simulated[p].text);
        }
        for (int p = 0; p < 2; p++)
            simulated_release(&simulated[p]);
    }
}

#define MAMBA "mamba: {heads: 8, head_size: 32, state: 16, groups: 2}"
#define DELTA "delta: {key_heads: 4, key_size: 32, value_heads: 8, value_size: 32}"

/* Each at its place: line and column, and how the message begins. */
static void refusals(void **state)
{
    static const struct { const char *keys, *strategy, *message; } cases[] = {
        {"pattern: \"M-X-\", " MAMBA, "data: 8", "1:32: transformer: pattern: unknown letter 'X' at 3; expected * (attention)"},
        {"pattern: \"M-D-\", " MAMBA, "data: 8", "1:32: transformer: pattern: 'D' at letter 3 is sparse attention"},
        {"layers: 5, pattern: \"M-\", " MAMBA, "data: 8", "1:31: transformer: layers: 5 is no multiple of the 2 layers of 'pattern'"},
        {"pattern: \"(M-\", " MAMBA, "data: 8", "1:32: transformer: pattern: the parenthesis at letter 1 holds one layer"},
        {"pattern: \"(M-*)\", " MAMBA, "data: 8", "1:32: transformer: pattern: the parenthesis at letter 1 holds one layer"},
        {"pattern: \"()\", " MAMBA, "data: 8", "1:32: transformer: pattern: the parenthesis at letter 1 holds one layer"},
        {"pattern: \"M-)*\", " MAMBA, "data: 8", "1:32: transformer: pattern: no parenthesis is open for ')' at letter 3"},
        {"pattern: \"M-/\", " MAMBA, "data: 8", "1:32: transformer: pattern: behind the '/' at letter 3 stand the halves of a"},
        {"pattern: \"\"", "data: 8", "1:32: transformer: pattern: is empty"},
        {"pattern: \"M-|*-\", " MAMBA, "pipeline: 2, split: [2, 2]", "1:32: transformer: pattern: '|' at letter 3 ends a pipeline stage; "
         "leave it out, and say how many layers each stage has as 'strategy: {split: [...]}'"},
        {"pattern: M-, " MAMBA, "tensor: 4", "4:20: strategy: tensor: 4 does not divide the 2 groups of Mamba-2; try 1 or 2"},
        {"pattern: G-, " DELTA, "tensor: 2, context: 4", "4:20: strategy: tensor: 2 x context 4 does not divide the 4 key heads of the "
         "delta net; try 1"},
        {"pattern: G-, " DELTA, "context: 8", "4:21: strategy: context: 8 does not divide the 4 key heads"},
        {"pattern: M-, mamba: {heads: 8, head_size: 32, state: 16, groups: 6}", "context: 4, data: 2", "4:21: strategy: context: 4 neither "
         "divides the 6 groups of Mamba-2"},
        {"pattern: M-", "data: 8", "1:32: transformer: pattern: 'M' is Mamba-2, whose widths are missing; expected 'mamba'"},
        {"pattern: K-", "data: 8", "1:32: transformer: pattern: 'K' is Kimi delta attention, whose widths are missing; expected 'delta'"},
        {"pattern: +-", "data: 8", "1:32: transformer: pattern: '+' is latent attention, whose widths are missing; expected 'kv_rank'"},
        {"pattern: K-, " DELTA, "data: 8", "1:43: transformer: delta: Kimi delta attention has as many heads of keys as of values"},
        {"pattern: \"*-\", " MAMBA, "data: 8", "1:45: transformer: mamba: no block has this mixer; expected its letter in 'pattern'"},
        {"layers: 4, " DELTA, "data: 8", "1:41: transformer: delta: no block has this mixer"},
        {"pattern: \"*E\"", "data: 8", "1:32: transformer: pattern: 'E' stands for experts, and there are none"},
        {"pattern: \"*-\", experts: 4, experts_per_token: 1", "data: 8", "1:47: transformer: experts: no block has them; expected 'E'"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct simulated simulated = {0};
        struct error err = {0};
        const char *found = NULL;

        assert_true(asprintf(&simulated.text, "model: {transformer: {%s, hidden: 256, heads: 8, sequence: 256, " SMALL "}}\n" HARDWARE
                             "strategy: {%s}\nbatch: {global: 8, micro: 1}\nsimulation: {engine: fast}\nsoftware: megatron-core\n", cases[i].keys,
                             cases[i].strategy) >= 0);
        if (!load_text(simulated.text, &simulated.scenario, &err) && !simulated_run(&simulated, &err))
            fail_msg("runs:\n%s", simulated.text);
        found = arena_printf(&simulated.scenario.arena, "%d:%d: %s", err.messages[0].loc.line, err.messages[0].loc.column,
                             err.messages[0].text);
        if (strncmp(found, cases[i].message, strlen(cases[i].message)))
            fail_msg("'%s' instead of '%s'", found, cases[i].message);
        error_release(&err);
        simulated_release(&simulated);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(config_files), cmocka_unit_test(refusals)};

    return cmocka_run_group_tests_name("hybrid_written", tests, NULL, NULL);
}
