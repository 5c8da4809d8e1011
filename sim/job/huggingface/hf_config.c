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

/* Types whose layers are no attention and MLP. */
static const struct { const char *types, *what; } unmodelled[] = {
    {"mamba falcon_mamba jamba zamba", "Mamba-1, whose scan is no matrix product"},
    {"zamba2", "shared blocks: one block's weights serve several places"},
    {"falcon_h1", "attention and Mamba-2 side by side in a block"},
    {"minimax_m3 minimax_m3_text minimax_m3_vl", "block-sparse attention"},
    {"deepseek_v4", "compressed attention: keys and values of several tokens are one"},
    {"gemma3n gemma3n_text", "per-layer embeddings"},
    {"kimi_k3", "attention over earlier blocks' results (attn_res), and another activation"},
    {"bailing_moe_linear bailing_moe_v2_5 olmo_hybrid", "linear attention of another kind"},
    {"mamba2 plamo2", "state-space layers of another kind"},
    {"rwkv recurrent_gemma xlstm", "recurrent layers"},
    {"lfm2 lfm2_moe", "convolutions"},
    {"umt5", "a table of relative positions in every block"},
    {"longt5 led", "local attention of an encoder beside a decoder"},
    {"switch_transformers nllb-moe", "experts in an encoder and a decoder"},
};

/* The table's own text as a tree. */
static struct node *tree(struct arena *arena, const char *name, const char *text, struct error *err)
{
    struct progress *progress = arena->progress;
    struct node *root;

    arena->progress = NULL;              /* a row is never refused */
    if (conf_parse(arena, name, text, strlen(text), &root, err) < 0)
        BUG("the table's row of %s does not parse", name);
    arena->progress = progress;
    return root;
}

static const struct family *family_named(const char *type)
{
    const struct family *const tables[] = {hf_dense, hf_experts, hf_hybrids, hf_encoders};

    for (size_t i = 0; i < COUNT(tables); i++)
        for (const struct family *family = tables[i]; family->types; family++)
            if (word_in(family->types, type) || (family->whole && !strcmp(family->whole, type)))
                return family;
    return NULL;
}

static const char *supported(struct arena *arena)
{
    const struct family *const tables[] = {hf_dense, hf_experts, hf_hybrids, hf_encoders};
    const char *list = NULL;

    for (size_t i = 0; i < COUNT(tables); i++)
        for (const struct family *family = tables[i]; family->types; family++) {
            char *words = arena_strdup(arena, family->types), *rest;

            for (char *word = strtok_r(words, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
                list = list ? arena_printf(arena, "%s, %s", list, word) : word;
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
    for (size_t i = 0; text_of(type) && i < COUNT(unmodelled); i++)
        if (word_in(unmodelled[i].types, type->text)) {
            error_add(reading->err, EXIT_INPUT, type->loc, "hf_config: model_type '%s' has %s, which is not modelled; expected "
                      "attention, Mamba-2, delta nets or lightning attention, with MLPs or experts", type->text, unmodelled[i].what);
            return true;
        }
    return false;
}

/* A part may leave its model_type to the class of the whole model. */
static const struct family *family_of(struct hf_reading *reading)
{
    const struct node *own = node_get(reading->file, "model_type"), *outer = node_get(reading->whole, "model_type");
    const struct node *node = text_of(own) ? own : outer;
    const char *type = text_of(node);
    const struct family *family = type ? family_named(type) : NULL;

    if (is_unmodelled(reading, outer) || is_unmodelled(reading, own))
        return NULL;
    if (family)
        return family;
    if (!type)
        error_add(reading->err, EXIT_INPUT, reading->file->loc, "hf_config: missing key 'model_type'; supported are %s",
                  supported(reading->arena));
    else if (reading->part && !text_of(own))
        error_add(reading->err, EXIT_INPUT, reading->file->loc, "hf_config: %s has no 'model_type', and the whole's, '%s', is "
                  "not supported; expected one of %s", reading->part, type, supported(reading->arena));
    else
        error_add(reading->err, EXIT_INPUT, node->loc, "hf_config: model_type '%s' is not supported; supported are %s",
                  type, supported(reading->arena));
    return NULL;
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

static bool has_own_rule(const struct family *family, const char *key)
{
    for (size_t i = 0; i < COUNT(family->rules) && family->rules[i].key; i++)
        if (!strcmp(family->rules[i].key, key))
            return true;
    return false;
}

/* Whether the class has the key under its own name, or under another one (attribute_map in the classes) for a size that
 * each model has. */
enum known { KNOWN_NOT, KNOWN_OTHERWISE, KNOWN };

static enum known knows(const struct hf_reading *reading, const struct hf_rule *rule)
{
    if (node_get(reading->defaults, rule->key) || has_own_rule(reading->family, rule->key))
        return KNOWN;
    for (const struct hf_rule *other = common_rules; other->key; other++)
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
    const struct family *family = reading->family;

    for (enum known turn = KNOWN_NOT; turn <= KNOWN; turn++) {
        for (const struct hf_rule *rule = common_rules; rule->key; rule++)
            if (!has_own_rule(family, rule->key))
                apply(reading, rule, turn);
        for (size_t i = 0; i < COUNT(family->rules) && family->rules[i].key; i++)
            apply(reading, &family->rules[i], turn);
    }
}

/* The file must have every key without a default in its class, unless the scenario gives it. */
static void check_missing(struct hf_reading *reading)
{
    static const char *const needed[] = {"layers", "hidden", "heads", "ffn", "vocabulary", "sequence", "experts",
                                         "experts_per_token"};

    for (size_t i = 0; i < COUNT(needed); i++)
        for (const struct hf_rule *rule = common_rules; rule->key; rule++) {
            const struct node *standard = node_get(reading->defaults, rule->key);
            bool follows = !strcmp(needed[i], "ffn") && standard && node_is_null(standard);   /* 4 x hidden */
            bool useless = !node_get(reading->shape, "experts") && !strcmp(needed[i], "experts_per_token");

            /* it has none, or no block for them */
            bool dense = !strcmp(needed[i], "experts") && standard &&
                         (node_is_null(standard) || node_get(reading->config, rule->key));

            if (strcmp(rule->to, needed[i]) || !standard || follows || useless || dense ||
                has_own_rule(reading->family, rule->key) || node_get(reading->shape, needed[i]) ||
                node_get(reading->with, needed[i]))
                continue;
            error_add(reading->err, EXIT_INPUT, reading->file->loc, "hf_config: missing key '%s' (model_type %s); "
                      "expected it, or 'with: {%s: ...}' next to hf_config", rule->key,
                      text_of(node_get(reading->file, "model_type")) ? text_of(node_get(reading->file, "model_type")) :
                                                                       reading->family->types, needed[i]);
        }
}

/* What no table of a transformer checks, because other values are derived from it. */
static void check_kinds(const struct hf_reading *reading)
{
    static const struct { const char *keys, *expected; bool numbers; } kinds[] = {
        {"first_k_dense_replace moe_layer_freq decoder_sparse_step interleave_moe_layer_step moe_layer_start_index "
         "moe_layer_end_index moe_layer_interval sliding_window sliding_window_pattern _sliding_window_pattern "
         "max_window_layers no_rope_layer_interval attention_chunk_size window_size expansion_ratio d_model local_attention "
         "global_attn_every_n_layers pad_token_id num_labels encoder_attention_heads decoder_attention_heads encoder_ffn_dim decoder_ffn_dim "
         "max_seq_len max_position_embeddings num_kv_heads n_head_kv num_ln_in_parallel_attn "
         "shared_expert_intermediate_size",
         "an integer", true},
        {"use_sliding_window new_decoder_architecture parallel_attn multi_query no_bias learned_pos_emb "
         "use_mixed_mlp_moe use_qk_norm qk_layernorm _remove_final_layer_norm", "true or false", false},
    };

    for (size_t i = 0; i < COUNT(kinds); i++) {
        char *words = arena_strdup(reading->arena, kinds[i].keys), *rest;

        for (char *word = strtok_r(words, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
            const struct node *value = node_get(reading->config, word);
            bool plain = value && value->kind == NODE_SCALAR && !value->quoted;

            if (value && !(!strcmp(word, "sliding_window_pattern") && hf_pattern(reading)) && !(plain && (kinds[i].numbers ? hf_number(reading, word, INT_MIN) != INT_MIN :
                                     !strcmp(value->text, "true") || !strcmp(value->text, "false"))))
                error_add(reading->err, EXIT_INPUT, value->loc, "hf_config: %s: expected %s", word, kinds[i].expected);
        }
    }
}

static void check_refused(const struct hf_reading *reading)
{
    char *words = arena_strdup(reading->arena, reading->family->refused ? reading->family->refused : ""), *rest;

    for (char *word = strtok_r(words, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
        if (hf_is_on(node_get(reading->config, word)))
            error_add(reading->err, EXIT_INPUT, node_loc(reading->file, word), "hf_config: %s: is not modelled for %s; expected "
                      "false, or none", word, reading->family->types);
}

/* Another stack of blocks is modelled where the type always has one. */
static void check_sides(const struct hf_reading *reading)
{
    if (hf_is_on(node_get(reading->config, "is_encoder_decoder")) && !node_get(reading->shape, "encoder"))
        error_add(reading->err, EXIT_INPUT, node_loc(reading->file, "is_encoder_decoder"), "hf_config: is_encoder_decoder: of %s one "
                  "stack of blocks is modelled; expected false, or none", reading->family->types);
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
    const struct family *family = reading->family;
    struct arena *arena = reading->arena;
    struct node *fixed = tree(arena, family->class, family->fixed ? family->fixed : "{}", reading->err);
    const struct node *layers = node_get(reading->with, "layers");

    reading->defaults = tree(arena, family->class, family->defaults, reading->err);
    reading->config = configuration(reading);
    check_kinds(reading);
    reading->shape = node_merge(arena, tree(arena, family->class, family->base, reading->err), fixed);
    reading->shape->loc = reading->file->loc;
    apply_rules(reading);
    if (family->derive)
        family->derive(reading);
    layers = layers ? layers : node_get(reading->shape, "layers");
    reading->layers = text_of(layers) ? atoi(layers->text) : 0;
    if (reading->layers < 1 || reading->layers > 100000)
        reading->layers = 0;
    if (family->linear)
        hf_hybrid_pattern(reading);
    else
        hf_windows(reading);
    if (!has_experts(reading))
        drop_experts(reading);
    else if (!family->linear)
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
    reading.family = family_of(&reading);
    if (!reading.family)
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
