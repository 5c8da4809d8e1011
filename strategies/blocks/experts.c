/* Experts (Shazeer et al. 2017; Fedus et al. 2021) in the place of the MLP:
 *
 *     in ─┬─ router ── [narrower] ── rows ── experts' MLPs ── rows ── [wider] ──┐
 *         │                                                                     + ── out
 *         └─ [shared experts' MLP [── x gate]] ─────────────────────────────────┘
 */
#include "model/operator.h"

/* An MLP of `rows` rows; with `experts` above 0 that many experts each compute a share of the rows. */
struct expert_mlp {
    enum product_id up, down;
    enum place place;
    enum kept_order order;
    double experts, ffn, out;
    bool exchanges;          /* the tensor group gathers its inputs and sums its results */
};

static void mlp(struct operators *ops, struct tensor in, const struct expert_mlp *kind)
{
    const struct cut *cut = ops->cut;
    const struct transformer *shape = cut->shape;
    double inputs = shape->mlp == MLP_SWIGLU ? 2 : 1, rows = in.rows;
    int products = inputs > 1 && !shape->ways.fused_gate ? 2 : 1;

    product(ops, &(struct weight_product){.id = kind->up, .in = in, .out = inputs * kind->ffn, .split = SPLIT_COLUMNS,
                                   .place = kind->place, .times = products, .matrices = products, .readers = 1,
                                   .experts = kind->experts, .bias = shape->bias, .target = LORA_MLP_UP,
                                   .whole_input = kind->exchanges});
    if (products > 1)
        gate_sum(ops, rows);
    if (shape->bias)
        bias(ops, "expert-up-bias", rows, inputs * kind->ffn, false);
    product(ops, &(struct weight_product){.id = kind->down, .in = activation(ops, rows, kind->ffn, kind->order),
                                   .out = kind->out, .split = SPLIT_ROWS, .place = kind->place,
                                   .experts = kind->experts, .bias = shape->bias, .target = LORA_MLP_DOWN,
                                   .sums = kind->exchanges});
    if (shape->bias && kind->experts > 0 && !shape->ways.fused_clamp)
        weighted_biases(ops, kind->experts, rows);
    else if (shape->bias)
        bias(ops, "expert-down-bias", rows, kind->out, false);
}

/* Hidden states at the width that experts get, or back, on every GPU of the tensor group alike. */
static void latent(struct operators *ops, struct tensor in, double out)
{
    product(ops, &(struct weight_product){.id = PRODUCT_EXPERT_LATENT, .in = in, .out = out, .place = PLACE_MLP,
                                          .target = LORA_TARGET_COUNT});
}

static bool stands(const struct cut *cut)
{
    return cut->has_experts;
}

static void experts(struct operators *ops, struct tensor in)
{
    const struct cut *cut = ops->cut;
    unsigned within = ops->within;

    ops->half = HALF_ATTENTION;      /* CUDA graphs may record the router, but not the rows that follow it */
    router(ops, in);
    ops->half = HALF_MLP;
    if (cut->shape->expert_latent)
        latent(ops, (struct tensor){cut->own_tokens, cut->hidden, in.kept, in.modules}, cut->routed);
    mlp(ops, rows(ops), &(struct expert_mlp){PRODUCT_EXPERT_UP, PRODUCT_EXPERT_DOWN, PLACE_EXPERTS, KEPT_MLP, cut->experts,
                                             cut->expert_ffn, cut->routed, false});
    if (cut->shape->expert_latent)
        latent(ops, (struct tensor){cut->own_tokens, cut->routed, -1, 0}, cut->hidden);
    if (cut->shape->shared_gate)
        keep(ops, (struct kept_value){.name = "shared result", .order = KEPT_SHARED_RESULT, .kind = KEPT_VALUES,
                                 .rows = cut->own_tokens, .as = {cut->hidden, cut->value, 1}});
    ops->within |= 1u << MODULE_SHARED;
    if (cut->shared_ffn > 0)
        mlp(ops, in, &(struct expert_mlp){PRODUCT_SHARED_UP, PRODUCT_SHARED_DOWN, PLACE_MLP, KEPT_SHARED, 0, cut->shared_ffn,
                                          cut->hidden, cut->sends_own_rows});
    if (cut->shape->shared_gate)
        shared_gate(ops);
    ops->within = within;
}

const struct part_kind part_experts = {PART_MLP, stands, experts};
