/* What a reader of results should know of a config.json: what it leaves to its class, and what is not modelled. */
#include "huggingface/hf_family.h"

#include <string.h>

#include "base/base.h"
#include "config/field.h"

/* Keys that mean the same in every class that has them. */
const struct rule common_rules[] = {
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
    {NULL, NULL, NULL},
};

/* Keys that change what is computed or what is held. A value of false, 0, null or [] does not. */
static const struct { const char *key, *what; } uncounted[] = {
    {"attn_logit_softcapping", "attn_logit_softcapping (tanh of attention scores)"},
    {"final_logit_softcapping", "final_logit_softcapping (tanh of logits)"},
    {"use_bidirectional_attention", "use_bidirectional_attention (queries see later keys: an encoder); attention is "
     "that of a decoder"},
    {"num_nextn_predict_layers", "num_nextn_predict_layers (modules that predict further tokens, with parameters, time "
     "and memory of their own)"},
    {"use_mtp", "use_mtp (modules that predict further tokens, with parameters, time and memory of their own)"},
    {"index_topk", "index_topk (an indexer chooses keys for each query: its own parameters are left out, and attention "
     "is that to all keys)"},
    {"quantization_config", "quantization_config (weights are quantized)"},
    {"clip_qkv", "clip_qkv (queries, keys and values are clamped)"},
    {"use_cla", "use_cla (blocks that share keys and values)"},
    {"is_encoder_decoder", "is_encoder_decoder (a second stack of blocks)"},
    {"add_cross_attention", "add_cross_attention (attention to another stack's output)"},
};

/* Keys of `transformer` on which the number of parameters depends. */
static const char sizes[] = "layers hidden heads kv_heads head_size ffn vocabulary experts experts_per_token "
                            "expert_ffn shared_experts shared_ffn kv_rank q_rank rope_head_size value_head_size window";

static bool is_on(const struct node *value)
{
    if (!value || node_is_null(value))
        return false;
    return value->kind != NODE_SCALAR ? value->count > 0 : strcmp(value->text, "false") && strcmp(value->text, "0");
}

static const char *joined(struct arena *arena, const char *list, const char *item, const char *between)
{
    return list ? arena_printf(arena, "%s%s%s", list, between, item) : item;
}

/* Whether the file has any word for the key of `transformer`. */
static bool is_said(const struct reading *reading, const char *to)
{
    for (const struct rule *rule = common_rules; rule->key; rule++)
        if (!strcmp(rule->to, to) && node_get(reading->file, rule->key))
            return true;
    return false;
}

/* The sizes that neither the file nor the scenario says. */
static const char *left_out(const struct reading *reading)
{
    const char *list = NULL;

    for (size_t i = 0; i < reading->defaults->count; i++) {
        const char *key = reading->defaults->keys[i], *to = NULL;
        const struct node *value = reading->defaults->items[i];

        for (const struct rule *rule = common_rules; rule->key; rule++)
            to = strcmp(rule->key, key) ? to : rule->to;
        for (size_t k = 0; k < COUNT(reading->family->rules) && reading->family->rules[k].key; k++)
            to = strcmp(reading->family->rules[k].key, key) ? to : reading->family->rules[k].to;
        to = !strcmp(key, "sliding_window") && node_get(reading->shape, "window") ? "window" : to;
        if (!to || !word_in(sizes, to) || node_is_null(value) || node_get(reading->file, key) ||
            node_get(reading->with, to) || is_said(reading, to))
            continue;
        list = joined(reading->arena, list, arena_printf(reading->arena, "%s: %s", key, value->text), ", ");
    }
    return list;
}

const char *hf_note(const struct reading *reading)
{
    struct arena *arena = reading->arena;
    const char *note = NULL, *list = NULL, *defaults = left_out(reading);

    if (reading->file != reading->whole || is_on(node_get(reading->whole, "vision_config")))
        note = reading->file != reading->whole ? "of config.json's model the part in text_config alone is modelled" :
                                                 "of config.json's model the part that computes text alone is modelled";
    for (size_t i = 0; i < COUNT(uncounted); i++)
        if (is_on(node_get(reading->config, uncounted[i].key)) || is_on(node_get(reading->whole, uncounted[i].key)) ||
            is_on(node_get(node_get(reading->config, "attn_config"), uncounted[i].key)))
            list = joined(arena, list, uncounted[i].what, ", ");
    if (node_get(reading->shape, "post_norms"))
        note = joined(arena, note, "norms after attention and MLP count as parameters, but not as time", "; ");
    if (list)
        note = joined(arena, note, arena_printf(arena, "config.json says %s: not modelled; times and memory are those "
                                                "of a model without", list), "; ");
    if (defaults)
        note = joined(arena, note, arena_printf(arena, "config.json leaves out what Transformers' %s defaults to: %s",
                                             reading->family->class, defaults), "; ");
    return note;
}
