/*
 *     in ─┬─ q ─┐
 *         ├─ k ─┼─ core ── [x gate] ── projection ── out
 *         ├─ v ─┘             │
 *         └─ [gate] ──────────┘
 *
 * One product computes Q, K and V, and its backward needs their gradients concatenated. Or there are three products, and the
 * gradients of their common input are added. The tensor group divides the heads. */
#include "model/operator.h"

static void one_product(struct operators *ops, struct tensor in)
{
    const struct cut *cut = ops->cut;
    double qkv = cut->projected, key = (qkv - cut->query) * cut->query_size / (cut->query_size + cut->value_size);
    const double parts[MATRIX_PARTS] = {cut->query + cut->gate, cut->gathers_qkv ? key : cut->key,
                                        cut->gathers_qkv ? qkv - cut->query - key : cut->values};

    product(ops, &(struct weight_product){.id = PRODUCT_QKV, .in = in, .out = qkv + cut->gate, .split = SPLIT_COLUMNS, .place = PLACE_BLOCK,
                                   .target = LORA_QKV, .parts = parts, .bias = cut->shape->qkv_bias && cut->shape->keys_biased,
                                   .whole_input = true});
    if (cut->shape->qkv_bias && !cut->shape->keys_biased)
        vector(ops, PLACE_BLOCK, qkv + cut->gate - key);
    operator_begin(ops, "qkv-concatenate", 0);
    memory_kernel(ops, "qkv-concatenate", PHASE_BACKWARD_INPUT, CLASS_COPY, 2 * cut->tokens * (qkv + cut->gate) * cut->value);
}

static void three_products(struct operators *ops, struct tensor in)
{
    const struct cut *cut = ops->cut;
    const enum product_id products[] = {PRODUCT_Q, PRODUCT_K, PRODUCT_V};
    const double widths[] = {cut->query + cut->gate, cut->key, cut->values};

    for (int i = 0; i < 3; i++)
        product(ops, &(struct weight_product){.id = products[i], .in = in, .out = widths[i], .split = SPLIT_COLUMNS,
                                       .place = PLACE_BLOCK, .target = LORA_QKV,
                                       .bias = cut->shape->qkv_bias && (i != 1 || cut->shape->keys_biased), .whole_input = i == 0});
    operator_begin(ops, "qkv-sum", 0);
    plain_kernels(ops, "qkv-sum", PHASE_BACKWARD_INPUT, CLASS_OTHER, 2, 6 * cut->tokens * cut->hidden * cut->value);
}

static void attention(struct operators *ops, struct tensor in)
{
    const struct cut *cut = ops->cut;

    (cut->shape->ways.fused_qkv ? one_product : three_products)(ops, in);
    if (cut->shape->qkv_bias)
        bias(ops, "qkv-bias", cut->tokens, cut->projected, false);
    project(ops, gated(ops, core(ops)), true);
}

static bool stands(const struct cut *cut)
{
    return cut->mixer == MIXER_ATTENTION && cut->shape->q_rank == 0;
}

const struct part_kind part_attention = {PART_ATTENTION, stands, attention};
