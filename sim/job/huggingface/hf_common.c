/* What all classes share: keys that mean the same in each, and how values are read and put. */
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "config/conf.h"
#include "huggingface/hf_family.h"

/* Keys that mean the same in every class that has them. */
const struct hf_rule common_rules[] = {
    {"num_hidden_layers", "layers", NULL}, {"n_layer", "layers", NULL}, {"n_layers", "layers", NULL},
    {"num_layers", "layers", NULL},
    {"hidden_size", "hidden", NULL}, {"n_embd", "hidden", NULL}, {"n_embed", "hidden", NULL},
    {"d_model", "hidden", NULL},
    {"num_attention_heads", "heads", NULL}, {"n_head", "heads", NULL}, {"n_heads", "heads", NULL},
    {"num_heads", "heads", NULL}, {"num_key_value_heads", "kv_heads", NULL}, {"head_dim", "head_size", NULL},
    {"intermediate_size", "ffn", NULL}, {"ffn_dim", "ffn", NULL}, {"ffn_hidden_size", "ffn", NULL},
    {"n_inner", "ffn", NULL},
    {"vocab_size", "vocabulary", NULL}, {"tie_word_embeddings", "tied", NULL},
    {"max_position_embeddings", "sequence", NULL}, {"n_positions", "sequence", NULL},
    {"max_seq_len", "sequence", NULL}, {"seq_length", "sequence", NULL},
    {"attention_dropout", "attention_dropout", NULL}, {"attn_pdrop", "attention_dropout", NULL},
    {"attention_probs_dropout_prob", "attention_dropout", NULL},
    {"resid_pdrop", "dropout", NULL}, {"resid_dropout", "dropout", NULL}, {"residual_dropout", "dropout", NULL},
    {"hidden_dropout", "dropout", NULL}, {"hidden_dropout_prob", "dropout", NULL},
    {"attention_bias", "qkv_bias projection_bias", NULL}, {"mlp_bias", "bias", NULL},
    {"use_bias", "qkv_bias projection_bias bias", NULL}, {"alibi", "alibi", NULL},
    {"kv_lora_rank", "kv_rank", NULL}, {"q_lora_rank", "q_rank", NULL}, {"qk_nope_head_dim", "head_size", NULL},
    {"qk_rope_head_dim", "rope_head_size", NULL}, {"v_head_dim", "value_head_size", NULL},
    {"num_experts", "experts", NULL}, {"num_local_experts", "experts", NULL}, {"n_routed_experts", "experts", NULL},
    {"moe_num_experts", "experts", NULL},
    {"num_experts_per_tok", "experts_per_token", NULL}, {"moe_topk", "experts_per_token", NULL},
    {"moe_k", "experts_per_token", NULL}, {"moe_intermediate_size", "expert_ffn", NULL},
    {"n_shared_experts", "shared_experts", NULL}, {"moe_num_shared_experts", "shared_experts", NULL},
    {"shared_expert_intermediate_size", "shared_ffn", NULL}, {"swiglu_limit", "swiglu_limit", NULL},
    {"moe_shared_expert_intermediate_size", "shared_ffn", NULL}, {"moe_latent_size", "expert_latent", NULL},
    {"num_experts_per_token", "experts_per_token", NULL}, {"num_shared_experts", "shared_experts", NULL},
    {"model_max_length", "sequence", NULL},
    {"mamba_num_heads", "mamba.heads", NULL}, {"mamba_n_heads", "mamba.heads", NULL},
    {"mamba_head_dim", "mamba.head_size", NULL}, {"ssm_state_size", "mamba.state", NULL},
    {"mamba_d_state", "mamba.state", NULL}, {"n_groups", "mamba.groups", NULL}, {"mamba_n_groups", "mamba.groups", NULL},
    {"conv_kernel", "mamba.conv", NULL}, {"mamba_d_conv", "mamba.conv", NULL}, {"chunk_size", "mamba.chunk", NULL},
    {"mamba_chunk_size", "mamba.chunk", NULL},
    {"linear_num_key_heads", "delta.key_heads", NULL}, {"linear_key_head_dim", "delta.key_size", NULL},
    {"linear_num_value_heads", "delta.value_heads", NULL}, {"linear_value_head_dim", "delta.value_size", NULL},
    {"linear_conv_kernel_dim", "delta.conv", NULL}, {"block_size", "linear.block", NULL},
    {NULL, NULL, NULL},
};

int hf_number(const struct hf_reading *reading, const char *key, int otherwise)
{
    const struct node *value = node_get(reading->config, key);
    char *end;
    long number;

    if (!value || value->kind != NODE_SCALAR || value->quoted)
        return otherwise;
    number = strtol(value->text, &end, 10);
    return *end || end == value->text || labs(number) > 1 << 28 ? otherwise : (int)number;
}

bool hf_true(const struct hf_reading *reading, const char *key)
{
    const struct node *value = node_get(reading->config, key);

    return value && value->kind == NODE_SCALAR && !value->quoted && !strcmp(value->text, "true");
}

bool hf_is_on(const struct node *value)
{
    bool on = false;

    if (!value || node_is_null(value))
        return false;
    if (value->kind == NODE_SCALAR)
        return strcmp(value->text, "false") && strcmp(value->text, "0");
    for (size_t i = 0; i < value->count; i++)
        on |= value->kind == NODE_MAPPING || hf_is_on(value->items[i]);
    return on;
}

const struct node *hf_inner(const struct hf_reading *reading, const char *mapping, const char *key)
{
    const struct node *inner = node_get(reading->config, mapping);

    return inner && inner->kind == NODE_MAPPING ? node_get(inner, key) : NULL;
}

void hf_put_node(struct hf_reading *reading, const char *to, const struct node *value)
{
    const char *dot = strchr(to, '.');
    struct node *into = reading->shape;

    if (dot) {
        const char *mapping = arena_printf(reading->arena, "%.*s", (int)(dot - to), to);

        into = node_get(reading->shape, mapping);
        if (!into) {
            into = node_mapping(reading->arena);
            into->loc = reading->file->loc;
            node_put(reading->arena, reading->shape, mapping, into);
        }
        to = dot + 1;
    }
    node_put(reading->arena, into, to, (struct node *)(uintptr_t)value);
}

/* Values that nobody wrote stand where the configuration begins. */
void hf_put(struct hf_reading *reading, const char *to, const char *value)
{
    struct node *node = node_scalar(reading->arena, value, false);

    node->loc = reading->file->loc;
    hf_put_node(reading, to, node);
}

void hf_put_number(struct hf_reading *reading, const char *to, double value)
{
    hf_put(reading, to, arena_printf(reading->arena, "%.0f", value));
}
