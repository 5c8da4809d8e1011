/* Latent attention (DeepSeek-AI 2024, DeepSeek-V2, section 2.1, equations 9 to 19):
 *
 *     in ─┬─ q-down ── norm ── q-up ──────┐
 *         │                               ├─ core ── projection ── out
 *         └─ kv-down ── norm ── kv-up ────┘
 *
 * Queries are computed from one narrow latent vector, or from the input; keys and values from another one, or from the input
 * where only queries are narrowed (multi-matrix factorization attention: StepFun 2025, Step-3, section 3). Every GPU of the tensor
 * group computes the whole latent vectors, for all tokens; what widens them is split by heads. */
#include "model/operator.h"

static const unsigned latent_modules = 1u << MODULE_NORMS | 1u << MODULE_LATENT;

/* The latent vector of that rank, and `more` columns beside it, which have no norm. */
static struct tensor compressed(struct operators *ops, struct tensor in, enum product_id down, const char *norm, double rank,
                              double more)
{
    const struct cut *cut = ops->cut;

    product(ops, &(struct weight_product){.id = down, .in = in, .out = rank + more, .place = PLACE_BLOCK, .target = LORA_QKV});
    operator_begin(ops, norm, latent_modules);
    norm_kernels(ops, norm, cut->tokens, rank);
    norm_weights(ops, PLACE_BLOCK, rank);
    return (struct tensor){cut->tokens, rank, -1, latent_modules};
}

static void widen(struct operators *ops, struct tensor in, enum product_id up, double out)
{
    in.modules |= latent_modules;
    product(ops, &(struct weight_product){.id = up, .in = in, .out = out, .split = SPLIT_COLUMNS, .place = PLACE_BLOCK,
                                   .target = LORA_QKV, .whole_input = up == PRODUCT_Q_UP, .modules = 1u << MODULE_LATENT});
}

static bool stands(const struct cut *cut)
{
    return cut->mixer == MIXER_LATENT || (cut->mixer == MIXER_ATTENTION && cut->shape->q_rank > 0);
}

/* Inputs of the latent norms are kept, and outputs, which the gradients of trained weights need. */
static void latent(struct operators *ops, struct tensor in)
{
    const struct cut *cut = ops->cut;
    const struct transformer *shape = cut->shape;
    double ranks = (double)shape->q_rank + shape->kv_rank;

    widen(ops, shape->q_rank > 0 ? compressed(ops, in, PRODUCT_Q_DOWN, "q-norm", shape->q_rank, 0) : in, PRODUCT_Q_UP,
          cut->query);
    if (shape->kv_rank > 0)
        widen(ops, compressed(ops, in, PRODUCT_KV_DOWN, "kv-norm", shape->kv_rank, shape->rope_head_size), PRODUCT_KV_UP,
              cut->heads * (shape->head_size + shape->value_head_size));
    else
        product(ops, &(struct weight_product){.id = PRODUCT_KV_UP, .in = in, .out = cut->key + cut->values, .split = SPLIT_COLUMNS,
                                              .place = PLACE_BLOCK, .target = LORA_QKV, .whole_input = true});
    keep(ops, (struct kept_value){.name = "latent", .order = KEPT_LATENT, .kind = KEPT_VALUES, .rows = cut->tokens,
                             .as = {ranks, cut->value, 1 + lora_trains(cut, LORA_QKV)}, .reduced_by = latent_modules, .reduced = {ranks, cut->value, 1}});
    if (norm_copies(cut))
        keep(ops, (struct kept_value){.name = "latent in fp32", .order = KEPT_LATENT, .kind = KEPT_VALUES,
                                      .modules = latent_modules, .rows = cut->tokens, .as = {ranks, 4, 1}});
    project(ops, core(ops), false);
}

const struct part_kind part_latent = {PART_ATTENTION, stands, latent};
