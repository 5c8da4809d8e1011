/* The keys of a transformer's shape, the defaults that depend on other keys, and checks that values fit together. */
#include "model/transformer.h"

#include <stddef.h>

const char *const norm_names[] = ENUM_NAMES(NORMS);
const char *const mlp_names[] = ENUM_NAMES(MLPS);
const char *const head_names[] = ENUM_NAMES(HEADS);

enum { MAX_LAYERS = 100000, MAX_WIDTH = 1 << 24, MAX_SEQUENCE = 1 << 28 };

#define AT(member) .offset = offsetof(struct transformer, member)
static const struct field transformer_fields[] = {
    {"layers", FIELD_INT, AT(layers), .brief = "number of blocks", .required = true, .min = 1,
     .max = MAX_LAYERS},
    {"hidden", FIELD_INT, AT(hidden), .brief = "width of the hidden states", .required = true, .min = 1,
     .max = MAX_WIDTH / 4},
    {"heads", FIELD_INT, AT(heads), .brief = "number of attention heads", .required = true, .min = 1,
     .max = MAX_WIDTH},
    {"kv_heads", FIELD_INT, AT(kv_heads), .brief = "number of heads of keys and values; left out: as heads", .min = 1,
     .max = MAX_WIDTH},
    {"head_size", FIELD_INT, AT(head_size), .brief = "width of a head; left out: hidden / heads", .min = 1,
     .max = MAX_WIDTH},
    {"ffn", FIELD_INT, AT(ffn), .brief = "width inside the MLP; left out: 4 x hidden", .min = 1, .max = MAX_WIDTH},
    {"sequence", FIELD_INT, AT(sequence), .brief = "tokens per sample", .required = true, .min = 1,
     .max = MAX_SEQUENCE},
    {"vocabulary", FIELD_INT, AT(vocabulary), .required = true, .min = 1, .max = MAX_SEQUENCE,
     .brief = "number of tokens in the vocabulary; if the tensor degree does not divide it, and with fused_kernels in "
              "the output layer's product, it is padded to a multiple of 128 x tensor, as in Megatron-LM"},
    {"positions", FIELD_INT, AT(positions),
     .brief = "number of learned position embeddings; 0: rotary positions; left out: as sequence", .min = 0,
     .max = MAX_SEQUENCE},
    {"token_types", FIELD_INT, AT(token_types), .brief = "number of learned segment embeddings (BERT)",
     .fallback = "0", .min = 0, .max = MAX_WIDTH},
    {"norm", FIELD_CHOICE, AT(norm), .brief = "kind of normalisation", .fallback = "layernorm", .choices = norm_names},
    {"mlp", FIELD_CHOICE, AT(mlp), .brief = "kind of MLP: gelu has two matrix products, swiglu three",
     .fallback = "gelu", .choices = mlp_names},
    {"qkv_bias", FIELD_BOOL, AT(qkv_bias), .brief = "queries, keys and values have biases", .fallback = "true"},
    {"bias", FIELD_BOOL, AT(bias), .brief = "the projection and the MLP have biases", .fallback = "true"},
    {"tied", FIELD_BOOL, AT(tied), .brief = "the output layer shares the embedding's weights", .fallback = "true"},
    {"final_norm", FIELD_BOOL, AT(final_norm), .brief = "a norm after the last block", .fallback = "true"},
    {"embedding_norm", FIELD_BOOL, AT(embedding_norm), .brief = "a norm after the embeddings (BERT)",
     .fallback = "false"},
    {"causal", FIELD_BOOL, AT(causal), .fallback = "true",
     .brief = "the model is a decoder: fused attention and softmax skip the scores above the diagonal, matrix products "
              "compute them; model FLOPs include them, hardware FLOPs only if they are computed"},
    {"head", FIELD_CHOICE, AT(head), .brief = "the output layer after the last block", .fallback = "language-model",
     .choices = head_names},
    {"dropout", FIELD_QUANTITY, AT(dropout), .brief = "dropout probability; 0: no masks are kept", .fallback = "0.1",
     .unit = UNIT_NUMBER, .min = 0, .max = 0.99},
    {"attention_dropout", FIELD_QUANTITY, AT(attention_dropout),
     .brief = "dropout probability of the attention probabilities; left out: as dropout", .unit = UNIT_NUMBER,
     .min = 0, .max = 0.99},
    {"flash_attention", FIELD_BOOL, AT(flash_attention), .brief = "fused attention, which does not store the scores",
     .fallback = "false"},
    {"fused_qkv", FIELD_BOOL, AT(fused_qkv),
     .brief = "one product computes queries, keys and values; false: one product for each", .fallback = "true"},
    {"fused_kernels", FIELD_BOOL, AT(fused_kernels), .fallback = "true",
     .brief = "scale and mask are part of the softmax, dropout is part of the residual sum, and RMSNorm, SwiGLU and "
              "rotation are one kernel each, as in Megatron-LM; false: one kernel per operation, and copies of "
              "queries, keys and values, as in plain PyTorch"},
    {"softmax_in_fours", FIELD_BOOL, AT(softmax_in_fours), .fallback = "false",
     .brief = "the softmax is fused only if micro-batch x heads of a GPU is a multiple of 4, else it is PyTorch's in "
              "fp32, as in Megatron-LM without flash attention"},
    {"fused_norm", FIELD_BOOL, AT(fused_norm),
     .brief = "RMSNorm is one kernel, whatever fused_kernels is (Apex, Triton); left out: as fused_kernels"},
    {"fused_bias", FIELD_BOOL, AT(fused_bias),
     .brief = "products add their biases (PyTorch since 1.12, Transformer Engine, flash-attn); false: separate kernels "
              "do (PyTorch before 1.12, Megatron-LM's layers); left out: true if fused_kernels is false"},
    {"kv_rank", FIELD_INT, AT(kv_rank), .min = 1, .max = MAX_WIDTH,
     .brief = "latent attention (without biases of its inputs): width of the compressed keys and values; left out: "
              "attention is not latent"},
    {"q_rank", FIELD_INT, AT(q_rank), .min = 1, .max = MAX_WIDTH,
     .brief = "latent attention: width of the compressed queries; left out: queries are not compressed"},
    {"rope_head_size", FIELD_INT, AT(rope_head_size), .min = 0, .max = MAX_WIDTH,
     .brief = "latent attention: width of the rotated part that queries and keys have in addition to head_size"},
    {"value_head_size", FIELD_INT, AT(value_head_size), .min = 1, .max = MAX_WIDTH,
     .brief = "latent attention: width of a head's values; left out: as head_size"},
    {"experts", FIELD_INT, AT(experts), .min = 1, .max = MAX_LAYERS,
     .brief = "number of experts that replace the MLP, together with a router; left out: none"},
    {"experts_per_token", FIELD_INT, AT(experts_per_token), .min = 1, .max = MAX_LAYERS,
     .brief = "number of experts to which the router sends each token"},
    {"expert_ffn", FIELD_INT, AT(expert_ffn), .brief = "width inside one expert; left out: as ffn", .min = 1,
     .max = MAX_WIDTH},
    {"shared_experts", FIELD_INT, AT(shared_experts),
     .brief = "number of further experts, through which every token goes", .min = 0, .max = MAX_LAYERS},
    {"dense_layers", FIELD_INT, AT(dense_layers),
     .brief = "number of first blocks that have an MLP instead of experts", .min = 0, .max = MAX_LAYERS},
    {"moe_every", FIELD_INT, AT(moe_every), .min = 1, .max = MAX_LAYERS,
     .brief = "block i, counted from 0, has experts if this number divides i; left out: 1"},
};
#undef AT

const struct table transformer_table = {
    .name = "transformer", .brief = "the shape of a transformer; the defaults are GPT's",
    .fields = transformer_fields, .count = COUNT(transformer_fields), .size = sizeof(struct transformer),
    .node_offset = offsetof(struct transformer, node),
};

const struct table transformer_change_table = {
    .name = "with", .brief = "keys that replace values of the preset or of config.json",
    .fields = transformer_fields, .count = COUNT(transformer_fields), .size = sizeof(struct transformer),
    .node_offset = offsetof(struct transformer, node), .partial = true,
};

static struct loc loc_of(const struct transformer *shape, const char *key)
{
    return field_loc(&transformer_table, shape, key);
}

static bool given(const struct transformer *shape, const char *key)
{
    return field_given(&transformer_table, shape, key);
}

/* Keys that have no effect without another key. */
static void check_companions(const struct transformer *shape, struct error *err)
{
    static const struct { const char *key, *needs; } companions[] = {
        {"q_rank", "kv_rank"}, {"rope_head_size", "kv_rank"}, {"value_head_size", "kv_rank"},
        {"experts_per_token", "experts"}, {"expert_ffn", "experts"}, {"shared_experts", "experts"},
        {"dense_layers", "experts"}, {"moe_every", "experts"},
    };

    for (size_t i = 0; i < COUNT(companions); i++)
        if (given(shape, companions[i].key) && !given(shape, companions[i].needs))
            error_add(err, EXIT_INPUT, loc_of(shape, companions[i].key),
                      "transformer: %s goes with '%s', which is missing", companions[i].key, companions[i].needs);
    if (shape->kv_rank && !shape->fused_qkv)
        error_add(err, EXIT_INPUT, loc_of(shape, "fused_qkv"), "transformer: fused_qkv: has no effect here: latent "
                  "attention has products of its own for queries, keys and values; leave it out");
}

static void finish_experts(struct transformer *shape, struct error *err)
{
    check_companions(shape, err);
    if (!given(shape, "value_head_size"))
        shape->value_head_size = shape->kv_rank ? shape->head_size : 0;
    if (!shape->experts)
        return;
    if (!shape->experts_per_token)
        error_add(err, EXIT_INPUT, loc_of(shape, "experts"),
                  "transformer: missing key 'experts_per_token', which 'experts' needs");
    else if (shape->experts_per_token > shape->experts)
        error_add(err, EXIT_INPUT, loc_of(shape, "experts_per_token"),
                  "transformer: experts_per_token: %d of %d experts; expected at most all of them",
                  shape->experts_per_token, shape->experts);
    if (!given(shape, "expert_ffn"))
        shape->expert_ffn = shape->ffn;
    if (!given(shape, "moe_every"))
        shape->moe_every = 1;
}

bool transformer_has_experts(const struct transformer *shape, int block)
{
    return shape->experts > 0 && block >= shape->dense_layers && block % shape->moe_every == 0;
}

int transformer_finish(struct transformer *shape, struct error *err)
{
    int before = err->count + err->dropped;

    if (!given(shape, "kv_heads"))
        shape->kv_heads = shape->heads;
    if (!given(shape, "ffn"))
        shape->ffn = 4 * shape->hidden;
    if (!given(shape, "positions"))
        shape->positions = shape->sequence;
    if (!given(shape, "fused_norm"))
        shape->fused_norm = shape->fused_kernels;
    if (!given(shape, "fused_bias"))
        shape->fused_bias = !shape->fused_kernels;
    if (!given(shape, "attention_dropout"))
        shape->attention_dropout = shape->dropout;
    if (!given(shape, "head_size")) {
        if (shape->hidden % shape->heads)
            error_add(err, EXIT_INPUT, loc_of(shape, "heads"),
                      "transformer: heads: %d does not divide hidden %d; if that is intended, give head_size",
                      shape->heads, shape->hidden);
        shape->head_size = shape->hidden / shape->heads;
    }
    if (shape->heads % shape->kv_heads)
        error_add(err, EXIT_INPUT, loc_of(shape, "kv_heads"), "transformer: kv_heads: %d does not divide the %d heads",
                  shape->kv_heads, shape->heads);
    if (shape->positions > 0 && shape->sequence > shape->positions)
        error_add(err, EXIT_INPUT, loc_of(shape, "sequence"),
                  "transformer: sequence: %d is longer than the %d learned positions", shape->sequence,
                  shape->positions);
    finish_experts(shape, err);
    return err->count + err->dropped > before ? -1 : 0;
}
