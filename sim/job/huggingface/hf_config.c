/* Reads a config.json. The keys that a model's class knows are translated into keys of `transformer` and keep their
 * places, so that its table checks them. */
#include "huggingface/hf_family.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "config/field.h"

/* Keys of `transformer` that go with `experts` only. */
static const char of_experts[] = "experts experts_per_token expert_ffn shared_experts shared_ffn shared_gate dense_layers "
                                 "router_bias expert_latent";

/* The types of the table, for messages. */
static const char *supported(const struct hf_reading *reading)
{
    const struct node *types = node_get(reading->table, "types");
    const char *list = NULL;

    for (size_t i = 0; i < types->count; i++) {
        const struct node *also = node_get(types->items[i], "also");

        list = list ? arena_printf(reading->arena, "%s, %s", list, types->keys[i]) : types->keys[i];
        for (size_t k = 0; also && k < also->count; k++)
            list = arena_printf(reading->arena, "%s, %s", list, also->items[k]->text);
    }
    return list;
}

static const char *text_of(const struct node *node)
{
    return node && node->kind == NODE_SCALAR ? node->text : NULL;
}

/* Reports a type whose layers are not modelled; returns whether it is one. */
static bool is_unmodelled(const struct hf_reading *reading, const struct node *type)
{
    const struct node *lists = node_get(reading->table, "unmodelled");

    for (size_t i = 0; text_of(type) && i < lists->count; i++)
        if (hf_lists(lists->items[i], type->text)) {
            error_add(reading->err, EXIT_INPUT, type->loc, "hf_config: model_type '%s' has %s, which is not modelled; expected "
                      "attention, Mamba-2, delta nets or lightning attention, with MLPs or experts", type->text, lists->keys[i]);
            return true;
        }
    return false;
}

/* A part may leave its model_type to the class of the whole model. -1: an error. */
static int find_family(struct hf_reading *reading)
{
    const struct node *own = node_get(reading->file, "model_type"), *outer = node_get(reading->whole, "model_type");
    const struct node *node = text_of(own) ? own : outer;

    if (is_unmodelled(reading, outer) || is_unmodelled(reading, own))
        return -1;
    reading->type = text_of(node);
    reading->family = reading->type ? hf_type(reading, reading->type) : NULL;
    if (reading->family)
        return hf_family(reading);
    if (!reading->type)
        return error_add(reading->err, EXIT_INPUT, reading->file->loc, "hf_config: missing key 'model_type'; supported are %s",
                         supported(reading));
    if (reading->part && !text_of(own))
        return error_add(reading->err, EXIT_INPUT, reading->file->loc, "hf_config: %s has no 'model_type', and the whole's, '%s', is "
                         "not supported; expected one of %s", reading->part, reading->type, supported(reading));
    return error_add(reading->err, EXIT_INPUT, node->loc, "hf_config: model_type '%s' is not supported; supported are %s",
                     reading->type, supported(reading));
}

/* The class's defaults, and in their place what the file says. What it says to be null has no value. */
static struct node *configuration(struct hf_reading *reading)
{
    struct arena *arena = reading->arena;
    struct node *config = node_mapping(arena);
    const struct node *parts[] = {reading->defaults, reading->file};
    struct node *tied = node_get(reading->whole, "tie_word_embeddings");

    for (size_t i = 0; i < COUNT(parts); i++)
        for (size_t k = 0; k < parts[i]->count; k++) {
            const char *key = parts[i]->keys[k];

            if (node_is_null(parts[i]->items[k]) || (i == 0 && node_get(reading->file, key)))
                continue;
            node_put(arena, config, key, parts[i]->items[k]);
        }
    if (!node_get(reading->file, "tie_word_embeddings") && tied && !node_is_null(tied))
        node_put(arena, config, "tie_word_embeddings", tied);      /* the whole's output layer is the text's */
    return config;
}

static bool has_own_rule(const struct hf_reading *reading, const char *key)
{
    for (const struct hf_rule *rule = reading->own; rule->key; rule++)
        if (!strcmp(rule->key, key))
            return true;
    return false;
}

/* Whether the class has the key under its own name, or under another one (attribute_map in the classes) for a size that
 * each model has. */
enum known { KNOWN_NOT, KNOWN_OTHERWISE, KNOWN };

static enum known knows(const struct hf_reading *reading, const struct hf_rule *rule)
{
    if (node_get(reading->defaults, rule->key) || has_own_rule(reading, rule->key))
        return KNOWN;
    for (const struct hf_rule *other = reading->common; other->key; other++)
        if (word_in("layers hidden heads experts experts_per_token", rule->to) && !strcmp(other->to, rule->to) &&
            node_get(reading->defaults, other->key))
            return KNOWN_OTHERWISE;
    return KNOWN_NOT;
}

/* A value that is said for each block must be the same for all. */
static const struct node *single(const struct hf_reading *reading, const struct hf_rule *rule, const struct node *value)
{
    if (value->kind != NODE_SEQUENCE || value->count == 0)
        return value;
    for (size_t i = 1; i < value->count; i++)
        if (!node_equal(value->items[0], value->items[i])) {
            error_add(reading->err, EXIT_INPUT, value->items[i]->loc, "hf_config: %s: layers differ, which is not "
                      "modelled; expected the same value for all", rule->key);
            break;
        }
    return value->items[0];
}

/* Sets the keys that the rule names, if that is its turn: first come the class's defaults, then what the file says under
 * other names, last what it says under the class's own. */
static void apply(struct hf_reading *reading, const struct hf_rule *rule, enum known turn)
{
    const struct node *value = node_get(reading->config, rule->key);
    char *words = arena_strdup(reading->arena, rule->to), *rest;
    enum known known = knows(reading, rule);

    if (!value || known == KNOWN_NOT || turn != (node_get(reading->file, rule->key) ? known : KNOWN_NOT))
        return;
    value = single(reading, rule, value);
    for (char *word = strtok_r(words, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        if (!rule->value)
            hf_put_node(reading, word, value);
        else if (hf_true(reading, rule->key))
            hf_put(reading, word, rule->value);
    }
}

static void apply_rules(struct hf_reading *reading)
{
    for (enum known turn = KNOWN_NOT; turn <= KNOWN; turn++) {
        for (const struct hf_rule *rule = reading->common; rule->key; rule++)
            if (!has_own_rule(reading, rule->key))
                apply(reading, rule, turn);
        for (const struct hf_rule *rule = reading->own; rule->key; rule++)
            apply(reading, rule, turn);
    }
}

/* The file must have every key without a default in its class, unless the scenario gives it. */
static void check_missing(struct hf_reading *reading)
{
    static const char *const needed[] = {"layers", "hidden", "heads", "ffn", "vocabulary", "sequence", "experts",
                                         "experts_per_token"};

    for (size_t i = 0; i < COUNT(needed); i++)
        for (const struct hf_rule *rule = reading->common; rule->key; rule++) {
            const struct node *standard = node_get(reading->defaults, rule->key);
            bool follows = !strcmp(needed[i], "ffn") && standard && node_is_null(standard);   /* 4 x hidden */
            bool useless = !node_get(reading->shape, "experts") && !strcmp(needed[i], "experts_per_token");

            /* it has none, or no block for them */
            bool dense = !strcmp(needed[i], "experts") && standard &&
                         (node_is_null(standard) || node_get(reading->config, rule->key));

            if (strcmp(rule->to, needed[i]) || !standard || follows || useless || dense ||
                has_own_rule(reading, rule->key) || node_get(reading->shape, needed[i]) ||
                node_get(reading->with, needed[i]))
                continue;
            error_add(reading->err, EXIT_INPUT, reading->file->loc, "hf_config: missing key '%s' (model_type %s); "
                      "expected it, or 'with: {%s: ...}' next to hf_config", rule->key,
                      reading->type, needed[i]);
        }
}

/* What no table of a transformer checks, because other values are derived from it. */
static void check_kinds(const struct hf_reading *reading, const char *list, bool numbers)
{
    const struct node *keys = node_get(reading->table, list);

    for (size_t i = 0; i < keys->count; i++) {
        const char *key = keys->items[i]->text;
        const struct node *value = node_get(reading->config, key);
        bool plain = value && value->kind == NODE_SCALAR && !value->quoted;

        if (value && !(!strcmp(key, "sliding_window_pattern") && hf_of_block(reading, key, 0)) &&
            !(plain && (numbers ? hf_number(reading, key, INT_MIN) != INT_MIN :
                        !strcmp(value->text, "true") || !strcmp(value->text, "false"))))
            error_add(reading->err, EXIT_INPUT, value->loc, "hf_config: %s: expected %s", key,
                      numbers ? "an integer" : "true or false");
    }
}

static void check_refused(const struct hf_reading *reading)
{
    const struct node *keys = node_get(reading->family, "refused");

    for (size_t i = 0; keys && i < keys->count; i++) {
        const struct node *value = node_at(reading->config, keys->items[i]->text);

        if (hf_is_on(value))
            error_add(reading->err, EXIT_INPUT, value->loc, "hf_config: %s: is not modelled for %s; expected "
                      "false, or none", keys->items[i]->text, reading->type);
    }
}

/* Another stack of blocks is modelled where the type always has one. */
static void check_sides(const struct hf_reading *reading)
{
    if (hf_is_on(node_get(reading->config, "is_encoder_decoder")) && !node_get(reading->shape, "encoder"))
        error_add(reading->err, EXIT_INPUT, node_loc(reading->file, "is_encoder_decoder"), "hf_config: is_encoder_decoder: of %s one "
                  "stack of blocks is modelled; expected false, or none", reading->type);
}

static bool has_experts(const struct hf_reading *reading)
{
    const char *pattern = text_of(node_get(reading->shape, "pattern"));

    return (hf_is_on(node_get(reading->shape, "experts")) || node_get(reading->with, "experts")) &&
           (!pattern || strchr(pattern, 'E'));
}

/* A model whose experts are null or 0 has none, and so has one without a block for them. */
static void drop_experts(struct hf_reading *reading)
{
    struct node *kept = node_mapping(reading->arena);

    kept->loc = reading->shape->loc;
    for (size_t i = 0; i < reading->shape->count; i++)
        if (!word_in(of_experts, reading->shape->keys[i]))
            node_put(reading->arena, kept, reading->shape->keys[i], reading->shape->items[i]);
    reading->shape = kept;
}

static void translate(struct hf_reading *reading)
{
    const struct node *base = node_get(node_get(reading->table, "bases"), hf_said(reading, "base"));
    struct node *fixed = node_get(reading->family, "fixed");
    const struct node *layers = node_get(reading->with, "layers");

    reading->config = configuration(reading);
    check_kinds(reading, "numbers", true);
    check_kinds(reading, "truths", false);
    reading->shape = node_merge(reading->arena, base, fixed ? fixed : node_mapping(reading->arena));
    reading->shape->loc = reading->file->loc;
    apply_rules(reading);
    hf_derive(reading);
    layers = layers ? layers : node_get(reading->shape, "layers");
    reading->layers = text_of(layers) ? atoi(layers->text) : 0;
    if (reading->layers < 1 || reading->layers > 100000)
        reading->layers = 0;
    if (reading->linear)
        hf_hybrid_pattern(reading);
    else
        hf_windows(reading);
    if (!has_experts(reading))
        drop_experts(reading);
    else if (!reading->linear)
        hf_expert_blocks(reading);
    check_missing(reading);
    check_refused(reading);
    check_sides(reading);
}

/* What the text_config or else the whole says of the weights' number format, by its newer or its older name. */
static const char *number_format(const struct hf_reading *reading)
{
    const struct node *const parts[] = {reading->file, reading->whole};

    for (size_t i = 0; i < COUNT(parts); i++)
        for (size_t k = 0; k < 2; k++) {
            const struct node *dtype = node_get(parts[i], k ? "torch_dtype" : "dtype");

            if (dtype && !node_is_null(dtype))
                return text_of(dtype);
        }
    return NULL;
}

/* Models that do more than text keep the transformer's keys in a mapping of its own; a thinker's is inside another one. Of the
 * two towers of CLIP the images' is meant. */
static void find_part(struct hf_reading *reading)
{
    static const char *const parts[] = {"thinker_config", "text_config", "llm_config", "language_config"};
    const char *type = text_of(node_get(reading->whole, "model_type"));
    bool images = type && !strcmp(type, "clip");

    reading->file = reading->whole;
    for (size_t i = 0; i < COUNT(parts); i++) {
        const char *name = images ? "vision_config" : parts[i];
        const struct node *part = node_get(reading->file, name);

        if (part && part->kind == NODE_MAPPING) {
            reading->file = part;
            reading->part = name;
        }
    }
}

int hf_config_of(struct arena *arena, const struct node *file, const struct node *with, struct hf_config *config,
                 struct error *err)
{
    struct hf_reading reading = {.arena = arena, .err = err, .with = with, .whole = file};
    int before = err->count + err->dropped;

    if (reading.whole->kind != NODE_MAPPING)
        return error_add(err, EXIT_INPUT, reading.whole->loc, "hf_config: expected a mapping, as in a config.json");
    find_part(&reading);
    if (hf_table(&reading) || find_family(&reading))
        return -1;
    translate(&reading);
    if (err->count + err->dropped > before)
        return -1;
    *config = (struct hf_config){reading.shape, number_format(&reading), hf_note(&reading)};
    return 0;
}

int hf_config_read(struct arena *arena, const char *path, const struct node *with, struct hf_config *config,
                   struct error *err)
{
    const struct node *file;

    return conf_shared(arena, path, &file, err) < 0 ? -1 : hf_config_of(arena, file, with, config, err);
}
