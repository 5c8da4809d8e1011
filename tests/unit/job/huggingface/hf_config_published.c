/* Every model type against the number of parameters that the page of a published model states (huggingface.co/NAME:
 * Safetensors, "params"; or the file with its weights), from its config.json without keys that say nothing of the
 * shape.
 * Exact but for what the tables of types leave out: within 0.02 %, or as far as a rounded number goes. */
#include "config_file.h"

#include "config/field.h"
#include "huggingface/hf_family.h"

#define LATENT "qk_nope_head_dim: 128, qk_rope_head_dim: 64, v_head_dim: 128, kv_lora_rank: 512"

static const struct { const char *name; double parameters; const char *config; } published[] = {
    {"meta-llama/Meta-Llama-3-8B", 8030261248, "{model_type: llama, hidden_size: 4096, num_attention_heads: 32, "
     "num_key_value_heads: 8, intermediate_size: 14336, num_hidden_layers: 32, vocab_size: 128256}"},
    {"mistralai/Mistral-7B-v0.1", 7241732096, "{model_type: mistral, sliding_window: 4096}"},
    {"mistralai/Mixtral-8x7B-v0.1", 46702792704, "{model_type: mixtral, num_local_experts: 8, num_experts_per_tok: 2}"},
    {"google/gemma-2b", 2506172416, "{model_type: gemma, head_dim: 256, hidden_size: 2048, intermediate_size: 16384, "
     "num_attention_heads: 8, num_hidden_layers: 18, num_key_value_heads: 1, vocab_size: 256000}"},
    {"google/gemma-7b", 8537680896, "{model_type: gemma}"},
    {"google/gemma-2-2b", 2614341888, "{model_type: gemma2}"},
    {"google/gemma-2-9b", 9241705984, "{model_type: gemma2, hidden_size: 3584, num_attention_heads: 16, "
     "num_key_value_heads: 8, head_dim: 256, intermediate_size: 14336, num_hidden_layers: 42, vocab_size: 256000}"},
    {"google/gemma-3-1b-pt", 999885952, "{model_type: gemma3_text, hidden_size: 1152, num_attention_heads: 4, "
     "num_key_value_heads: 1, head_dim: 256, intermediate_size: 6912, num_hidden_layers: 26, sliding_window: 512, "
     "vocab_size: 262144}"},
    /* with the class's vocabulary, heads and groups; the text of google/gemma-3-4b-pt (keras-hub's gemma3_4b_text, with
     * 64 rows less, has 3,880,099,328) */
    {"google/gemma-3-4b-pt (text)", 3880263168, "{model_type: gemma3, text_config: {hidden_size: 2560, "
     "intermediate_size: 10240, model_type: gemma3_text, num_hidden_layers: 34, sliding_window: 1024}}"},
    {"google/gemma-3-27b-pt (text)", 27009346304, "{model_type: gemma3, text_config: {head_dim: 128, hidden_size: "
     "5376, intermediate_size: 21504, model_type: gemma3_text, num_attention_heads: 32, num_hidden_layers: 62, "
     "num_key_value_heads: 16, sliding_window: 1024}}"},
    {"Qwen/Qwen2-7B", 7615616512, "{model_type: qwen2, hidden_size: 3584, num_attention_heads: 28, "
     "num_key_value_heads: 4, intermediate_size: 18944, num_hidden_layers: 28, vocab_size: 152064}"},
    {"Qwen/Qwen2.5-VL-7B-Instruct (text)", 7615616512, "{model_type: qwen2_5_vl, vision_config: {depth: 32}, "
     "hidden_size: 3584, num_attention_heads: 28, num_key_value_heads: 4, intermediate_size: 18944, num_hidden_layers: "
     "28, vocab_size: 152064}"},
    {"Qwen/Qwen3-8B", 8190735360, "{model_type: qwen3, hidden_size: 4096, num_attention_heads: 32, "
     "num_key_value_heads: 8, head_dim: 128, intermediate_size: 12288, num_hidden_layers: 36, vocab_size: 151936}"},
    {"Qwen/Qwen3-VL-8B-Instruct (text)", 8190735360, "{model_type: qwen3_vl, text_config: {model_type: qwen3_vl_text, "
     "num_key_value_heads: 8, intermediate_size: 12288, num_hidden_layers: 36}, tie_word_embeddings: false}"},
    {"Qwen/Qwen3-30B-A3B", 30532122624, "{model_type: qwen3_moe, hidden_size: 2048, num_attention_heads: 32, "
     "num_key_value_heads: 4, head_dim: 128, intermediate_size: 6144, moe_intermediate_size: 768, num_hidden_layers: "
     "48, num_experts: 128, num_experts_per_tok: 8}"},
    {"Qwen/Qwen3-VL-30B-A3B-Instruct (text)", 30532122624, "{model_type: qwen3_vl_moe, text_config: {model_type: "
     "qwen3_vl_moe_text, hidden_size: 2048, num_attention_heads: 32, num_key_value_heads: 4, head_dim: 128, "
     "intermediate_size: 6144, moe_intermediate_size: "
     "768, num_hidden_layers: 48, num_experts: 128, num_experts_per_tok: 8}}"},
    {"Qwen/Qwen1.5-MoE-A2.7B", 14315784192, "{model_type: qwen2_moe}"},
    {"Qwen/Qwen2-57B-A14B", 57.41e9, "{model_type: qwen2_moe, hidden_size: 3584, moe_intermediate_size: 2560, "
     "shared_expert_intermediate_size: 20480, num_attention_heads: 28, num_key_value_heads: 4, num_hidden_layers: 28, "
     "num_experts: 64, num_experts_per_tok: 8}"},
    {"microsoft/Phi-3-mini-4k-instruct", 3821079552, "{model_type: phi3, sliding_window: 2047}"},
    {"microsoft/phi-2", 2779683840, "{model_type: phi, hidden_size: 2560, intermediate_size: 10240, "
     "num_attention_heads: 32, num_hidden_layers: 32, vocab_size: 51200}"},
    {"microsoft/phi-1_5", 1418270720, "{model_type: phi}"},
    {"microsoft/Phi-3.5-MoE-instruct", 41873153344, "{model_type: phimoe, attention_bias: true, lm_head_bias: true}"},
    {"facebook/opt-125m", 125239296, "{model_type: opt}"},
    {"facebook/opt-350m", 331196416, "{model_type: opt, do_layer_norm_before: false, ffn_dim: 4096, hidden_size: 1024, "
     "num_attention_heads: 16, num_hidden_layers: 24, word_embed_proj_dim: 512}"},
    {"facebook/opt-6.7b", 6658473984, "{model_type: opt, hidden_size: 4096, num_attention_heads: 32, ffn_dim: 16384, "
     "num_hidden_layers: 32, word_embed_proj_dim: 4096}"},
    {"openai/gpt-oss-20b", 20914757184, "{model_type: gpt_oss, num_hidden_layers: 24, num_local_experts: 32}"},
    {"openai/gpt-oss-120b", 116829156672, "{model_type: gpt_oss}"},
    {"deepseek-ai/deepseek-moe-16b-base", 16375728128, "{model_type: deepseek, first_k_dense_replace: 1, hidden_size: "
     "2048, intermediate_size: 10944, moe_intermediate_size: 1408, n_routed_experts: 64, n_shared_experts: 2, "
     "num_attention_heads: 16, num_experts_per_tok: 6, num_hidden_layers: 28, num_key_value_heads: 16}"},
    {"deepseek-ai/DeepSeek-V2-Lite", 15706484224, "{model_type: deepseek_v2, hidden_size: 2048, "
     "num_attention_heads: 16, intermediate_size: 10944, moe_intermediate_size: 1408, num_hidden_layers: 27, "
     "n_routed_experts: 64, "
     "n_shared_experts: 2, num_experts_per_tok: 6, first_k_dense_replace: 1, q_lora_rank: null, " LATENT
     ", vocab_size: 102400}"},
    {"deepseek-ai/DeepSeek-V2", 235741434880, "{model_type: deepseek_v2, hidden_size: 5120, num_attention_heads: 128, "
     "intermediate_size: 12288, moe_intermediate_size: 1536, num_hidden_layers: 60, n_routed_experts: 160, "
     "n_shared_experts: 2, num_experts_per_tok: 6, first_k_dense_replace: 1, q_lora_rank: 1536, " LATENT
     ", vocab_size: 102400}"},
    /* without its module for multi-token prediction (README_WEIGHTS.md) */
    {"deepseek-ai/DeepSeek-V3", 671026404352, "{model_type: deepseek_v3, num_nextn_predict_layers: 1}"},
    /* without its indexers, as DeepSeek-V3 */
    {"deepseek-ai/DeepSeek-V3.2-Exp", 671026404352, "{model_type: deepseek_v32, index_topk: 2048}"},
    {"zai-org/GLM-5 (without indexer and modules of further tokens)", 743180190720, "{model_type: glm_moe_dsa}"},
    {"ByteDance-Seed/Seed-OSS-36B", 36151104512, "{model_type: seed_oss, hidden_size: 5120}"},
    {"LGAI-EXAONE/EXAONE-4.0-32B", 32003216384, "{model_type: exaone4, hidden_size: 5120, intermediate_size: 27392, "
     "num_hidden_layers: 64, num_attention_heads: 40, num_key_value_heads: 8, head_dim: 128, "
     "max_position_embeddings: 131072, sliding_window_pattern: LLLG}"},
    {"inclusionAI/Ling-mini-2.0", 16255643392, "{model_type: bailing_moe_v2}"},
    {"moonshotai/Kimi-K2-Base", 1026408232448, "{model_type: kimi_k2, vocab_size: 163840, num_attention_heads: 64, "
     "num_key_value_heads: 64, n_routed_experts: 384, first_k_dense_replace: 1}"},
    {"MiniMaxAI/MiniMax-M2", 228.7e9, "{model_type: minimax_m2, use_mtp: true}"},
    {"allenai/OLMo-2-1124-7B", 7298617344, "{model_type: olmo2, vocab_size: 100352}"},
    {"allenai/Olmo-3-1025-7B", 7298011136, "{model_type: olmo3, vocab_size: 100278}"},
    {"allenai/Olmo-3-1125-32B", 32233522176, "{model_type: olmo3, vocab_size: 100278, hidden_size: 5120, "
     "intermediate_size: 27648, num_hidden_layers: 64, num_attention_heads: 40, num_key_value_heads: 8}"},
    {"allenai/OLMoE-1B-7B-0924", 6919161856, "{model_type: olmoe, intermediate_size: 1024}"},
    {"ibm-granite/granite-3.0-8b-base", 8170848256, "{model_type: granite, num_key_value_heads: 8, intermediate_size: "
     "12800, num_hidden_layers: 40, tie_word_embeddings: true, vocab_size: 49155}"},
    {"ibm-granite/granite-3.0-1b-a400m-base", 1334628352, "{model_type: granitemoe, hidden_size: 1024, "
     "intermediate_size: 512, num_hidden_layers: 24, num_attention_heads: 16, num_key_value_heads: 8, "
     "num_local_experts: 32, num_experts_per_tok: 8, tie_word_embeddings: true, vocab_size: 49155}"},
    {"HuggingFaceTB/SmolLM3-3B", 3075098624, "{model_type: smollm3}"},
    {"nvidia/Minitron-4B-Base", 4.19e9, "{model_type: nemotron, hidden_size: 3072, num_attention_heads: 24, "
     "num_key_value_heads: 8, head_dim: 128, intermediate_size: 9216}"},
    {"bigcode/starcoder2-3b", 3030371328, "{model_type: starcoder2}"},
    {"bigcode/starcoder2-7b", 7173923840, "{model_type: starcoder2, hidden_size: 4608, num_attention_heads: 36, "
     "num_key_value_heads: 4, intermediate_size: 18432, num_hidden_layers: 32}"},
    {"CohereForAI/c4ai-command-r-v01", 34980831232, "{model_type: cohere}"},
    {"CohereForAI/c4ai-command-r-plus", 103810674688, "{model_type: cohere, hidden_size: 12288, intermediate_size: "
     "33792, num_attention_heads: 96, num_key_value_heads: 8, num_hidden_layers: 64, use_qk_norm: true}"},
    {"CohereForAI/c4ai-command-r7b-12-2024", 8028033024, "{model_type: cohere2, hidden_size: 4096, intermediate_size: "
     "14336, num_attention_heads: 32, num_key_value_heads: 8, num_hidden_layers: 32}"},
    {"THUDM/glm-4-9b-hf", 9399951360, "{model_type: glm}"},
    {"THUDM/GLM-4-9B-0414", 9400279040, "{model_type: glm4}"},
    /* without its module for multi-token prediction */
    {"zai-org/GLM-4.5-Air", 106852245504, "{model_type: glm4_moe, head_dim: 128, attention_bias: true}"},
    {"tiiuae/falcon-7b", 6921720704, "{model_type: falcon}"},
    {"tiiuae/falcon-40b", 41303293952, "{model_type: falcon, new_decoder_architecture: true, hidden_size: 8192, "
     "n_head: 128, num_kv_heads: 8, n_layer: 60}"},
    {"tiiuae/falcon-rw-1b", 1311625216, "{model_type: falcon, alibi: true, bias: true, hidden_size: 2048, multi_query: "
     "false, num_attention_heads: 32, num_hidden_layers: 24, parallel_attn: false, vocab_size: 50304}"},
    {"mosaicml/mpt-7b", 6649286656, "{model_type: mpt, d_model: 4096, n_layers: 32, n_heads: 32, vocab_size: 50432}"},
    {"bigscience/bloom-560m", 559214592, "{model_type: bloom, n_embed: 1024, n_layer: 24, num_attention_heads: 16}"},
    {"bigscience/bloom", 176247271424, "{model_type: bloom, n_embed: 14336, n_layer: 70, num_attention_heads: 112}"},
    {"internlm/internlm2-7b", 7737708544, "{model_type: internlm2, intermediate_size: 14336, num_key_value_heads: 8, "
     "vocab_size: 92544, bias: false}"},
    {"internlm/internlm2-20b", 19861149696, "{model_type: internlm2, hidden_size: 6144, intermediate_size: 16384, "
     "num_attention_heads: 48, num_key_value_heads: 8, num_hidden_layers: 48, vocab_size: 92544}"},
    {"baidu/ERNIE-4.5-0.3B-PT", 360748032, "{model_type: ernie4_5}"},
    {"baidu/ERNIE-4.5-21B-A3B-PT", 21825437888, "{model_type: ernie4_5_moe}"},
    {"tencent/Hunyuan-7B-Instruct", 7.504e9, "{model_type: hunyuan_v1_dense, vocab_size: 128167, intermediate_size: "
     "14336, num_key_value_heads: 8, head_dim: 128, tie_word_embeddings: true}"},
    {"tencent/Hunyuan-A13B-Instruct", 80393183232, "{model_type: hunyuan_v1_moe, vocab_size: 128167, "
     "intermediate_size: 3072, num_key_value_heads: 8, head_dim: 128, num_experts: 64, moe_topk: [8, 8], "
     "moe_intermediate_size: [3072, 3072], num_shared_expert: [1, 1], use_mixed_mlp_moe: true, tie_word_embeddings: true}"},
    {"meta-llama/Llama-4-Scout-17B-16E (text)", 107769861120, "{model_type: llama4, text_config: {model_type: "
     "llama4_text}}"},
    {"meta-llama/Llama-4-Maverick-17B-128E (text)", 400.71e9, "{model_type: llama4, text_config: {num_local_experts: "
     "128, interleave_moe_layer_step: 2}}"},
    {"EleutherAI/gpt-neo-125m", 125198592, "{model_type: gpt_neo, hidden_size: 768, num_layers: 12, num_heads: 12, "
     "attention_types: [[[global, local], 6]]}"},
    {"EleutherAI/gpt-neo-2.7B", 2651307520, "{model_type: gpt_neo, hidden_size: 2560, num_layers: 32, num_heads: 20, "
     "attention_types: [[[global, local], 16]]}"},
    {"EleutherAI/gpt-j-6b", 6050882784, "{model_type: gptj}"},
    {"EleutherAI/gpt-neox-20b", 20554567680, "{model_type: gpt_neox}"},
    {"stabilityai/stablelm-3b-4e1t", 2795443200, "{model_type: stablelm}"},
    {"openai-community/gpt2-xl", 1557611200, "{model_type: gpt2, n_embd: 1600, n_layer: 48, n_head: 25}"},
    {"swiss-ai/Apertus-8B-2509", 8053338176, "{model_type: apertus, intermediate_size: 21504, num_key_value_heads: 8}"},
    {"arcee-ai/AFM-4.5B", 4.62e9, "{model_type: arcee, intermediate_size: 18432, num_hidden_layers: 36, num_attention_heads: 20, "
     "num_key_value_heads: 4, head_dim: 128, vocab_size: 128004}"},
    /* the text; 8.4 B on the model's page */
    {"mistralai/Ministral-3-8B-Base-2512", 8489553920, "{model_type: mistral3, text_config: {model_type: ministral3}}"},
    /* 7,833,409,536 with its module that predicts further tokens: a block, a product of 2 hidden x hidden and three norms */
    {"XiaomiMiMo/MiMo-7B-Base", 7833409536 - 210790400, "{model_type: mimo, intermediate_size: 11008, num_hidden_layers: 36, "
     "num_key_value_heads: 8, vocab_size: 151680}"},
    {"bigcode/starcoder", 15517456384, "{model_type: gpt_bigcode, n_embd: 6144, n_head: 48, n_layer: 40, n_inner: 24576, "
     "n_positions: 8192, vocab_size: 49152}"},
    {"inclusionAI/Ling-lite", 16801974272, "{model_type: bailing_moe, hidden_size: 2048, intermediate_size: 1408, "
     "moe_intermediate_size: 1408, num_experts: 64, num_shared_experts: 2, num_experts_per_tok: 6, num_hidden_layers: 28, "
     "num_key_value_heads: 4, use_bias: false, vocab_size: 126464}"},
    {"rednote-hilab/dots.llm1.base", 142774381696, "{model_type: dots1, hidden_size: 4096, first_k_dense_replace: 1, "
     "n_routed_experts: 128, n_shared_experts: 2, num_experts_per_tok: 6}"},
    /* the text: 316 B on the model's page */
    {"stepfun-ai/step3 (text)", 316294538240, "{model_type: step3_vl, text_config: {model_type: step3_text}}"},
    /* without its module that predicts further tokens */
    {"zai-org/GLM-4.7-Flash", 29943390976, "{model_type: glm4_moe_lite, num_hidden_layers: 47}"},
    {"Qwen/Qwen2.5-Omni-7B (text)", 7615616512, "{model_type: qwen2_5_omni, thinker_config: {text_config: {model_type: qwen2_5_omni_text}}}"},
    {"Qwen/Qwen3-Omni-30B-A3B-Instruct (text)", 30532122624 - 2.0 * 128 - 2.0 * 2048 * (151936 - 152064), "{model_type: qwen3_omni_moe, thinker_config: "
     "{text_config: {model_type: qwen3_omni_moe_text, vocab_size: 152064, intermediate_size: 768, num_hidden_layers: 48, "
     "num_attention_heads: 32, head_dim: 128}}}"},
    {"ibm-ai-platform/Bamba-9B-v2", 9.78e9, "{model_type: bamba, mamba_d_state: 128, attn_layer_indices: [9, 18, 27]}"},
    /* BertForMaskedLM: without the pooler */
    {"google-bert/bert-large-uncased", 335174458, "{model_type: bert, hidden_size: 1024, num_hidden_layers: 24, "
     "num_attention_heads: 16, intermediate_size: 4096}"},
};

#define NEMOTRON "num_attention_heads: 32, num_key_value_heads: 2, vocab_size: 131072"
#define ME6 "MEMEMEMEMEME"

/* Hybrid models, to the last digit (safetensors' counts of their pages). */
static const struct { const char *name; double parameters; const char *config; } exact[] = {
    {"nvidia/Nemotron-H-8B-Base-8K", 8100852736, "{model_type: nemotron_h, attention_head_dim: 128, hybrid_override_pattern: "
     "\"M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M-\"}"},
    {"nvidia/Nemotron-H-56B-Base-8K", 56324350464, "{model_type: nemotron_h, hidden_size: 8192, mamba_num_heads: 256, ssm_state_size: "
     "256, num_attention_heads: 64, intermediate_size: 32768, hybrid_override_pattern: \"M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-"
     "M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M-\"}"},
    {"nvidia/NVIDIA-Nemotron-Nano-9B-v2", 8888227328, "{model_type: nemotron_h, hidden_size: 4480, mamba_head_dim: 80, "
     "num_attention_heads: 40, intermediate_size: 15680, hybrid_override_pattern: "
     "\"M-M-M-MM-M-M-M*-M-M-M*-M-M-M-M*-M-M-M-M*-M-MM-M-M-M-M-M-\"}"},
    {"nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", 31577940288, "{model_type: nemotron_h, hidden_size: 2688, " NEMOTRON ", "
     "mamba_num_heads: 64, n_routed_experts: 128, num_experts_per_tok: 6, moe_intermediate_size: 1856, "
     "moe_shared_expert_intermediate_size: 3712, hybrid_override_pattern: "
     "\"MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME\"}"},
    {"nvidia/NVIDIA-Nemotron-3-Super-120B-A12B", 120668707840, "{model_type: nemotron_h, " NEMOTRON ", n_routed_experts: 512, "
     "num_experts_per_tok: 22, moe_intermediate_size: 2688, moe_latent_size: 1024, moe_shared_expert_intermediate_size: 5376, "
     "num_nextn_predict_layers: 1, hybrid_override_pattern: "
     "\"MEMEMEM*EMEMEMEM*EMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEM*EMEMEMEME\"}"},
    {"nvidia/NVIDIA-Nemotron-3-Ultra-550B-A55B", 549308993536, "{model_type: nemotron_h, hidden_size: 8192, num_attention_heads: 64, "
     "num_key_value_heads: 2, mamba_num_heads: 256, n_routed_experts: 512, num_experts_per_tok: 22, moe_intermediate_size: 5120, "
     "moe_latent_size: 2048, moe_shared_expert_intermediate_size: 10240, hybrid_override_pattern: \"" ME6 ME6 ME6 ME6 ME6 ME6 ME6 ME6
     "************\"}"},
    {"Qwen/Qwen3-Next-80B-A3B-Instruct, without its module that predicts further tokens", 79674391296, "{model_type: qwen3_next}"},
    {"Qwen/Qwen3.5-35B-A3B (text)", 34660610688, "{model_type: qwen3_5_moe, text_config: {model_type: qwen3_5_moe_text}}"},
    {"Qwen/Qwen3.5-27B (text)", 26895998464, "{model_type: qwen3_5, text_config: {model_type: qwen3_5_text, hidden_size: 5120, "
     "intermediate_size: 17408, linear_num_value_heads: 48, num_attention_heads: 24, num_hidden_layers: 64}}"},
    {"moonshotai/Kimi-Linear-48B-A3B-Base", 49122681728, "{model_type: kimi_linear, hidden_size: 2304, intermediate_size: 9216, "
     "num_hidden_layers: 27, head_dim: 72, num_experts: 256, num_experts_per_token: 8, num_shared_experts: 1, "
     "moe_intermediate_size: 1024, first_k_dense_replace: 1, kv_lora_rank: 512, qk_nope_head_dim: 128, qk_rope_head_dim: 64, "
     "v_head_dim: 128, model_max_length: 1048576, linear_attn_config: {full_attn_layers: [4, 8, 12, 16, 20, 24, 27], kda_layers: "
     "[1, 2, 3, 5, 6, 7, 9, 10, 11, 13, 14, 15, 17, 18, 19, 21, 22, 23, 25, 26], num_heads: 32, head_dim: 128, "
     "short_conv_kernel_size: 4}}"},
#define MAMBA9 "mamba, mamba, mamba, mamba, mamba, mamba, mamba, mamba, mamba, attention"
#define GRANITE "model_type: granitemoehybrid, num_hidden_layers: 40, tie_word_embeddings: true, vocab_size: 100352, mamba_d_state: 128, " \
                "mamba_d_head: 64, layer_types: [" MAMBA9 ", " MAMBA9 ", " MAMBA9 ", " MAMBA9 "]"
    {"ibm-granite/granite-4.0-h-small", 32207337984, "{" GRANITE ", hidden_size: 4096, intermediate_size: 768, num_key_value_heads: 8, "
     "num_local_experts: 72, num_experts_per_tok: 10, shared_intermediate_size: 1536, mamba_n_heads: 128}"},
    {"ibm-granite/granite-4.0-h-tiny", 6939037248, "{" GRANITE ", hidden_size: 1536, intermediate_size: 512, num_attention_heads: 12, "
     "num_key_value_heads: 4, num_local_experts: 64, num_experts_per_tok: 6, shared_intermediate_size: 1024, mamba_n_heads: 48}"},
    {"ibm-granite/granite-4.0-h-micro", 3191396096, "{" GRANITE ", hidden_size: 2048, intermediate_size: 8192, num_key_value_heads: 8, "
     "num_local_experts: 0, num_experts_per_tok: 0, shared_intermediate_size: 8192, mamba_n_heads: 64}"},
    {"MiniMaxAI/MiniMax-Text-01", 456089655296, "{model_type: minimax_text_01, attn_type_list: [0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, "
     "1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, "
     "0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1], head_dim: 128, hidden_size: 6144, intermediate_size: 9216, "
     "num_attention_heads: 64, num_hidden_layers: 80, num_local_experts: 32, vocab_size: 200064, shared_intermediate_size: 0}"},
    /* safetensors' count but for the buffer of 514 positions that it holds */
    {"FacebookAI/roberta-base", 124697433, "{model_type: roberta, max_position_embeddings: 514, type_vocab_size: 1}"},
    {"FacebookAI/roberta-large", 355412057, "{model_type: roberta, max_position_embeddings: 514, type_vocab_size: 1, hidden_size: 1024, "
     "num_hidden_layers: 24, num_attention_heads: 16, intermediate_size: 4096}"},
    {"FacebookAI/xlm-roberta-base", 278295186, "{model_type: xlm-roberta, max_position_embeddings: 514, type_vocab_size: 1, vocab_size: "
     "250002}"},
    {"answerdotai/ModernBERT-base", 149655232, "{model_type: modernbert}"},
    {"answerdotai/ModernBERT-large", 395881664, "{model_type: modernbert, hidden_size: 1024, intermediate_size: 2624, num_hidden_layers: "
     "28, num_attention_heads: 16}"},
    {"google/vit-base-patch16-224", 86567656, "{model_type: vit, num_labels: 1000}"},
    {"google/vit-large-patch16-224", 304326632, "{model_type: vit, num_labels: 1000, hidden_size: 1024, num_hidden_layers: 24, "
     "num_attention_heads: 16, intermediate_size: 4096}"},
    {"facebook/deit-base-distilled-patch16-224", 87338192, "{model_type: deit, architectures: "
     "[DeiTForImageClassificationWithTeacher], num_labels: 1000}"},
    /* trainable_params of fusion_bench (CLIPVisionModel) */
    {"openai/clip-vit-large-patch14 (images)", 303179776, "{model_type: clip, vision_config: {model_type: clip_vision_model, "
     "hidden_size: 1024, intermediate_size: 4096, num_hidden_layers: 24, num_attention_heads: 16, patch_size: 14}}"},
    /* all of it has 427,616,513, both projections and the temperature included */
    {"openai/clip-vit-large-patch14 (text)", 427616513 - 303179776 - 1024 * 768 - 768 * 768 - 1, "{model_type: clip_text_model, "
     "hidden_size: 768, intermediate_size: 3072, num_attention_heads: 12}"},
    {"google-t5/t5-base", 222903552, "{model_type: t5, d_model: 768, d_ff: 3072, num_layers: 12, num_heads: 12, is_encoder_decoder: true}"},
    {"google-t5/t5-large", 737668096, "{model_type: t5, d_model: 1024, d_ff: 4096, num_layers: 24, num_heads: 16}"},
    {"google-t5/t5-11b", 11307321344, "{model_type: t5, d_model: 1024, d_kv: 128, d_ff: 65536, num_layers: 24, num_heads: 128}"},
    {"google/t5-v1_1-xxl", 11135332352, "{model_type: t5, d_model: 4096, d_ff: 10240, num_layers: 24, num_decoder_layers: 24, num_heads: "
     "64, feed_forward_proj: gated-gelu, tie_word_embeddings: false}"},
    {"google/mt5-small", 300176768, "{model_type: mt5}"},
    {"openai/whisper-large-v2", 1543304960, "{model_type: whisper, d_model: 1280, encoder_layers: 32, decoder_layers: 32, "
     "encoder_attention_heads: 20, decoder_attention_heads: 20, encoder_ffn_dim: 5120, decoder_ffn_dim: 5120}"},
    {"openai/whisper-tiny", 37760640, "{model_type: whisper}"},
};

static void parameters(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(published); i++) {
        struct model model = read_config(published[i].config);
        double counted = model_parameters(&model);

        if (fabs(counted / published[i].parameters - 1) > 0.0002)
            fail_msg("%s: %.0f parameters, published are %.0f", published[i].name, counted, published[i].parameters);
    }
}

static void exact_parameters(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(exact); i++) {
        struct model model = read_config(exact[i].config);

        if (model_parameters(&model) != exact[i].parameters)
            fail_msg("%s: %.0f parameters, published are %.0f", exact[i].name, model_parameters(&model), exact[i].parameters);
    }
}

/* Of Qwen3-Next with its module that predicts further tokens, which is like the last block: to the last digit too. */
static void predicting(void **state)
{
    struct model model = read_config("{model_type: qwen3_next}");

    (void)state;
    model = load_good(arena_printf(&arena, "{hf_config: %s, with: {mtp: 1}}", path));
    assert_true(model_parameters(&model) == 81324862720);
}

static bool names(const char *config, const char *type)
{
    return strstr(config, arena_printf(&arena, "model_type: %s,", type)) || strstr(config, arena_printf(&arena, "model_type: %s}", type));
}

static bool is_published(const char *type)
{
    for (size_t i = 0; i < COUNT(published); i++)
        if (names(published[i].config, type))
            return true;
    for (size_t i = 0; i < COUNT(exact); i++)
        if (names(exact[i].config, type))
            return true;
    return false;
}

/* No row of the table is without a published number, and each says what the table's head lists and what can be read. */
static void all_types(void **state)
{
    static const char known[] = "also whole class base fixed keys refused linear halves full chunked experts derive defaults";
    struct error err = {0};
    struct hf_reading reading = {.arena = &arena, .err = &err};
    const struct node *types;

    (void)state;
    assert_int_equal(hf_table(&reading), 0);
    types = node_get(reading.table, "types");
    for (size_t i = 0; i < types->count; i++) {
        const struct node *also = node_get(types->items[i], "also");
        bool found = is_published(types->keys[i]);

        for (size_t k = 0; also && k < also->count; k++)
            found |= is_published(also->items[k]->text);
        if (!found)
            fail_msg("%s: no published number", types->keys[i]);
        for (size_t k = 0; k < types->items[i]->count; k++)
            if (!word_in(known, types->items[i]->keys[k]))
                fail_msg("%s: %s", types->keys[i], types->items[i]->keys[k]);
        reading.family = types->items[i];
        reading.file = reading.whole = reading.config = reading.shape = node_mapping(&arena);
        assert_int_equal(hf_family(&reading), 0);
        hf_derive(&reading);
        assert_int_equal(err.count, 0);
        assert_non_null(node_get(node_get(reading.table, "bases"), hf_said(&reading, "base")));
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_teardown(name, forget)
    const struct CMUnitTest tests[] = {TEST(parameters), TEST(exact_parameters), TEST(predicting), TEST(all_types)};

    return cmocka_run_group_tests(tests, make_file, drop_file);
}
