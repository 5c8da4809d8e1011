/*
 *     in ─┬─ up ───┐
 *         │        ├─ activation ── down ── out
 *         └─[gate]─┘
 *
 * Where the MLP is gated, the gate's product may be one with the other, or one of its own. */
#include "model/operator.h"

static void mlp(struct operators *ops, struct tensor in)
{
    const struct cut *cut = ops->cut;
    const struct transformer *shape = cut->shape;
    double inputs = shape->mlp == MLP_SWIGLU ? 2 : 1, up = inputs * cut->ffn;
    bool apart = inputs > 1 && !shape->ways.fused_gate, fuses = shape->ways.fused_kernels;
    struct tensor between;

    product(ops, &(struct weight_product){
        .id = PRODUCT_MLP_UP, .in = in, .out = up, .split = SPLIT_COLUMNS, .place = PLACE_MLP,
        .target = LORA_MLP_UP, .matrices = apart ? 2 : 1, .bias = shape->bias, .whole_input = true,
        /* recomputation that tells products apart knows the gate's as one of its own */
        .times = apart || cut->recompute == RECOMPUTE_OPERATORS ? (int)inputs : 1});
    if (apart)
        gate_sum(ops, cut->tokens);
    between = activation(ops, cut->tokens, cut->ffn, KEPT_MLP);
    if (shape->mlp == MLP_XIELU)       /* the two factors that it learns */
        vector(ops, PLACE_MLP, 2);
    product(ops, &(struct weight_product){.id = PRODUCT_MLP_DOWN, .in = between, .out = cut->hidden, .split = SPLIT_ROWS,
                                   .place = PLACE_MLP, .target = LORA_MLP_DOWN, .bias = shape->bias,
                                   .sums = true, .pieces = true});
    if (!shape->bias)
        return;
    bias(ops, "mlp-up-bias", cut->tokens, up, fuses);
    bias(ops, "mlp-down-bias", cut->own_tokens, cut->hidden, fuses);
    ends_block(ops);
}

const struct part_kind part_mlp = {PART_MLP, NULL, mlp};
