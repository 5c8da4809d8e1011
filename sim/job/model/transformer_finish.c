/* The defaults of a transformer's shape that depend on other keys, and checks that values fit together. */
#include "model/operator_internal.h"

#include <math.h>
#include <stddef.h>

#include "base/base.h"
#include "config/field.h"

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
        {"rope_head_size", "kv_rank"}, {"value_head_size", "kv_rank"},
        {"experts_per_token", "experts"}, {"expert_ffn", "experts"}, {"expert_skew", "experts"},
        {"shared_experts", "experts"}, {"shared_ffn", "shared_experts"}, {"shared_gate", "shared_experts"},
        {"dense_layers", "experts"}, {"moe_every", "experts"}, {"expert_blocks", "experts"},
        {"expert_latent", "experts"}, {"router_bias", "experts"}, {"full_every", "window"}, {"full_blocks", "window"}, {"chunked", "window"},
    };
    static const struct { const char *key, *other; } alternatives[] = {
        {"full_blocks", "full_every"}, {"nope_blocks", "nope_every"}, {"expert_blocks", "dense_layers"}, {"expert_blocks", "moe_every"},
    };

    for (size_t i = 0; i < COUNT(companions); i++)
        if (given(shape, companions[i].key) && !given(shape, companions[i].needs))
            error_clash(err, loc_of(shape, companions[i].key),
                        "transformer: %s goes with '%s', which is missing", companions[i].key, companions[i].needs);
    for (size_t i = 0; i < COUNT(alternatives); i++)
        if (given(shape, alternatives[i].key) && given(shape, alternatives[i].other))
            error_add(err, EXIT_INPUT, loc_of(shape, alternatives[i].other), "transformer: %s and %s say the same; "
                      "expected one of them", alternatives[i].key, alternatives[i].other);
}

/* Values that do not fit together. */
static void check_values(const struct transformer *shape, struct error *err)
{
    bool split = !shape->ways.fused_qkv && !field_supplied(&transformer_table, shape, "fused_qkv");
    const struct clash clashes[] = {
        {!given(shape, "head_size") && shape->hidden % shape->heads, loc_of(shape, "heads"),
         "transformer: heads: %d does not divide hidden %d; if that is intended, give head_size", {shape->heads, shape->hidden}},
        {shape->heads % shape->kv_heads, loc_of(shape, "kv_heads"), "transformer: kv_heads: %d does not divide the %d heads",
         {shape->kv_heads, shape->heads}},
        {shape->positions > 0 && shape->sequence > shape->positions, loc_of(shape, "sequence"),
         "transformer: sequence: %d is longer than the %d learned positions", {shape->sequence, shape->positions}},
        {shape->mtp > 0 && shape->head != HEAD_LANGUAGE_MODEL, loc_of(shape, "mtp"),
         "transformer: mtp: goes with 'head: language-model', whose output layer predicts tokens", {0}},
        {shape->mtp_repeats && !shape->mtp, loc_of(shape, "mtp_repeats"),
         "transformer: mtp_repeats: goes with 'mtp', and there is none", {0}},
        {shape->nope_every && shape->positions, loc_of(shape, "nope_every"),
         "transformer: nope_every: goes with 'positions: 0', found %d learned positions", {shape->positions}},
        {shape->nope_blocks.node && shape->positions, loc_of(shape, "nope_blocks"),
         "transformer: nope_blocks: goes with 'positions: 0', found %d learned positions", {shape->positions}},
        {shape->alibi && shape->positions > 0, loc_of(shape, "alibi"),
         "transformer: alibi: goes with 'positions: 0', found %d learned positions", {shape->positions}},
        {shape->key_bias && !shape->qkv_bias, loc_of(shape, "key_bias"),
         "transformer: key_bias: goes with 'qkv_bias: true'; expected false, or none", {0}},
        {shape->qk_norm && shape->kv_rank, loc_of(shape, "qk_norm"),
         "transformer: qk_norm: does not go with latent attention, whose latent vectors have norms; leave it out", {0}},
        {shape->q_rank && shape->attention_gate, loc_of(shape, "attention_gate"),
         "transformer: attention_gate: does not go with q_rank; leave it out", {0}},
        {shape->parallel && shape->post_norms, loc_of(shape, "post_norms"),
         "transformer: post_norms: does not go with parallel", {0}},
        {shape->kv_rank && split, loc_of(shape, "fused_qkv"),
         "software: fused_qkv: has no effect here: latent attention has GEMMs of its own for queries, keys and values; leave it "
         "out", {0}},
        {shape->experts && shape->experts_per_token > shape->experts, loc_of(shape, "experts_per_token"),
         "transformer: experts_per_token: %d of %d experts; expected at most all of them",
         {shape->experts_per_token, shape->experts}},
    };

    clashes_add(err, clashes, COUNT(clashes));
}

/* Patches and learned tokens are the sequence, and there is no vocabulary. */
static void finish_vision(struct transformer *shape, struct error *err)
{
    struct vision *vision = shape->vision;
    bool classifies = shape->head == HEAD_CLASSIFIER, said = vision && given(shape, "sequence");
    bool narrow = given(shape, "embedding_size") && shape->embedding_size != shape->hidden;
    int classifiers = vision ? vision->classifiers : 0;
    enum { MOST = 1 << 28 };         /* as of a text */
    double side = vision ? vision->image / vision->patch : 0, count = vision ? vision->tokens + side * side : 0;
    int tokens = (int)fmin(count, MOST);
    const struct clash clashes[] = {
        {vision && vision->image % vision->patch, loc_of(shape, "vision"),
         "transformer: vision: patches of %d pixels do not divide an image of %d", {vision ? vision->patch : 0, vision ? vision->image : 0}},
        {count > MOST, loc_of(shape, "vision"), "transformer: vision: an image has more than %d patches", {MOST}},
        {said && shape->sequence != tokens, loc_of(shape, "sequence"),
         "transformer: sequence: %d, but the patches and learned tokens of 'vision' are %d; leave it out", {shape->sequence, tokens}},
        {vision && given(shape, "causal") && shape->causal, loc_of(shape, "causal"),
         "transformer: causal: patches of an image see each other; expected false, or no 'vision'", {0}},
        {vision && !classifies && shape->head != HEAD_NONE, loc_of(shape, "head"),
         "transformer: head: an image has no next token; expected 'head: classifier' or 'head: none' beside 'vision'", {0}},
#define OF_TEXT(key) loc_of(shape, key), "transformer: " key ": goes with a text, not with 'vision'; leave it out", {0}
        {vision && shape->vocabulary, OF_TEXT("vocabulary")},
        {vision && shape->token_types, OF_TEXT("token_types")},
        {vision && narrow, OF_TEXT("embedding_size")},
        {vision && given(shape, "tied") && shape->tied, OF_TEXT("tied")},
#undef OF_TEXT
        {!vision && !shape->vocabulary, loc_of(shape, "vocabulary"), "transformer: vocabulary: 0 tokens; expected 1 or more", {0}},
        {classifies && (!vision || !vision->tokens), loc_of(shape, "head"),
         "transformer: head: a classifier reads the learned tokens of 'vision'; expected it, with one token at least", {0}},
        {vision && classifiers > vision->tokens, loc_of(shape, "vision"),
         "transformer: vision: %d classifiers for %d learned tokens; expected at most one each", {classifiers, vision ? vision->tokens : 0}},
        {classifies && !given(shape, "classes"), loc_of(shape, "head"),
         "transformer: head: a classifier needs the key 'classes'", {0}},
        {!classifies && given(shape, "classes"), loc_of(shape, "classes"),
         "transformer: classes: goes with 'head: classifier'", {0}},
    };

    if (clashes_add(err, clashes, COUNT(clashes)) || !vision)
        return;
    vision->classifiers = classifiers ? classifiers : vision->tokens;
    shape->sequence = tokens;
    shape->tied = shape->causal = false;
}

/* What the two sides of an encoder-decoder cannot be. */
static void check_encoder(const struct transformer *shape, struct error *err)
{
#define TWO_SIDES(key) loc_of(shape, key), "transformer: " key ": does not go with an encoder; leave it out", {0}
    const struct clash clashes[] = {
        {!shape->causal, loc_of(shape, "causal"), "transformer: causal: the blocks beside 'encoder' are a decoder's; expected true", {0}},
        {shape->head != HEAD_LANGUAGE_MODEL && shape->head != HEAD_NONE, TWO_SIDES("head")},
        {shape->pattern, TWO_SIDES("pattern")},
        {shape->experts, TWO_SIDES("experts")},
        {shape->kv_rank, TWO_SIDES("kv_rank")},
        {shape->q_rank, TWO_SIDES("q_rank")},
        {shape->mtp, TWO_SIDES("mtp")},
        {shape->window, TWO_SIDES("window")},
        {shape->parallel, TWO_SIDES("parallel")},
        {shape->post_norms, TWO_SIDES("post_norms")},
        {shape->attention_gate, TWO_SIDES("attention_gate")},
        {shape->token_types, TWO_SIDES("token_types")},
        {shape->embedding_size != shape->hidden, TWO_SIDES("embedding_size")},
        {shape->vision, TWO_SIDES("vision")},
        {shape->kv_heads != shape->heads, loc_of(shape, "kv_heads"),
         "transformer: kv_heads: cross attention has as many heads of keys and values as of queries; expected %d", {shape->heads}},
    };
#undef TWO_SIDES

    clashes_add(err, clashes, COUNT(clashes));
}

static void check_relative(const struct transformer *shape, struct error *err)
{
    bool fused = shape->ways.flash_attention && !field_supplied(&transformer_table, shape, "flash_attention");
    const struct clash biases[] = {
        {shape->positions > 0, loc_of(shape, "relative_positions"),
         "transformer: relative_positions: goes with 'positions: 0', found %d learned positions", {shape->positions}},
        {shape->alibi, loc_of(shape, "alibi"), "transformer: alibi: does not go with relative_positions; leave it out", {0}},
        {shape->kv_rank, loc_of(shape, "kv_rank"), "transformer: kv_rank: does not go with relative_positions; leave it out", {0}},
        {fused, loc_of(shape, "flash_attention"),
         "transformer: flash_attention: fused attention has no table of biases (relative_positions); expected false", {0}},
    };

    clashes_add(err, biases, COUNT(biases));
}

static void finish_experts(struct transformer *shape, struct error *err)
{
    check_companions(shape, err);
    if (!given(shape, "value_head_size"))
        shape->value_head_size = shape->kv_rank ? shape->head_size : 0;
    if (!shape->experts)
        return;
    if (!given(shape, "expert_skew"))
        shape->expert_skew = 0;
    if (!shape->experts_per_token)
        error_add(err, EXIT_INPUT, loc_of(shape, "experts"),
                  "transformer: missing key 'experts_per_token', which 'experts' needs");
    if (!given(shape, "expert_ffn"))
        shape->expert_ffn = shape->ffn;
    if (!given(shape, "moe_every"))
        shape->moe_every = 1;
    if (!given(shape, "expert_latent"))
        shape->expert_latent = 0;
    if (!given(shape, "shared_ffn"))
        shape->shared_ffn = shape->shared_experts * shape->expert_ffn;
}

int transformer_finish(struct transformer *shape, struct error *err)
{
    int before = err->count + err->dropped;

    pattern_finish(shape, err);
    if (err->count + err->dropped > before)
        return -1;
    if (shape->vision || shape->head == HEAD_CLASSIFIER || shape->classes || !shape->vocabulary)
        finish_vision(shape, err);
    if (err->count + err->dropped > before)
        return -1;
    if (shape->pattern && !given(shape, "heads"))
        shape->heads = 1;
    if (!given(shape, "kv_heads"))
        shape->kv_heads = shape->heads;
    if (!given(shape, "embedding_size"))
        shape->embedding_size = shape->hidden;
    if (!given(shape, "norm_bias"))
        shape->norm_bias = shape->norm == NORM_LAYERNORM;
    if (!given(shape, "projection_bias"))
        shape->projection_bias = shape->bias;
    shape->keys_biased = given(shape, "key_bias") ? shape->key_bias : shape->qkv_bias;
    if (!given(shape, "transform_bias"))
        shape->transform_bias = shape->head == HEAD_MASKED_LANGUAGE_MODEL;
    if (!given(shape, "ffn"))
        shape->ffn = 4 * shape->hidden;
    if (!given(shape, "positions"))
        shape->positions = shape->sequence;
    if (!given(shape, "fused_norm"))
        shape->ways.fused_norm = shape->ways.fused_kernels;
    if (!given(shape, "fused_gate"))
        shape->ways.fused_gate = shape->ways.fused_qkv;
    if (!given(shape, "rotary"))
        shape->ways.rotary = shape->ways.fused_kernels ? ROTARY_FUSED : ROTARY_COMPLEX;
    if (!given(shape, "repeated_groups"))
        shape->ways.repeated_groups = !shape->ways.fused_kernels;
    if (!given(shape, "fused_clamp"))
        shape->ways.fused_clamp = shape->ways.fused_kernels && shape->ways.fused_experts;
    if (!given(shape, "fused_bias"))
        shape->ways.fused_bias = !shape->ways.fused_kernels;
    if (!given(shape, "attention_dropout"))
        shape->attention_dropout = shape->dropout;
    if (!given(shape, "head_size"))
        shape->head_size = shape->hidden / shape->heads;
    check_values(shape, err);
    if (shape->encoder)
        check_encoder(shape, err);
    if (shape->relative_positions)
        check_relative(shape, err);
    finish_experts(shape, err);
    return err->count + err->dropped > before ? -1 : 0;
}
