/* What a reader of results should know of a config.json: what it leaves to its class, and what is not modelled. */
#include "huggingface/hf_family.h"

#include <string.h>

#include "base/base.h"
#include "config/field.h"

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
    for (const struct hf_rule *rule = reading->common; rule->key; rule++)
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

        for (const struct hf_rule *rule = reading->common; rule->key; rule++)
            to = strcmp(rule->key, key) ? to : rule->to;
        for (const struct hf_rule *rule = reading->own; rule->key; rule++)
            to = strcmp(rule->key, key) ? to : rule->to;
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
    const struct node *uncounted = node_get(reading->table, "uncounted");
    const char *note = NULL, *list = NULL, *defaults = left_out(reading);

    if (reading->part)
        note = arena_printf(arena, "of config.json's model the part in %s alone is modelled", reading->part);
    else if (hf_is_on(node_get(reading->whole, "vision_config")))
        note = "of config.json's model the part that computes text alone is modelled";
    for (size_t i = 0; i < uncounted->count; i++)
        if (hf_is_on(node_get(reading->config, uncounted->keys[i])) || hf_is_on(node_get(reading->whole, uncounted->keys[i])) ||
            hf_is_on(node_get(node_get(reading->config, "attn_config"), uncounted->keys[i])))
            list = joined(arena, list, uncounted->items[i]->text, ", ");
    if (list)
        note = joined(arena, note, arena_printf(arena, "config.json says %s: not modelled; times and memory are those "
                                                "of a model without", list), "; ");
    if (defaults)
        note = joined(arena, note, arena_printf(arena, "config.json leaves out what Transformers' %s defaults to: %s",
                                             hf_said(reading, "class"), defaults), "; ");
    return note;
}
