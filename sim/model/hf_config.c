/* Reads Hugging Face's config.json. The keys of each model family are translated into keys of transformer_table and
 * keep their places, so that the table checks them. Defaults are the defaults of the family's configuration class in
 * the transformers library; keys that give the model its size are required. Attention is fused for families that the
 * library gives to PyTorch's fused kernel (attn_implementation "sdpa", the default for them since version 4.36) and
 * that never ran otherwise. */
#include "model/transformer.h"

#include <string.h>

struct rule {
    const char *key;             /* in config.json */
    const char *to;              /* in transformer_table */
    bool required;
};

struct family {
    const char *name;            /* model_type */
    const char *base;            /* values that the family fixes, and defaults of keys that config.json may leave out */
    struct rule rules[24];
    const char *refused[2];      /* two switches that must be equal, because struct transformer has one for both; or one
                                    that must be false */
    const char *costs[4];        /* keys that change what is computed, and that struct transformer does not know */
};

#define DECODER_RULES \
    {"num_hidden_layers", "layers", true}, {"hidden_size", "hidden", true}, {"num_attention_heads", "heads", true}, \
    {"num_key_value_heads", "kv_heads", false}, {"head_dim", "head_size", false}, \
    {"intermediate_size", "ffn", true}, {"vocab_size", "vocabulary", true}, \
    {"max_position_embeddings", "sequence", false}, {"tie_word_embeddings", "tied", false}, \
    {"attention_dropout", "attention_dropout", false}

/* Experts as DeepSeek's configurations have them. */
#define ROUTED_RULES \
    {"n_routed_experts", "experts", true}, {"num_experts_per_tok", "experts_per_token", true}, \
    {"moe_intermediate_size", "expert_ffn", true}, {"n_shared_experts", "shared_experts", false}, \
    {"first_k_dense_replace", "dense_layers", true}, {"moe_layer_freq", "moe_every", false}
#define LATENT_RULES \
    {"qk_nope_head_dim", "head_size", true}, {"qk_rope_head_dim", "rope_head_size", true}, \
    {"v_head_dim", "value_head_size", true}, {"q_lora_rank", "q_rank", false}, {"kv_lora_rank", "kv_rank", true}, \
    ROUTED_RULES

static const struct family families[] = {
    {"llama",
     "{norm: rmsnorm, mlp: swiglu, positions: 0, tied: false, dropout: 0, attention_dropout: 0, qkv_bias: false,"
     " bias: false, sequence: 2048}",
     {DECODER_RULES, {"attention_bias", "qkv_bias", false}, {"mlp_bias", "bias", false}},
     {"attention_bias", "mlp_bias"}, {NULL}},
    {"mistral",
     "{norm: rmsnorm, mlp: swiglu, positions: 0, tied: false, dropout: 0, attention_dropout: 0, qkv_bias: false,"
     " bias: false, sequence: 131072, kv_heads: 8}",
     {DECODER_RULES, {"sliding_window", "window", false}}, {NULL}, {NULL}},
    {"mixtral",
     "{norm: rmsnorm, mlp: swiglu, positions: 0, tied: false, dropout: 0, attention_dropout: 0, qkv_bias: false,"
     " bias: false, sequence: 131072, kv_heads: 8}",
     {DECODER_RULES, {"num_local_experts", "experts", true}, {"num_experts_per_tok", "experts_per_token", true}},
     {NULL}, {NULL}},
    /* multi-token-prediction modules (num_nextn_predict_layers) of these four are left out */
    {"deepseek_v2",
     "{norm: rmsnorm, mlp: swiglu, positions: 0, tied: false, dropout: 0, attention_dropout: 0, qkv_bias: false,"
     " bias: false, sequence: 2048}",
     {DECODER_RULES, LATENT_RULES}, {"attention_bias", "mlp_bias"}, {NULL}},
    {"deepseek_v3",
     "{norm: rmsnorm, mlp: swiglu, positions: 0, tied: false, dropout: 0, attention_dropout: 0, qkv_bias: false,"
     " bias: false, sequence: 4096}",
     {DECODER_RULES, LATENT_RULES}, {"attention_bias", "mlp_bias"}, {NULL}},     /* it has no mlp_bias */
    {"kimi_k2",
     "{norm: rmsnorm, mlp: swiglu, positions: 0, tied: false, dropout: 0, attention_dropout: 0, qkv_bias: false,"
     " bias: false, sequence: 131072}",
     {DECODER_RULES, LATENT_RULES}, {"attention_bias", "mlp_bias"}, {NULL}},
    {"glm4_moe",
     "{norm: rmsnorm, mlp: swiglu, positions: 0, tied: false, dropout: 0, attention_dropout: 0, qkv_bias: false,"
     " bias: false, sequence: 131072, kv_heads: 8}",
     {DECODER_RULES, {"attention_bias", "qkv_bias", false}, ROUTED_RULES}, {NULL}, {NULL}},
    {"minimax_m2",
     "{norm: rmsnorm, mlp: swiglu, positions: 0, tied: false, dropout: 0, attention_dropout: 0, qkv_bias: false,"
     " bias: false, sequence: 196608, kv_heads: 8, head_size: 128}",
     {DECODER_RULES, {"num_local_experts", "experts", true}, {"num_experts_per_tok", "experts_per_token", true}},
     {"attention_bias", NULL}, {NULL}},
    /* norms of queries and keys (qwen3, glm4_moe, minimax_m2, olmo2, gemma3_text), norms after each half of a block
     * (gemma2, gemma3_text, olmo2) and sinks of attention (gpt_oss) are hundredths of a percent of the parameters, and
     * are left out */
    {"olmo2",
     "{norm: rmsnorm, mlp: swiglu, positions: 0, tied: false, dropout: 0, attention_dropout: 0, qkv_bias: false,"
     " bias: false, sequence: 2048}",
     {DECODER_RULES}, {"attention_bias", NULL}, {NULL}},
    {"granite",
     "{norm: rmsnorm, mlp: swiglu, positions: 0, tied: false, dropout: 0, attention_dropout: 0, qkv_bias: false,"
     " bias: false, sequence: 2048}",
     {DECODER_RULES, {"attention_bias", "qkv_bias", false}, {"mlp_bias", "bias", false}},
     {"attention_bias", "mlp_bias"}, {NULL}},
    {"smollm3",
     "{norm: rmsnorm, mlp: swiglu, positions: 0, tied: true, dropout: 0, attention_dropout: 0, qkv_bias: false,"
     " bias: false, sequence: 32768, kv_heads: 4}",
     {DECODER_RULES, {"attention_bias", "qkv_bias", false}, {"mlp_bias", "bias", false}},
     {"attention_bias", "mlp_bias"}, {"use_sliding_window"}},
    /* its squared ReLU costs what GELU costs */
    {"nemotron",
     "{norm: layernorm, mlp: gelu, positions: 0, tied: false, dropout: 0, attention_dropout: 0, qkv_bias: false,"
     " bias: false, sequence: 4096}",
     {DECODER_RULES, {"attention_bias", "qkv_bias", false}, {"mlp_bias", "bias", false}},
     {"attention_bias", "mlp_bias"}, {NULL}},
    {"starcoder2",
     "{norm: layernorm, mlp: gelu, positions: 0, tied: true, dropout: 0, attention_dropout: 0, qkv_bias: true,"
     " bias: true, sequence: 4096, kv_heads: 2}",
     {DECODER_RULES, {"use_bias", "qkv_bias", false}, {"use_bias", "bias", false},
      {"residual_dropout", "dropout", false}, {"sliding_window", "window", false}}, {NULL}, {NULL}},
    {"qwen2",
     "{norm: rmsnorm, mlp: swiglu, positions: 0, tied: false, dropout: 0, attention_dropout: 0, qkv_bias: true,"
     " bias: false, sequence: 32768, kv_heads: 32}",
     {DECODER_RULES}, {NULL}, {"use_sliding_window"}},
    {"qwen3",
     "{norm: rmsnorm, mlp: swiglu, positions: 0, tied: false, dropout: 0, attention_dropout: 0, qkv_bias: false,"
     " bias: false, sequence: 32768, kv_heads: 32, head_size: 128}",
     {DECODER_RULES}, {"attention_bias", NULL}, {"use_sliding_window"}},
    {"qwen3_moe",
     "{norm: rmsnorm, mlp: swiglu, positions: 0, tied: false, dropout: 0, attention_dropout: 0, qkv_bias: false,"
     " bias: false, sequence: 32768, kv_heads: 4, experts: 128, experts_per_token: 8, expert_ffn: 768}",
     {DECODER_RULES, {"num_experts", "experts", false}, {"num_experts_per_tok", "experts_per_token", false},
      {"moe_intermediate_size", "expert_ffn", false}, {"decoder_sparse_step", "moe_every", false}},
     {"attention_bias", NULL}, {"use_sliding_window", "mlp_only_layers"}},
    {"gemma2",
     "{norm: rmsnorm, mlp: swiglu, positions: 0, tied: true, dropout: 0, attention_dropout: 0, qkv_bias: false,"
     " bias: false, sequence: 8192, head_size: 256, window: 0, full_every: 2}",
     {DECODER_RULES, {"sliding_window", "window", false}}, {"attention_bias", NULL}, {"attn_logit_softcapping"}},
    {"gemma3_text",
     "{norm: rmsnorm, mlp: swiglu, positions: 0, tied: true, dropout: 0, attention_dropout: 0, qkv_bias: false,"
     " bias: false, sequence: 131072, head_size: 256, kv_heads: 4, window: 4096, full_every: 6}",
     {DECODER_RULES, {"sliding_window", "window", false}, {"sliding_window_pattern", "full_every", false}},
     {"attention_bias", NULL}, {"attn_logit_softcapping"}},
    {"phi3",
     "{norm: rmsnorm, mlp: swiglu, positions: 0, tied: false, dropout: 0, attention_dropout: 0, qkv_bias: false,"
     " bias: false, sequence: 4096}",
     {DECODER_RULES, {"resid_pdrop", "dropout", false}, {"sliding_window", "window", false}}, {NULL}, {NULL}},
    {"opt",
     "{sequence: 2048, positions: 2048, dropout: 0.1, attention_dropout: 0, tied: true}",
     {{"num_hidden_layers", "layers", true}, {"hidden_size", "hidden", true}, {"num_attention_heads", "heads", true},
      {"ffn_dim", "ffn", true}, {"vocab_size", "vocabulary", true}, {"max_position_embeddings", "positions", false},
      {"max_position_embeddings", "sequence", false}, {"tie_word_embeddings", "tied", false},
      {"dropout", "dropout", false}, {"attention_dropout", "attention_dropout", false},
      {"enable_bias", "bias", false}, {"enable_bias", "qkv_bias", false}}, {NULL}, {NULL}},
    {"gpt_oss",
     "{norm: rmsnorm, mlp: swiglu, positions: 0, tied: false, dropout: 0, attention_dropout: 0, qkv_bias: true,"
     " bias: true, sequence: 131072, kv_heads: 8, head_size: 64, window: 0, full_every: 2}",
     {DECODER_RULES, {"attention_bias", "qkv_bias", false}, {"attention_bias", "bias", false},
      {"num_local_experts", "experts", true}, {"num_experts_per_tok", "experts_per_token", true},
      {"swiglu_limit", "swiglu_limit", false}, {"sliding_window", "window", false}}, {NULL}, {NULL}},
    {"gpt2", "{sequence: 1024, positions: 1024, dropout: 0.1, attention_dropout: 0.1, tied: true}",
     {{"n_layer", "layers", true}, {"n_embd", "hidden", true}, {"n_head", "heads", true}, {"n_inner", "ffn", false},
      {"vocab_size", "vocabulary", true}, {"n_positions", "positions", false}, {"n_positions", "sequence", false},
      {"tie_word_embeddings", "tied", false}, {"resid_pdrop", "dropout", false},
      {"attn_pdrop", "attention_dropout", false}}, {NULL}, {NULL}},
    {"gpt_neox", "{positions: 0, sequence: 2048, dropout: 0, attention_dropout: 0, tied: false}",
     {{"num_hidden_layers", "layers", true}, {"hidden_size", "hidden", true}, {"num_attention_heads", "heads", true},
      {"intermediate_size", "ffn", true}, {"vocab_size", "vocabulary", true},
      {"max_position_embeddings", "sequence", false}, {"tie_word_embeddings", "tied", false},
      {"hidden_dropout", "dropout", false}, {"attention_dropout", "attention_dropout", false},
      {"attention_bias", "qkv_bias", false}}, {NULL}, {NULL}},
    {"bert",
     "{positions: 512, sequence: 512, token_types: 2, dropout: 0.1, attention_dropout: 0.1, tied: true,"
     " causal: false, final_norm: false, embedding_norm: true, head: masked-language-model}",
     {{"num_hidden_layers", "layers", true}, {"hidden_size", "hidden", true}, {"num_attention_heads", "heads", true},
      {"intermediate_size", "ffn", true}, {"vocab_size", "vocabulary", true},
      {"max_position_embeddings", "positions", false}, {"max_position_embeddings", "sequence", false},
      {"type_vocab_size", "token_types", false}, {"tie_word_embeddings", "tied", false},
      {"hidden_dropout_prob", "dropout", false}, {"attention_probs_dropout_prob", "attention_dropout", false}},
     {NULL}, {NULL}},
};

/* The value of a key; null counts as left out. */
static struct node *value_of(const struct node *config, const char *key)
{
    struct node *value = node_get(config, key);
    bool null = value && value->kind == NODE_SCALAR && !value->quoted &&
                (strcmp(value->text, "null") == 0 || strcmp(value->text, "~") == 0);

    return null ? NULL : value;
}

static const struct family *family_named(const struct node *type)
{
    for (size_t i = 0; type && type->kind == NODE_SCALAR && i < COUNT(families); i++)
        if (strcmp(type->text, families[i].name) == 0)
            return &families[i];
    return NULL;
}

/* The part of a model for text and images that computes text, where the whole is of no known family. */
static const struct node *text_part(const struct node *config)
{
    const struct node *text = value_of(config, "text_config");

    return text && text->kind == NODE_MAPPING && !family_named(value_of(config, "model_type")) ? text : config;
}

static const struct family *family_of(const struct node *config, struct error *err)
{
    const struct node *type = value_of(config, "model_type");
    const struct family *family = family_named(type);
    char names[512] = "";

    if (family)
        return family;
    for (size_t i = 0; i < COUNT(families); i++)
        strcat(strcat(names, i == 0 ? "" : i + 1 < COUNT(families) ? ", " : " and "), families[i].name);
    if (!type)
        error_add(err, EXIT_INPUT, config->loc, "hf_config: missing key 'model_type'; supported are %s", names);
    else
        error_add(err, EXIT_INPUT, type->loc, "hf_config: model_type '%s' is not supported; supported are %s",
                  type->kind == NODE_SCALAR ? type->text : "", names);
    return NULL;
}

static bool is_true(const struct node *config, const char *key)
{
    const struct node *value = value_of(config, key);

    return value && value->kind == NODE_SCALAR && strcmp(value->text, "true") == 0;
}

/* Applies the family's rules to the configuration; the result is a mapping for transformer_table. */
static struct node *translate(struct arena *arena, const struct family *family, const struct node *config,
                              struct error *err)
{
    int before = err->count + err->dropped;
    struct node *shape;

    if (conf_parse(arena, family->name, family->base, strlen(family->base), &shape, err) < 0)
        BUG("the base of %s does not parse", family->name);
    shape->loc = config->loc;
    for (const struct rule *rule = family->rules; rule < family->rules + COUNT(family->rules) && rule->key; rule++) {
        struct node *value = value_of(config, rule->key);

        if (value)
            node_put(arena, shape, rule->to, value);
        else if (rule->required)
            error_add(err, EXIT_INPUT, config->loc, "hf_config: missing key '%s' (model_type %s)", rule->key,
                      family->name);
    }
    if (family->refused[0] && !family->refused[1] && is_true(config, family->refused[0]))
        error_add(err, EXIT_INPUT, node_loc(config, family->refused[0]), "hf_config: %s: true, which is not supported "
                  "of %s", family->refused[0], family->name);
    if (family->refused[1] && is_true(config, family->refused[0]) != is_true(config, family->refused[1]))
        error_add(err, EXIT_INPUT, config->loc, "hf_config: %s and %s differ, which is not supported",
                  family->refused[0], family->refused[1]);
    return err->count + err->dropped > before ? NULL : shape;
}

/* The keys that change what is computed and are not counted, as a sentence; NULL: none is set. */
static const char *uncounted(struct arena *arena, const struct family *family, const struct node *config)
{
    const char *list = NULL;

    for (size_t i = 0; i < COUNT(family->costs) && family->costs[i]; i++) {
        const struct node *value = value_of(config, family->costs[i]);
        bool off = !value || (value->kind == NODE_SCALAR ? !strcmp(value->text, "false") : value->count == 0);

        if (!off)
            list = arena_printf(arena, "%s%s%s", list ? list : "", list ? ", " : "", family->costs[i]);
    }
    return list ? arena_printf(arena, "config.json says %s, which is not modelled: times and memory are those of a "
                               "model without", list) : NULL;
}

int hf_config_load(struct arena *arena, const char *path, struct transformer **shape, const char **note,
                   struct error *err)
{
    const struct node *whole, *config;
    const struct family *family;
    struct node *mapping;

    if (conf_shared(arena, path, &whole, err) < 0)
        return -1;
    if (whole->kind != NODE_MAPPING)
        return error_add(err, EXIT_INPUT, whole->loc, "hf_config: expected a mapping, as in a config.json");
    config = text_part(whole);
    family = family_of(config, err);
    mapping = family ? translate(arena, family, config, err) : NULL;
    if (!mapping)
        return -1;
    *shape = ARENA_ARRAY(arena, struct transformer, 1);
    *note = uncounted(arena, family, config);
    if (config != whole)
        *note = arena_printf(arena, "of config.json's model the part in text_config alone is modelled%s%s",
                             *note ? "; " : "", *note ? *note : "");
    if (field_parse(arena, &transformer_table, mapping, *shape, err) < 0)
        return -1;
    return transformer_finish(*shape, err);
}
