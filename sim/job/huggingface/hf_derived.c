/* What configuration classes and models' code derive from several keys at once. */
#include "huggingface/hf_family.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "config/conf.h"

/* The value, or NULL; of a list with one for each block the first. */
static const struct node *first(struct hf_reading *reading, const char *key)
{
    const struct node *value = node_get(reading->config, key);

    return value && value->kind == NODE_SEQUENCE && value->count > 0 ? value->items[0] : value;
}

/* Embeddings of positions have two rows more than positions (OPTLearnedPositionalEmbedding: offset). A model without
 * norms before its halves has none at its end; so has one with _remove_final_layer_norm (OPTDecoder). */
void hf_opt(struct hf_reading *reading)
{
    int positions = hf_number(reading, "max_position_embeddings", 0);

    if (positions > 0)
        hf_put_number(reading, "positions", (double)positions + 2);
    if (hf_true(reading, "_remove_final_layer_norm"))
        hf_put(reading, "final_norm", "false");
}

/* FalconConfig and FalconDecoderLayer. The newer architecture has groups of heads, and a norm for attention and one for
 * the MLP of the same input, unless num_ln_in_parallel_attn is 1. The older one has one head of keys and values
 * (multi_query) or as many as of queries, and may be parallel. */
void hf_falcon(struct hf_reading *reading)
{
    bool newer = hf_true(reading, "new_decoder_architecture"), parallel = newer || hf_true(reading, "parallel_attn");
    int groups = hf_number(reading, "num_kv_heads", hf_number(reading, "n_head_kv", 0));

    if (!newer && hf_true(reading, "multi_query"))
        groups = 1;
    else if (!newer)
        groups = 0;
    if (groups > 0)
        hf_put_number(reading, "kv_heads", groups);
    if (parallel && (!newer || hf_number(reading, "num_ln_in_parallel_attn", 2) == 1))
        hf_put(reading, "parallel", "true");
}

/* MptConfig, MptAttentionConfig: positions by ALiBi, which is the default, or learned. no_bias takes the norms' biases
 * too. */
void hf_mpt(struct hf_reading *reading)
{
    struct node *attention = node_get(reading->config, "attn_config");
    struct hf_reading inner = *reading;
    const struct node *type = node_get(attention, "attn_type"), *hidden = node_get(reading->shape, "hidden");
    int groups;

    inner.config = attention ? attention : node_mapping(reading->arena);
    groups = type && type->kind == NODE_SCALAR && !strcmp(type->text, "multiquery_attention")
                 ? 1
                 : hf_number(&inner, "kv_n_heads", 0);
    if (hidden && hidden->kind == NODE_SCALAR && atoi(hidden->text) > 0)
        hf_put_number(reading, "ffn", (double)hf_number(reading, "expansion_ratio", 4) * atoi(hidden->text));
    if (groups > 0)
        hf_put_number(reading, "kv_heads", groups);
    if (node_get(attention, "attn_pdrop"))
        node_put(reading->arena, reading->shape, "attention_dropout", node_get(attention, "attn_pdrop"));
    if (!node_get(attention, "alibi") || hf_true(&inner, "alibi"))
        hf_put(reading, "alibi", "true");
    else if (hf_true(reading, "learned_pos_emb"))
        hf_put_number(reading, "positions", hf_number(reading, "max_seq_len", 0));
    if (hf_true(reading, "no_bias"))
        for (size_t i = 0; i < 3; i++)
            hf_put(reading, ((const char *const[]){"bias", "qkv_bias", "norm_bias"})[i], "false");
    if (hf_true(&inner, "qk_ln"))
        hf_put(reading, "qk_norm", "width");
}

/* GPTBigCodeConfig: one head of keys and values, or as many as of queries. */
void hf_bigcode(struct hf_reading *reading)
{
    if (hf_true(reading, "multi_query"))
        hf_put_number(reading, "kv_heads", 1);
}

/* HunYuanMoE: shared experts only with use_mixed_mlp_moe, each of intermediate_size. */
void hf_hunyuan(struct hf_reading *reading)
{
    const struct node *shared = first(reading, "num_shared_expert");
    int count = shared && shared->kind == NODE_SCALAR ? atoi(shared->text) : 1;
    int width = hf_number(reading, "intermediate_size", 0);

    if (!hf_true(reading, "use_mixed_mlp_moe") || count < 1 || count > 1000 || width < 1)
        return;
    hf_put_number(reading, "shared_experts", count);
    hf_put_number(reading, "shared_ffn", (double)count * width);
}

/* Its shared expert may have no width; then there is none. */
void hf_qwen2_moe(struct hf_reading *reading)
{
    int width = hf_number(reading, "shared_expert_intermediate_size", 0);

    if (width > 0) {
        hf_put_number(reading, "shared_experts", 1);
        hf_put(reading, "shared_gate", "true");
    }
}
