/* Model types without experts: what their configuration classes (Transformers, models/TYPE/configuration_TYPE.py)
 * default to, and what their code (modeling_TYPE.py) fixes. */
#include "huggingface/hf_family.h"

/* RMSNorm, gated MLP, rotary positions, no biases. Attention is fused for all of these, because Transformers gives it
 * to PyTorch's fused kernel (attn_implementation "sdpa", its default since 4.36). */
#define LLAMA \
    "{norm: rmsnorm, mlp: swiglu, positions: 0, tied: false, dropout: 0, attention_dropout: 0, qkv_bias: false, " \
    "bias: false}"
/* LayerNorm, GELU (or another function of one input), biases. */
#define GPT "{norm: layernorm, mlp: gelu, dropout: 0, attention_dropout: 0, qkv_bias: true, bias: true, tied: true}"

const struct family hf_dense[] = {
    {.types = "llama", .class = "LlamaConfig", .base = LLAMA,
     .defaults = "{vocab_size: 32000, hidden_size: 4096, intermediate_size: 11008, num_hidden_layers: 32, "
                 "num_attention_heads: 32, num_key_value_heads: null, head_dim: null, max_position_embeddings: 2048, "
                 "tie_word_embeddings: false, attention_bias: false, mlp_bias: false, attention_dropout: 0}"},
    {.types = "mistral", .whole = "mistral3", .class = "MistralConfig", .base = LLAMA,
     .defaults = "{vocab_size: 32000, hidden_size: 4096, intermediate_size: 14336, num_hidden_layers: 32, "
                 "num_attention_heads: 32, num_key_value_heads: 8, head_dim: null, max_position_embeddings: 131072, "
                 "tie_word_embeddings: false, sliding_window: 4096, attention_dropout: 0}"},
    {.types = "ministral3", .class = "Ministral3Config", .base = LLAMA,
     .defaults = "{vocab_size: 131072, hidden_size: 4096, intermediate_size: 14336, num_hidden_layers: 34, "
                 "num_attention_heads: 32, num_key_value_heads: 8, head_dim: 128, max_position_embeddings: 262144, "
                 "tie_word_embeddings: false, sliding_window: null, attention_dropout: 0}"},
    {.types = "arcee", .class = "ArceeConfig", .base = LLAMA, .fixed = "{mlp: squared-relu}",
     .defaults = "{vocab_size: 32000, hidden_size: 2560, intermediate_size: 18432, num_hidden_layers: 32, "
                 "num_attention_heads: 32, num_key_value_heads: null, head_dim: null, max_position_embeddings: 4096, "
                 "tie_word_embeddings: false, attention_bias: false, mlp_bias: false, attention_dropout: 0}"},
    {.types = "apertus", .class = "ApertusConfig", .base = LLAMA, .fixed = "{mlp: xielu, qk_norm: head}",
     .defaults = "{vocab_size: 131072, hidden_size: 4096, intermediate_size: 14336, num_hidden_layers: 32, "
                 "num_attention_heads: 32, num_key_value_heads: null, max_position_embeddings: 65536, "
                 "tie_word_embeddings: false, attention_bias: false, attention_dropout: 0}"},
    /* of the hub (XiaomiMiMo/MiMo-7B-Base, configuration_mimo.py): qwen2 with a module that predicts further tokens */
    {.types = "mimo", .class = "MiMoConfig", .base = LLAMA, .fixed = "{qkv_bias: true, projection_bias: false}",
     .attention = hf_later,
     .defaults = "{vocab_size: 151936, hidden_size: 4096, intermediate_size: 22016, num_hidden_layers: 32, "
                 "num_attention_heads: 32, num_key_value_heads: 32, head_dim: null, max_position_embeddings: 32768, "
                 "tie_word_embeddings: false, attention_dropout: 0, sliding_window: 4096, max_window_layers: 28}"},
    /* a norm after each half of a block instead of before it, which costs the same */
    {.types = "olmo2", .class = "Olmo2Config", .base = LLAMA, .fixed = "{qk_norm: width}",
     .defaults = "{vocab_size: 50304, hidden_size: 4096, intermediate_size: 11008, num_hidden_layers: 32, "
                 "num_attention_heads: 32, num_key_value_heads: null, max_position_embeddings: 2048, "
                 "tie_word_embeddings: false, attention_bias: false, attention_dropout: 0}"},
    {.types = "olmo3", .class = "Olmo3Config", .base = LLAMA, .fixed = "{qk_norm: width}", .attention = hf_every,
     .defaults = "{vocab_size: 50304, hidden_size: 4096, intermediate_size: 11008, num_hidden_layers: 32, "
                 "num_attention_heads: 32, num_key_value_heads: null, max_position_embeddings: 2048, "
                 "tie_word_embeddings: false, attention_bias: false, attention_dropout: 0, sliding_window: 4096, "
                 "sliding_window_pattern: 4}"},
    {.types = "granite", .class = "GraniteConfig", .base = LLAMA,
     .defaults = "{vocab_size: 32000, hidden_size: 4096, intermediate_size: 11008, num_hidden_layers: 32, "
                 "num_attention_heads: 32, num_key_value_heads: null, max_position_embeddings: 2048, "
                 "tie_word_embeddings: false, attention_bias: false, mlp_bias: false, attention_dropout: 0}"},
    {.types = "smollm3", .class = "SmolLM3Config", .base = LLAMA, .attention = hf_unturned, .turns = TURN_LISTED,
     .defaults = "{vocab_size: 128256, hidden_size: 2048, intermediate_size: 11008, num_hidden_layers: 36, "
                 "num_attention_heads: 16, num_key_value_heads: 4, max_position_embeddings: 32768, "
                 "tie_word_embeddings: true, attention_bias: false, mlp_bias: false, attention_dropout: 0, "
                 "sliding_window: null, no_rope_layer_interval: 4}"},
    {.types = "nemotron", .class = "NemotronConfig", .base = GPT, .fixed = "{positions: 0, mlp: squared-relu}",
     .defaults = "{vocab_size: 256000, hidden_size: 6144, intermediate_size: 24576, num_hidden_layers: 32, "
                 "num_attention_heads: 48, num_key_value_heads: null, head_dim: null, max_position_embeddings: 4096, "
                 "tie_word_embeddings: false, attention_bias: false, mlp_bias: false, attention_dropout: 0}"},
    {.types = "starcoder2", .class = "Starcoder2Config", .base = GPT, .fixed = "{positions: 0}",
     .defaults = "{vocab_size: 49152, hidden_size: 3072, intermediate_size: 12288, num_hidden_layers: 30, "
                 "num_attention_heads: 24, num_key_value_heads: 2, max_position_embeddings: 4096, "
                 "tie_word_embeddings: true, use_bias: true, attention_dropout: 0, residual_dropout: 0, "
                 "sliding_window: null}"},
    {.types = "qwen2", .class = "Qwen2Config", .base = LLAMA, .fixed = "{qkv_bias: true, projection_bias: false}",
     .attention = hf_later,
     .defaults = "{vocab_size: 151936, hidden_size: 4096, intermediate_size: 22016, num_hidden_layers: 32, "
                 "num_attention_heads: 32, num_key_value_heads: 32, max_position_embeddings: 32768, "
                 "tie_word_embeddings: false, attention_dropout: 0, sliding_window: 4096, max_window_layers: 28}"},
    {.types = "qwen2_vl_text qwen2_5_vl_text qwen2_vl qwen2_5_vl", .whole = "qwen2_vl", .class = "Qwen2VLTextConfig",
     .base = LLAMA, .fixed = "{qkv_bias: true, projection_bias: false}", .attention = hf_later,
     .defaults = "{vocab_size: 152064, hidden_size: 8192, intermediate_size: 29568, num_hidden_layers: 80, "
                 "num_attention_heads: 64, num_key_value_heads: 8, max_position_embeddings: 32768, "
                 "tie_word_embeddings: false, attention_dropout: 0, sliding_window: 4096, max_window_layers: 80}"},
    {.types = "qwen2_5_omni_text", .whole = "qwen2_5_omni_thinker", .class = "Qwen2_5OmniTextConfig", .base = LLAMA,
     .fixed = "{qkv_bias: true, projection_bias: false}", .attention = hf_later,
     .defaults = "{vocab_size: 152064, hidden_size: 3584, intermediate_size: 18944, num_hidden_layers: 28, "
                 "num_attention_heads: 28, num_key_value_heads: 4, max_position_embeddings: 32768, "
                 "tie_word_embeddings: false, attention_dropout: 0, sliding_window: 32768, max_window_layers: 28}"},
    {.types = "qwen3", .class = "Qwen3Config", .base = LLAMA, .fixed = "{qk_norm: head}", .attention = hf_later,
     .defaults = "{vocab_size: 151936, hidden_size: 4096, intermediate_size: 22016, num_hidden_layers: 32, "
                 "num_attention_heads: 32, num_key_value_heads: 32, head_dim: 128, max_position_embeddings: 32768, "
                 "tie_word_embeddings: false, attention_bias: false, attention_dropout: 0, sliding_window: 4096, "
                 "max_window_layers: 28}"},
    {.types = "qwen3_vl_text", .whole = "qwen3_vl", .class = "Qwen3VLTextConfig", .base = LLAMA,
     .fixed = "{qk_norm: head}",
     .defaults = "{vocab_size: 151936, hidden_size: 4096, intermediate_size: 22016, num_hidden_layers: 32, "
                 "num_attention_heads: 32, num_key_value_heads: 32, head_dim: 128, max_position_embeddings: 128000, "
                 "tie_word_embeddings: false, attention_bias: false, attention_dropout: 0}"},
    {.types = "gemma", .whole = "paligemma", .class = "GemmaConfig", .base = LLAMA,
     .defaults = "{vocab_size: 256000, hidden_size: 3072, intermediate_size: 24576, num_hidden_layers: 28, "
                 "num_attention_heads: 16, num_key_value_heads: 16, head_dim: 256, max_position_embeddings: 8192, "
                 "tie_word_embeddings: true, attention_bias: false, attention_dropout: 0}"},
    {.types = "gemma2", .class = "Gemma2Config", .base = LLAMA, .fixed = "{post_norms: true}", .attention = hf_every,
     .defaults = "{vocab_size: 256000, hidden_size: 2304, intermediate_size: 9216, num_hidden_layers: 26, "
                 "num_attention_heads: 8, num_key_value_heads: 4, head_dim: 256, max_position_embeddings: 8192, "
                 "tie_word_embeddings: true, attention_bias: false, attention_dropout: 0, sliding_window: 4096, "
                 "sliding_window_pattern: 2, attn_logit_softcapping: 50, final_logit_softcapping: 30}"},
    {.types = "gemma3_text", .whole = "gemma3", .class = "Gemma3TextConfig", .base = LLAMA,
     .fixed = "{post_norms: true, qk_norm: head}", .attention = hf_every,
     .defaults = "{vocab_size: 262208, hidden_size: 2304, intermediate_size: 9216, num_hidden_layers: 26, "
                 "num_attention_heads: 8, num_key_value_heads: 4, head_dim: 256, max_position_embeddings: 131072, "
                 "tie_word_embeddings: true, attention_bias: false, attention_dropout: 0, sliding_window: 4096, "
                 "sliding_window_pattern: 6}"},
    {.types = "cohere", .class = "CohereConfig", .base = LLAMA,
     .fixed = "{norm: layernorm, norm_bias: false, parallel: true}", .rules = {{"use_qk_norm", "qk_norm", "width"}},
     .defaults = "{vocab_size: 256000, hidden_size: 8192, intermediate_size: 22528, num_hidden_layers: 40, "
                 "num_attention_heads: 64, num_key_value_heads: null, max_position_embeddings: 8192, "
                 "tie_word_embeddings: true, attention_bias: false, attention_dropout: 0, use_qk_norm: false}"},
    {.types = "cohere2", .class = "Cohere2Config", .base = LLAMA,
     .fixed = "{norm: layernorm, norm_bias: false, parallel: true}", .attention = hf_every, .turns = TURN_WINDOWS,
     .defaults = "{vocab_size: 256000, hidden_size: 8192, intermediate_size: 22528, num_hidden_layers: 40, "
                 "num_attention_heads: 64, num_key_value_heads: null, max_position_embeddings: 8192, "
                 "tie_word_embeddings: true, attention_bias: false, attention_dropout: 0, sliding_window: 4096, "
                 "sliding_window_pattern: 4}"},
    {.types = "glm", .class = "GlmConfig", .base = LLAMA, .fixed = "{projection_bias: false}",
     .rules = {{"attention_bias", "qkv_bias", NULL}},
     .defaults = "{vocab_size: 151552, hidden_size: 4096, intermediate_size: 13696, num_hidden_layers: 40, "
                 "num_attention_heads: 32, num_key_value_heads: 2, head_dim: 128, max_position_embeddings: 131072, "
                 "tie_word_embeddings: false, attention_bias: true, attention_dropout: 0}"},
    {.types = "glm4", .class = "Glm4Config", .base = LLAMA, .fixed = "{post_norms: true, projection_bias: false}",
     .rules = {{"attention_bias", "qkv_bias", NULL}},
     .defaults = "{vocab_size: 151552, hidden_size: 4096, intermediate_size: 13696, num_hidden_layers: 40, "
                 "num_attention_heads: 32, num_key_value_heads: 2, head_dim: 128, max_position_embeddings: 131072, "
                 "tie_word_embeddings: false, attention_bias: true, attention_dropout: 0}"},
    /* of the hub (internlm/internlm2-7b, configuration_internlm2.py), whose `bias` defaults to true: every published
     * config.json says false */
    {.types = "internlm2", .class = "InternLM2Config", .base = LLAMA,
     .rules = {{"bias", "qkv_bias projection_bias", NULL}},
     .defaults = "{vocab_size: 103168, hidden_size: 4096, intermediate_size: 11008, num_hidden_layers: 32, "
                 "num_attention_heads: 32, num_key_value_heads: null, max_position_embeddings: 2048, "
                 "tie_word_embeddings: false, bias: false}"},
    {.types = "hunyuan_v1_dense", .class = "HunYuanDenseV1Config", .base = LLAMA, .fixed = "{qk_norm: head}",
     .rules = {{"attention_head_dim", "head_size", NULL}},
     .defaults = "{vocab_size: 290943, hidden_size: 4096, intermediate_size: 11008, num_hidden_layers: 32, "
                 "num_attention_heads: 32, num_key_value_heads: null, head_dim: null, max_position_embeddings: 2048, "
                 "tie_word_embeddings: false, attention_bias: false, attention_dropout: 0}"},
    {.types = "ernie4_5", .class = "Ernie4_5Config", .base = LLAMA,
     .defaults = "{vocab_size: 103424, hidden_size: 1024, intermediate_size: 3072, num_hidden_layers: 18, "
                 "num_attention_heads: 16, num_key_value_heads: 2, head_dim: 128, max_position_embeddings: 131072, "
                 "tie_word_embeddings: true, use_bias: false}"},
    {.types = "seed_oss", .class = "SeedOssConfig", .base = LLAMA,
     .rules = {{"attention_bias", "qkv_bias", NULL}, {"attention_out_bias", "projection_bias", NULL}},
     .defaults = "{vocab_size: 155136, hidden_size: 4096, intermediate_size: 27648, num_hidden_layers: 64, "
                 "num_attention_heads: 80, num_key_value_heads: 8, head_dim: 128, max_position_embeddings: 524288, "
                 "tie_word_embeddings: false, attention_bias: true, attention_out_bias: false, mlp_bias: false, "
                 "attention_dropout: 0.1, residual_dropout: 0.1}"},
    /* a norm after each half of a block instead of before it, as in olmo2 */
    {.types = "exaone4", .class = "Exaone4Config", .base = LLAMA, .fixed = "{qk_norm: head}", .attention = hf_every, .turns = TURN_WINDOWS,
     .defaults = "{vocab_size: 102400, hidden_size: 4096, intermediate_size: 16384, num_hidden_layers: 32, "
                 "num_attention_heads: 32, num_key_value_heads: 32, max_position_embeddings: 2048, "
                 "tie_word_embeddings: false, attention_dropout: 0, sliding_window: 4096, sliding_window_pattern: 4}"},
    {.types = "phi3", .class = "Phi3Config", .base = LLAMA,
     .defaults = "{vocab_size: 32064, hidden_size: 3072, intermediate_size: 8192, num_hidden_layers: 32, "
                 "num_attention_heads: 32, num_key_value_heads: null, max_position_embeddings: 4096, "
                 "tie_word_embeddings: false, resid_pdrop: 0, attention_dropout: 0, sliding_window: null}"},
    {.types = "phi", .class = "PhiConfig", .base = GPT, .fixed = "{positions: 0, parallel: true, head_bias: true}",
     .rules = {{"qk_layernorm", "qk_norm", "head"}},
     .defaults = "{vocab_size: 51200, hidden_size: 2048, intermediate_size: 8192, num_hidden_layers: 24, "
                 "num_attention_heads: 32, num_key_value_heads: null, max_position_embeddings: 2048, "
                 "tie_word_embeddings: false, resid_pdrop: 0, attention_dropout: 0, qk_layernorm: false}"},
    {.types = "stablelm", .class = "StableLmConfig", .base = LLAMA, .fixed = "{norm: layernorm}",
     .rules = {{"use_qkv_bias", "qkv_bias", NULL}, {"use_parallel_residual", "parallel", NULL}},
     .refused = "qk_layernorm",
     .defaults = "{vocab_size: 50304, hidden_size: 2560, intermediate_size: 6912, num_hidden_layers: 32, "
                 "num_attention_heads: 32, num_key_value_heads: 32, max_position_embeddings: 4096, "
                 "tie_word_embeddings: false, use_qkv_bias: false, use_parallel_residual: false, hidden_dropout: 0, "
                 "attention_dropout: 0}"},
    {.types = "falcon", .class = "FalconConfig", .base = GPT, .fixed = "{positions: 0}", .derive = hf_falcon,
     .rules = {{"bias", "qkv_bias bias", NULL}},
     .defaults = "{vocab_size: 65024, hidden_size: 4544, num_hidden_layers: 32, num_attention_heads: 71, "
                 "ffn_hidden_size: null, max_position_embeddings: 2048, tie_word_embeddings: true, bias: false, "
                 "alibi: false, multi_query: true, new_decoder_architecture: false, parallel_attn: true, "
                 "hidden_dropout: 0, attention_dropout: 0}"},
    /* no_bias, learned positions and attn_config.kv_n_heads as in the hub's code (mosaicml/mpt-7b, modeling_mpt.py);
     * Transformers' own knows none of them */
    {.types = "mpt", .class = "MptConfig", .base = GPT, .fixed = "{positions: 0}", .derive = hf_mpt,
     .defaults = "{vocab_size: 50368, d_model: 2048, n_heads: 16, n_layers: 24, expansion_ratio: 4, max_seq_len: 2048, "
                 "resid_pdrop: 0, no_bias: true, learned_pos_emb: true, tie_word_embeddings: true}"},
    /* its positions have no limit; 2048 tokens is what BLOOM was trained with (Le Scao et al. 2022, table 3) */
    {.types = "bloom", .class = "BloomConfig", .base = GPT,
     .fixed = "{positions: 0, alibi: true, embedding_norm: true}",
     .defaults = "{vocab_size: 250880, hidden_size: 64, n_layer: 2, n_head: 8, seq_length: 2048, hidden_dropout: 0, "
                 "attention_dropout: 0, tie_word_embeddings: true}"},
    {.types = "opt", .class = "OPTConfig", .base = GPT, .derive = hf_opt,
     .rules = {{"dropout", "dropout", NULL}, {"enable_bias", "qkv_bias bias", NULL},
               {"do_layer_norm_before", "final_norm", NULL}, {"word_embed_proj_dim", "embedding_size", NULL}},
     .defaults = "{vocab_size: 50272, hidden_size: 768, num_hidden_layers: 12, ffn_dim: 3072, num_attention_heads: 12, "
                 "max_position_embeddings: 2048, do_layer_norm_before: true, word_embed_proj_dim: null, dropout: 0.1, "
                 "attention_dropout: 0, enable_bias: true, tie_word_embeddings: true}"},
    {.types = "gpt2", .class = "GPT2Config", .base = GPT,
     .rules = {{"n_positions", "positions sequence", NULL}}, .refused = "add_cross_attention",
     .defaults = "{vocab_size: 50257, n_positions: 1024, n_embd: 768, n_layer: 12, n_head: 12, n_inner: null, "
                 "resid_pdrop: 0.1, attn_pdrop: 0.1, tie_word_embeddings: true}"},
    {.types = "gpt_bigcode", .class = "GPTBigCodeConfig", .base = GPT, .derive = hf_bigcode,
     .rules = {{"n_positions", "positions sequence", NULL}}, .refused = "add_cross_attention",
     .defaults = "{vocab_size: 50257, n_positions: 1024, n_embd: 768, n_layer: 12, n_head: 12, n_inner: null, "
                 "resid_pdrop: 0.1, attn_pdrop: 0.1, tie_word_embeddings: true, multi_query: true}"},
    {.types = "gpt_neo", .class = "GPTNeoConfig", .base = GPT, .fixed = "{qkv_bias: false}", .attention = hf_named,
     .rules = {{"max_position_embeddings", "positions sequence", NULL}},
     .defaults = "{vocab_size: 50257, max_position_embeddings: 2048, hidden_size: 2048, num_layers: 24, num_heads: 16, "
                 "intermediate_size: null, window_size: 256, resid_dropout: 0, attention_dropout: 0, "
                 "tie_word_embeddings: true, attention_types: [[[global, local], 12]]}"},
    {.types = "gptj", .class = "GPTJConfig", .base = GPT,
     .fixed = "{positions: 0, parallel: true, qkv_bias: false, projection_bias: false, head_bias: true}",
     .defaults = "{vocab_size: 50400, n_positions: 2048, n_embd: 4096, n_layer: 28, n_head: 16, n_inner: null, "
                 "resid_pdrop: 0, attn_pdrop: 0, tie_word_embeddings: false}"},
    /* use_parallel_residual: MLP and attention each have a norm of their own, of the same input: it costs the same */
    {.types = "gpt_neox", .class = "GPTNeoXConfig", .base = GPT, .fixed = "{positions: 0}",
     .defaults = "{vocab_size: 50432, hidden_size: 6144, num_hidden_layers: 44, num_attention_heads: 64, "
                 "intermediate_size: 24576, max_position_embeddings: 2048, tie_word_embeddings: false, "
                 "attention_bias: true, hidden_dropout: 0, attention_dropout: 0}"},
    {.types = "bert", .class = "BertConfig", .base = GPT,
     .fixed = "{causal: false, final_norm: false, embedding_norm: true, head: masked-language-model}",
     .rules = {{"max_position_embeddings", "positions sequence", NULL}, {"type_vocab_size", "token_types", NULL}},
     .refused = "is_decoder add_cross_attention",
     .defaults = "{vocab_size: 30522, hidden_size: 768, num_hidden_layers: 12, num_attention_heads: 12, "
                 "intermediate_size: 3072, max_position_embeddings: 512, type_vocab_size: 2, "
                 "hidden_dropout_prob: 0.1, attention_probs_dropout_prob: 0.1, tie_word_embeddings: true}"},
    {.types = NULL},
};
