/* What a reader of results should know of a config.json: what it leaves to its class, and what is not modelled. */
#include "huggingface/hf_family.h"

#include <string.h>

#include "base/base.h"
#include "config/field.h"

/* Keys that change what is computed or what is held. A value of false, 0, null or [] does not. */
static const struct { const char *key, *what; } uncounted[] = {
    {"attn_logit_softcapping", "attn_logit_softcapping (tanh of attention scores)"},
    {"final_logit_softcapping", "final_logit_softcapping (tanh of logits)"},
    {"use_bidirectional_attention", "use_bidirectional_attention (queries see later keys: an encoder); attention is "
     "that of a decoder"},
    {"num_nextn_predict_layers", "num_nextn_predict_layers (modules that predict further tokens, with parameters, time "
     "and memory of their own; 'with: {mtp: N}' counts them)"},
    {"mtp_num_hidden_layers", "mtp_num_hidden_layers (modules that predict further tokens, with parameters, time and memory of "
     "their own; 'with: {mtp: N}' counts them)"},
    {"use_mtp", "use_mtp (modules that predict further tokens, with parameters, time and memory of their own)"},
    {"index_topk", "index_topk (an indexer chooses keys for each query: its own parameters are left out, and attention "
     "is that to all keys)"},
    {"quantization_config", "quantization_config (weights are quantized)"},
    {"clip_qkv", "clip_qkv (queries, keys and values are clamped)"},
    {"use_cla", "use_cla (blocks that share keys and values)"},
    {"add_cross_attention", "add_cross_attention (attention to another stack's output)"},
};

/* Keys of `transformer` on which the number of parameters depends. */
static const char sizes[] = "layers hidden heads kv_heads head_size ffn vocabulary experts experts_per_token "
                            "expert_ffn shared_experts shared_ffn kv_rank q_rank rope_head_size value_head_size window";

static const char *joined(struct arena *arena, const char *list, const char *item, const char *between)
{
    return list ? arena_printf(arena, "%s%s%s", list, between, item) : item;
}

/* Whether the file has any word for the key of `transformer`. */
static bool is_said(const struct hf_reading *reading, const char *to)
{
    for (const struct hf_rule *rule = common_rules; rule->key; rule++)
        if (!strcmp(rule->to, to) && node_get(reading->file, rule->key))
            return true;
    return false;
}

/* The sizes that neither the file nor the scenario says. */
static const char *left_out(const struct hf_reading *reading)
{
    const char *list = NULL;

    for (size_t i = 0; i < reading->defaults->count; i++) {
        const char *key = reading->defaults->keys[i], *to = NULL;
        const struct node *value = reading->defaults->items[i];

        for (const struct hf_rule *rule = common_rules; rule->key; rule++)
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

const char *hf_note(const struct hf_reading *reading)
{
    struct arena *arena = reading->arena;
    const char *note = NULL, *list = NULL, *defaults = left_out(reading);

    if (reading->part)
        note = arena_printf(arena, "of config.json's model the part in %s alone is modelled", reading->part);
    else if (hf_is_on(node_get(reading->whole, "vision_config")))
        note = "of config.json's model the part that computes text alone is modelled";
    for (size_t i = 0; i < COUNT(uncounted); i++)
        if (hf_is_on(node_get(reading->config, uncounted[i].key)) || hf_is_on(node_get(reading->whole, uncounted[i].key)) ||
            hf_is_on(node_get(node_get(reading->config, "attn_config"), uncounted[i].key)))
            list = joined(arena, list, uncounted[i].what, ", ");
    if (list)
        note = joined(arena, note, arena_printf(arena, "config.json says %s: not modelled; times and memory are those "
                                                "of a model without", list), "; ");
    if (defaults)
        note = joined(arena, note, arena_printf(arena, "config.json leaves out what Transformers' %s defaults to: %s",
                                             reading->family->class, defaults), "; ");
    return note;
}
