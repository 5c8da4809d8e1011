/* The kernels of a block: attention, the MLP or experts, norms and residual sums, each phase's in the order in which they
 * run.
 *
 * Products follow Megatron's split (Shoeybi et al. 2019, section 3): QKV, the first product of the MLP and the output
 * layer are split by columns, the projection and the second product of the MLP by rows, attention by heads. */
#include "model/transformer.h"

/* The residual sum. Forward: bias, dropout and sum are one kernel, which reads the branch and the residual and writes
 * their sum and the mask; or dropout is a kernel before it, which reads and writes the branch. Backward: the gradient
 * of the branch goes through the mask; at the beginning of the branch two gradients are added. */
static void residual(struct kernels *list, const struct cut *cut, const char *name)
{
    double elements = cut->own_tokens * cut->hidden, mask = cut->shape->dropout > 0 ? elements : 0;

    if (mask > 0 && !cut->shape->fused_kernels)
        memory_kernel(list, cut, "dropout", PHASE_FORWARD, CLASS_DROPOUT_RESIDUAL_FORWARD,
                      2 * elements * cut->value + mask);
    memory_kernel(list, cut, name, PHASE_FORWARD, CLASS_DROPOUT_RESIDUAL_FORWARD,
           3 * elements * cut->value + (cut->shape->fused_kernels ? mask : 0));
    if (mask > 0)
        memory_kernel(list, cut, "dropout", PHASE_BACKWARD_INPUT, CLASS_DROPOUT_RESIDUAL_BACKWARD,
               2 * elements * cut->value + mask);
    memory_kernel(list, cut, name, PHASE_BACKWARD_INPUT, CLASS_OTHER, 3 * elements * cut->value);
}

/* Marks the forward's kernels from the list's `first` on as the tail of a dense block, which a recomputation with
 * early_stop leaves out: the backward needs the input of the block's last product and no later result, unless a dropout
 * mask follows. Autograd saves the factors of a product before it runs it, of a frozen one its weights alone; modules
 * in fp8 (Transformer Engine), and linear layers that keep projections, save after it. What operators recompute is
 * compiled where kernels are fused, and torch.compile leaves out what nobody needs. */
static void mark_tail(struct kernels *list, const struct cut *cut, size_t first)
{
    bool compiled = cut->recompute == RECOMPUTE_OPERATORS && cut->shape->fused_kernels;
    bool ends = !cut->has_experts && cut->shape->dropout == 0 && (!cut->fp8 || compiled) && !projects(cut);

    for (size_t i = first; ends && i < list->count; i++)
        list->items[i].tail = list->items[i].phase == PHASE_FORWARD;
}

/* The first product of the MLP. Where it is gated, the gate's may be a product of its own, and the gradients of their
 * common input are then added; recomputation that tells products apart knows them so. */
static void mlp_up(struct kernels *list, const struct cut *cut)
{
    bool gated = cut->shape->mlp == MLP_SWIGLU, apart = gated && !cut->shape->fused_gate;

    if (!apart && cut->recompute != RECOMPUTE_OPERATORS) {
        adapted_product(list, cut, LORA_MLP_UP, PRODUCT_MLP_UP);
        return;
    }
    for (int product = 0; product < (gated ? 2 : 1); product++)
        block_product(list, cut, PRODUCT_MLP_UP, 0, cut->tokens, cut->ffn, cut->hidden);
    adapter_kernels(list, cut, LORA_MLP_UP);
    if (apart)
        memory_kernel(list, cut, "gate-sum", PHASE_BACKWARD_INPUT, CLASS_OTHER,
                      3 * cut->tokens * cut->hidden * cut->value);
}

/* The last product is the adapter's, if there is one: PEFT computes the frozen product and its bias first
 * (peft/tuners/lora/layer.py, Linear.forward: base_layer, then lora_B(lora_A(x))). */
static void mlp(struct kernels *list, const struct cut *cut)
{
    bool fuses = cut->shape->fused_kernels, adapted = cut->lora && lora_trains(cut, LORA_MLP_DOWN);
    size_t first;

    mlp_up(list, cut);
    activation_function(list, cut, cut->tokens * cut->ffn);
    first = adapted_product(list, cut, LORA_MLP_DOWN, PRODUCT_MLP_DOWN);
    mark_tail(list, cut, first);
    if (cut->shape->bias) {
        bias_kernels(list, cut, "mlp-up-bias", cut->tokens, cut->ffn * (cut->shape->mlp == MLP_SWIGLU ? 2 : 1), fuses);
        first = list->count;
        bias_kernels(list, cut, "mlp-down-bias", cut->own_tokens, cut->hidden, fuses);
        mark_tail(list, cut, adapted ? list->count : first);
    }
}

/* A norm before the attention or the MLP. */
static void block_norm(struct kernels *list, const struct cut *cut, const char *name)
{
    size_t first = list->count;

    norm_kernels(list, cut, name);
    mark_recomputed(list, cut, 1u << MODULE_NORMS, first);
}

/* Where attention and MLP are parallel, each of their last products is summed over the tensor group, as if one followed
 * the other (Transformers, base_model_tp_plan of cohere: o_proj and down_proj are both "rowwise"). */
void block_kernels(struct kernels *list, const struct cut *cut)
{
    size_t first;

    block_norm(list, cut, "attention-norm");
    attention_inputs(list, cut);
    attention_kernels(list, cut);
    adapted_product(list, cut, LORA_PROJECTION, PRODUCT_PROJECTION);
    if (cut->shape->projection_bias)
        bias_kernels(list, cut, "projection-bias", cut->own_tokens, cut->hidden, cut->shape->fused_kernels);
    residual(list, cut, "attention-residual");
    quantization_kernels(list, cut, SAVED_ATTENTION);
    quantization_kernels(list, cut, SAVED_CORE);
    if (!cut->shape->parallel)
        block_norm(list, cut, "mlp-norm");
    first = list->count;
    if (cut->has_experts)
        router_kernels(list, cut);
    for (size_t i = 0; i < list->count; i++)
        list->items[i].before_mlp = true;
    if (cut->has_experts)
        expert_kernels(list, cut);
    else
        mlp(list, cut);
    mark_recomputed(list, cut, 1u << (cut->has_experts ? MODULE_EXPERTS : MODULE_MLP), first);
    quantization_kernels(list, cut, SAVED_MLP);
    first = list->count;
    residual(list, cut, "mlp-residual");
    mark_tail(list, cut, first);
    if (cut->recompute == RECOMPUTE_OPERATORS)
        kept_mark(list, cut);
}
