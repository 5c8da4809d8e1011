/* Cross attention (Vaswani et al. 2017, section 3.2.3), of a decoder's block to its encoder's output:
 *
 *     in ─── q ──────────────┐
 *                            ├─ core ── projection ── out
 *     encoder ── k, v ───────┘
 *
 * Each block computes keys and values of all tokens of the encoder, whose output a stage holds once. In the backward the gradients
 * that all blocks give that output are added up. */
#include "model/operator.h"

/* Keys and values of the encoder's tokens, by one product or two; a product in a narrow format keeps its own copy of their
 * input. */
static void keys(struct operators *ops)
{
    const struct cut *cut = ops->cut, *source = cut->source;
    bool one = cut->shape->ways.fused_qkv;
    const double widths[] = {one ? cut->key + cut->values : cut->key, cut->values};
    int kept = cut->fp8 ? keep(ops, (struct kept_value){.name = "encoder", .order = KEPT_CROSS_INPUT, .kind = KEPT_INPUT,
                                                        .rows = source->input_tokens, .as = {cut->hidden, cut->saved, 0}}) :
                          -1;

    ops->cut = source;
    operator_begin(ops, "encoder-casts", 0);
    input_casts(ops, one ? 1 : 2);
    for (int i = 0; i < (one ? 1 : 2); i++)
        product(ops, &(struct weight_product){.id = one ? PRODUCT_KV : i ? PRODUCT_V : PRODUCT_K, .out = widths[i],
                                              .in = {source->tokens, cut->hidden, kept, 0}, .split = SPLIT_COLUMNS,
                                              .place = PLACE_BLOCK, .target = LORA_QKV, .whole_input = i == 0});
    qkv_bias(ops, "kv-bias", 0, cut->key, cut->values);
    operator_begin(ops, "encoder-sum", 0);
    plain_kernels(ops, "encoder-sum", PHASE_BACKWARD_INPUT, CLASS_OTHER, one ? 1 : 2,
                  (one ? 1 : 2) * 3 * source->own_tokens * cut->hidden * cut->value);
    ops->cut = cut;
}

static void cross(struct operators *ops, struct tensor in)
{
    const struct cut *cut = ops->cut;

    product(ops, &(struct weight_product){.id = PRODUCT_Q, .in = in, .out = cut->query, .split = SPLIT_COLUMNS, .place = PLACE_BLOCK,
                                          .target = LORA_QKV, .whole_input = true});
    qkv_bias(ops, "q-bias", cut->query, 0, 0);
    keys(ops);
    project(ops, cross_core(ops), true);
}

const struct part_kind part_cross = {PART_CROSS, NULL, cross};
