/* Model types with experts: what their configuration classes (Transformers, models/TYPE/configuration_TYPE.py)
 * default to, and what their code (modeling_TYPE.py) fixes. Biases of routers, and sinks of attention (gpt_oss), are a
 * millionth of the parameters or less, and are left out. */
#include "huggingface/hf_family.h"

/* RMSNorm, gated MLPs, rotary positions, no biases. */
#define LLAMA \
    "{norm: rmsnorm, mlp: swiglu, positions: 0, tied: false, dropout: 0, attention_dropout: 0, qkv_bias: false, " \
    "bias: false}"

#define DEEPSEEK_V3 \
    "vocab_size: 129280, hidden_size: 7168, intermediate_size: 18432, moe_intermediate_size: 2048, " \
    "num_hidden_layers: 61, num_attention_heads: 128, num_key_value_heads: 128, n_shared_experts: 1, " \
    "n_routed_experts: 256, kv_lora_rank: 512, q_lora_rank: 1536, qk_rope_head_dim: 64, v_head_dim: 128, " \
    "qk_nope_head_dim: 128, num_experts_per_tok: 8, first_k_dense_replace: 3, max_position_embeddings: 4096, " \
    "tie_word_embeddings: false, attention_dropout: 0"

const struct family hf_experts[] = {
    {.types = "mixtral", .class = "MixtralConfig", .base = LLAMA,
     .defaults = "{vocab_size: 32000, hidden_size: 4096, intermediate_size: 14336, num_hidden_layers: 32, "
                 "num_attention_heads: 32, num_key_value_heads: 8, head_dim: null, max_position_embeddings: 131072, "
                 "tie_word_embeddings: false, sliding_window: null, attention_dropout: 0, num_experts_per_tok: 2, "
                 "num_local_experts: 8}"},
    {.types = "phimoe", .class = "PhimoeConfig", .base = LLAMA, .fixed = "{norm: layernorm}",
     .rules = {{"lm_head_bias", "head_bias", NULL}},
     .defaults = "{vocab_size: 32064, hidden_size: 4096, intermediate_size: 6400, num_hidden_layers: 32, "
                 "num_attention_heads: 32, num_key_value_heads: 8, max_position_embeddings: 131072, "
                 "tie_word_embeddings: false, sliding_window: null, attention_dropout: 0, num_experts_per_tok: 2, "
                 "num_local_experts: 16, attention_bias: false, lm_head_bias: false}"},
    {.types = "olmoe", .class = "OlmoeConfig", .base = LLAMA, .fixed = "{qk_norm: width}",
     .defaults = "{vocab_size: 50304, hidden_size: 2048, intermediate_size: 2048, num_hidden_layers: 16, "
                 "num_attention_heads: 16, num_key_value_heads: null, max_position_embeddings: 4096, "
                 "tie_word_embeddings: false, attention_bias: false, attention_dropout: 0, num_experts_per_tok: 8, "
                 "num_experts: 64}"},
    {.types = "granitemoe", .class = "GraniteMoeConfig", .base = LLAMA,
     .defaults = "{vocab_size: 32000, hidden_size: 4096, intermediate_size: 11008, num_hidden_layers: 32, "
                 "num_attention_heads: 32, num_key_value_heads: null, max_position_embeddings: 2048, "
                 "tie_word_embeddings: false, attention_bias: false, attention_dropout: 0, num_local_experts: 8, "
                 "num_experts_per_tok: 2}"},
    {.types = "gpt_oss", .class = "GptOssConfig", .base = LLAMA, .fixed = "{bias: true}", .attention = hf_every,
     .defaults = "{vocab_size: 201088, hidden_size: 2880, intermediate_size: 2880, num_hidden_layers: 36, "
                 "num_attention_heads: 64, num_key_value_heads: 8, head_dim: 64, max_position_embeddings: 131072, "
                 "tie_word_embeddings: false, attention_bias: true, attention_dropout: 0, sliding_window: 128, "
                 "sliding_window_pattern: 2, num_local_experts: 128, num_experts_per_tok: 4, swiglu_limit: 7}"},
    {.types = "minimax_m2", .class = "MiniMaxM2Config", .base = LLAMA, .fixed = "{qk_norm: width}",
     .defaults = "{vocab_size: 200064, hidden_size: 3072, intermediate_size: 1536, num_hidden_layers: 62, "
                 "num_attention_heads: 48, num_key_value_heads: 8, head_dim: 128, max_position_embeddings: 196608, "
                 "tie_word_embeddings: false, attention_dropout: 0, num_experts_per_tok: 8, num_local_experts: 256}"},
    {.types = "qwen2_moe", .class = "Qwen2MoeConfig", .base = LLAMA,
     .fixed = "{projection_bias: false}",
     .attention = hf_even, .has_experts = hf_sparse_step, .derive = hf_qwen2_moe,
     .rules = {{"qkv_bias", "qkv_bias", NULL}},
     .defaults = "{vocab_size: 151936, hidden_size: 2048, intermediate_size: 5632, num_hidden_layers: 24, "
                 "num_attention_heads: 16, num_key_value_heads: 16, max_position_embeddings: 32768, "
                 "tie_word_embeddings: false, attention_dropout: 0, sliding_window: 4096, max_window_layers: 28, "
                 "decoder_sparse_step: 1, moe_intermediate_size: 1408, shared_expert_intermediate_size: 5632, "
                 "num_experts_per_tok: 4, num_experts: 60, qkv_bias: true}"},
    {.types = "qwen3_moe", .class = "Qwen3MoeConfig", .base = LLAMA, .fixed = "{qk_norm: head}",
     .attention = hf_if_used, .has_experts = hf_sparse_step,
     .defaults = "{vocab_size: 151936, hidden_size: 2048, intermediate_size: 6144, num_hidden_layers: 24, "
                 "num_attention_heads: 32, num_key_value_heads: 4, head_dim: null, max_position_embeddings: 32768, "
                 "tie_word_embeddings: false, attention_bias: false, attention_dropout: 0, sliding_window: 4096, "
                 "decoder_sparse_step: 1, moe_intermediate_size: 768, num_experts_per_tok: 8, num_experts: 128}"},
    /* tie_word_embeddings as in Qwen3VLMoeConfig, whose output layer it is */
    {.types = "qwen3_vl_moe_text", .whole = "qwen3_vl_moe", .class = "Qwen3VLMoeTextConfig", .base = LLAMA,
     .fixed = "{qk_norm: head}", .has_experts = hf_sparse_step,
     .defaults = "{vocab_size: 151936, hidden_size: 2048, intermediate_size: 5632, num_hidden_layers: 24, "
                 "num_attention_heads: 16, num_key_value_heads: 16, head_dim: null, max_position_embeddings: 128000, "
                 "tie_word_embeddings: false, attention_bias: false, attention_dropout: 0, decoder_sparse_step: 1, "
                 "moe_intermediate_size: 1408, num_experts_per_tok: 4, num_experts: 60}"},
    {.types = "qwen3_omni_moe_text", .whole = "qwen3_omni_moe_thinker", .class = "Qwen3OmniMoeTextConfig", .base = LLAMA,
     .fixed = "{qk_norm: head}", .has_experts = hf_sparse_step,
     .defaults = "{vocab_size: 3584, hidden_size: 2048, intermediate_size: 18944, num_hidden_layers: 28, "
                 "num_attention_heads: 28, num_key_value_heads: 4, head_dim: null, max_position_embeddings: 32768, "
                 "tie_word_embeddings: false, attention_bias: false, attention_dropout: 0, sliding_window: null, "
                 "decoder_sparse_step: 1, moe_intermediate_size: 768, num_experts_per_tok: 8, num_experts: 128}"},
    /* intermediate_size is of experts, intermediate_size_mlp of dense blocks; the norm of queries and keys
     * (use_qk_norm) has no weights, and is left out */
    {.types = "llama4_text", .whole = "llama4", .class = "Llama4TextConfig", .base = LLAMA,
     .fixed = "{shared_experts: 1}",
     .attention = hf_turned_chunks, .turns = TURN_LISTED, .has_experts = hf_interleaved,
     .rules = {{"intermediate_size", "expert_ffn", NULL}, {"intermediate_size_mlp", "ffn", NULL}},
     .defaults = "{vocab_size: 202048, hidden_size: 5120, intermediate_size: 8192, intermediate_size_mlp: 16384, "
                 "num_hidden_layers: 48, num_attention_heads: 40, num_key_value_heads: 8, head_dim: 128, "
                 "max_position_embeddings: 131072, tie_word_embeddings: false, attention_bias: false, "
                 "attention_dropout: 0, num_experts_per_tok: 1, num_local_experts: 16, interleave_moe_layer_step: 1, "
                 "no_rope_layer_interval: 4, attention_chunk_size: 8192}"},
    /* of the hub (deepseek-ai/deepseek-moe-16b-base, configuration_deepseek.py) */
    {.types = "deepseek", .class = "DeepseekConfig", .base = LLAMA, .has_experts = hf_after_dense,
     .defaults = "{vocab_size: 102400, hidden_size: 4096, intermediate_size: 11008, moe_intermediate_size: 1407, "
                 "num_hidden_layers: 30, num_attention_heads: 32, num_key_value_heads: 32, n_shared_experts: null, "
                 "n_routed_experts: null, num_experts_per_tok: null, moe_layer_freq: 1, first_k_dense_replace: 0, "
                 "max_position_embeddings: 2048, tie_word_embeddings: false, attention_bias: false, "
                 "attention_dropout: 0}"},
    {.types = "deepseek_v2", .class = "DeepseekV2Config", .base = LLAMA, .has_experts = hf_after_dense,
     .refused = "attention_bias mlp_bias",
     .defaults = "{vocab_size: 32000, hidden_size: 4096, intermediate_size: 11008, moe_intermediate_size: 1407, "
                 "num_hidden_layers: 32, num_attention_heads: 32, num_key_value_heads: null, n_shared_experts: 2, "
                 "n_routed_experts: 64, num_experts_per_tok: null, first_k_dense_replace: 0, kv_lora_rank: 512, "
                 "q_lora_rank: 1536, qk_nope_head_dim: 128, qk_rope_head_dim: 64, v_head_dim: 128, "
                 "max_position_embeddings: 2048, tie_word_embeddings: false, attention_dropout: 0}"},
    /* kimi_k2's class is of the hub (moonshotai/Kimi-K2-Base, configuration_deepseek.py) */
    {.types = "deepseek_v3 kimi_k2", .class = "DeepseekV3Config", .base = LLAMA, .has_experts = hf_after_dense,
     .refused = "attention_bias", .defaults = "{" DEEPSEEK_V3 "}"},
    /* with an indexer, which chooses index_topk keys for each query; here a query sees all keys, as in deepseek_v3 */
    {.types = "deepseek_v32", .class = "DeepseekV32Config", .base = LLAMA, .has_experts = hf_after_dense,
     .refused = "attention_bias", .defaults = "{" DEEPSEEK_V3 ", index_topk: 2048}"},
    {.types = "glm_moe_dsa", .class = "GlmMoeDsaConfig", .base = LLAMA, .has_experts = hf_after_dense,
     .refused = "attention_bias mlp_bias",
     .defaults = "{vocab_size: 154880, hidden_size: 6144, intermediate_size: 12288, moe_intermediate_size: 2048, "
                 "num_hidden_layers: 78, num_attention_heads: 64, num_key_value_heads: 64, n_shared_experts: 1, "
                 "n_routed_experts: 256, kv_lora_rank: 512, q_lora_rank: 2048, qk_rope_head_dim: 64, v_head_dim: 256, "
                 "qk_nope_head_dim: 192, num_experts_per_tok: 8, first_k_dense_replace: 3, "
                 "max_position_embeddings: 202752, tie_word_embeddings: false, attention_dropout: 0, index_topk: 2048}"},
    /* of the hub (inclusionAI/Ling-lite, configuration_bailing_moe.py) */
    {.types = "bailing_moe", .class = "BailingMoeConfig", .base = LLAMA, .has_experts = hf_after_dense,
     .rules = {{"use_qkv_bias", "qkv_bias", NULL}, {"use_bias", "projection_bias", NULL},
               {"num_shared_experts", "shared_experts", NULL}, {"output_dropout", "dropout", NULL},
               {"use_qk_norm", "qk_norm", "head"}},
     .defaults = "{vocab_size: 30592, hidden_size: 1024, intermediate_size: null, num_hidden_layers: 24, "
                 "num_attention_heads: 16, num_key_value_heads: null, head_dim: null, max_position_embeddings: 16384, "
                 "tie_word_embeddings: false, use_qkv_bias: false, use_bias: true, attention_dropout: 0.1, "
                 "output_dropout: 0.1, num_experts: 16, num_shared_experts: 0, num_experts_per_tok: 2, "
                 "moe_intermediate_size: null, first_k_dense_replace: 0}"},
    {.types = "dots1", .class = "Dots1Config", .base = LLAMA, .fixed = "{qk_norm: head}", .has_experts = hf_after_dense,
     .attention = hf_from_window,
     .defaults = "{vocab_size: 152064, hidden_size: 4608, intermediate_size: 10944, moe_intermediate_size: 1408, "
                 "num_hidden_layers: 62, num_attention_heads: 32, num_key_value_heads: 32, head_dim: null, "
                 "n_shared_experts: null, n_routed_experts: null, num_experts_per_tok: null, first_k_dense_replace: 0, "
                 "max_position_embeddings: 2048, tie_word_embeddings: false, attention_bias: false, attention_dropout: 0, "
                 "sliding_window: 4096, max_window_layers: 62}"},
    /* of the hub (stepfun-ai/step3, configuration_step3.py) */
    {.types = "step3_text", .whole = "step3_vl", .class = "Step3TextConfig", .base = LLAMA, .fixed = "{shared_experts: 1}",
     .has_experts = hf_enumerated,
     .rules = {{"moe_top_k", "experts_per_token", NULL}, {"share_expert_dim", "shared_ffn", NULL}, {"share_q_dim", "q_rank", NULL},
               {"num_attention_groups", "kv_heads", NULL}, {"max_position_embedding", "sequence", NULL}},
     .defaults = "{vocab_size: 128815, hidden_size: 7168, intermediate_size: 18432, num_hidden_layers: 61, "
                 "num_attention_heads: 64, num_attention_groups: 1, head_dim: 256, moe_intermediate_size: 5120, "
                 "moe_num_experts: 48, moe_top_k: 3, share_expert_dim: 5120, share_q_dim: 2048, max_position_embedding: 65536, "
                 "tie_word_embeddings: false}"},
    /* the first block has no experts, unless mlp_layer_types says others */
    {.types = "glm4_moe_lite", .class = "Glm4MoeLiteConfig", .base = LLAMA, .has_experts = hf_after_dense,
     .refused = "attention_bias",
     .defaults = "{vocab_size: 154880, hidden_size: 2048, intermediate_size: 10240, moe_intermediate_size: 1536, "
                 "num_hidden_layers: 47, num_attention_heads: 20, num_key_value_heads: 20, n_shared_experts: 1, "
                 "n_routed_experts: 64, kv_lora_rank: 512, q_lora_rank: 768, qk_rope_head_dim: 64, v_head_dim: 256, "
                 "qk_nope_head_dim: 192, num_experts_per_tok: 4, first_k_dense_replace: 1, max_position_embeddings: 202752, "
                 "tie_word_embeddings: false, attention_dropout: 0}"},
    /* of the hub (inclusionAI/Ling-mini-2.0, configuration_bailing_moe_v2.py) */
    {.types = "bailing_moe_v2", .class = "BailingMoeV2Config", .base = LLAMA, .has_experts = hf_after_dense,
     .rules = {{"use_qk_norm", "qk_norm", "head"}, {"use_qkv_bias", "qkv_bias", NULL},
               {"use_bias", "projection_bias", NULL}, {"num_shared_experts", "shared_experts", NULL},
               {"output_dropout", "dropout", NULL}},
     .defaults = "{vocab_size: 157184, hidden_size: 2048, intermediate_size: 5120, num_hidden_layers: 20, "
                 "num_attention_heads: 16, num_key_value_heads: 4, head_dim: 128, max_position_embeddings: 32768, "
                 "tie_word_embeddings: false, use_qkv_bias: false, use_bias: false, use_qk_norm: true, "
                 "attention_dropout: 0, output_dropout: 0, num_experts: 256, num_shared_experts: 1, "
                 "num_experts_per_tok: 8, moe_intermediate_size: 512, first_k_dense_replace: 1}"},
    {.types = "glm4_moe", .class = "Glm4MoeConfig", .base = LLAMA, .fixed = "{projection_bias: false}",
     .has_experts = hf_after_dense,
     .rules = {{"attention_bias", "qkv_bias", NULL}, {"use_qk_norm", "qk_norm", "head"}},
     .defaults = "{vocab_size: 151552, hidden_size: 4096, intermediate_size: 10944, moe_intermediate_size: 1408, "
                 "num_hidden_layers: 46, num_attention_heads: 96, num_key_value_heads: 8, head_dim: null, "
                 "max_position_embeddings: 131072, tie_word_embeddings: false, attention_bias: false, "
                 "attention_dropout: 0, num_experts_per_tok: 8, n_shared_experts: 1, n_routed_experts: 128, "
                 "first_k_dense_replace: 1, use_qk_norm: false}"},
    {.types = "ernie4_5_moe", .class = "Ernie4_5_MoeConfig", .base = LLAMA, .has_experts = hf_from_to,
     .defaults = "{vocab_size: 103424, hidden_size: 2560, intermediate_size: 12288, num_hidden_layers: 28, "
                 "num_attention_heads: 20, num_key_value_heads: 4, head_dim: null, max_position_embeddings: 131072, "
                 "tie_word_embeddings: true, use_bias: false, moe_intermediate_size: 1536, moe_k: 6, "
                 "moe_num_experts: 64, moe_num_shared_experts: 2, moe_layer_start_index: 1, moe_layer_end_index: -1, "
                 "moe_layer_interval: 1}"},
    /* moe_intermediate_size and num_shared_expert as in the hub's code (tencent/Hunyuan-A13B-Instruct,
     * modeling_hunyuan.py); Transformers' own has intermediate_size and one */
    {.types = "hunyuan_v1_moe hunyuan", .class = "HunYuanMoEV1Config", .base = LLAMA, .fixed = "{qk_norm: head}",
     .derive = hf_hunyuan, .rules = {{"attention_head_dim", "head_size", NULL}},
     .defaults = "{vocab_size: 290943, hidden_size: 4096, intermediate_size: 11008, num_hidden_layers: 32, "
                 "num_attention_heads: 32, num_key_value_heads: null, head_dim: null, max_position_embeddings: 2048, "
                 "tie_word_embeddings: false, attention_bias: false, attention_dropout: 0, sliding_window: null, "
                 "num_experts: 1, moe_topk: 1, use_mixed_mlp_moe: false, moe_intermediate_size: null}"},
    {.types = NULL},
};
