/* The kernels of a block's experts, which stand where the MLP would be: their router, their rows and their MLPs. */
#include "model/transformer.h"

#include <math.h>

#include "base/base.h"

/* The biases of the experts' last products, each times its token's probability, which is in fp32 (Megatron Core,
 * transformer/moe/experts.py: TEGroupedMLP._apply_bias). For each expert the bias times the probabilities, and the sum
 * with its rows; then all rows are put together and converted back. The backward, by autograd: the gradient in fp32;
 * for each expert that of its rows, of its bias and of its probabilities, the latter two a product and its sum; then
 * the gradients of rows are put together. */
static void weighted_biases(struct kernels *list, const struct cut *cut, double experts, double rows)
{
    double values = rows * cut->hidden, value = cut->value, wide = 4;
    int each = (int)fmax(1, experts);

    plain_kernels(list, cut, "expert-bias", PHASE_FORWARD, CLASS_OTHER, 2 * each + 2,
                  values * (wide + (value + 2 * wide) + 2 * wide + (wide + value)));
    plain_kernels(list, cut, "expert-bias", PHASE_BACKWARD_INPUT, CLASS_OTHER, 5 * each + 2,
                  values * ((value + wide) + (wide + value) + 2 * 3 * wide + 2 * value));
}

/* The first product of an MLP of experts. Where it is gated, the gate's may be a product of its own; the gradients of
 * their common input are then added. */
static void expert_up(struct kernels *list, const struct cut *cut, enum product_id up, double experts, double rows,
                      double ffn)
{
    bool gated = cut->shape->mlp == MLP_SWIGLU, apart = gated && !cut->shape->fused_gate;

    for (int product = 0; product <= apart; product++)
        block_product(list, cut, up, experts, rows, gated && !apart ? 2 * ffn : ffn, cut->hidden);
    if (apart)
        memory_kernel(list, cut, "gate-sum", PHASE_BACKWARD_INPUT, CLASS_OTHER, 3 * rows * cut->hidden * cut->value);
}

/* An MLP of `rows` rows; with `experts` above 0 that many experts each compute a share of the rows. */
static void expert_mlp(struct kernels *list, const struct cut *cut, enum product_id up, enum product_id down,
                       double experts, double rows, double ffn)
{
    double width = (cut->shape->mlp == MLP_SWIGLU ? 2 : 1) * ffn;

    expert_up(list, cut, up, experts, rows, ffn);
    if (cut->shape->bias)
        bias_kernels(list, cut, "expert-up-bias", rows, width, false);
    activation_function(list, cut, rows * ffn);
    block_product(list, cut, down, experts, rows, cut->hidden, ffn);
    if (cut->shape->bias && experts > 0 && !cut->shape->fused_clamp)
        weighted_biases(list, cut, experts, rows);
    else if (cut->shape->bias)
        bias_kernels(list, cut, "expert-down-bias", rows, cut->hidden, false);
}

/* torchtitan at bb308da6 (5 November 2025), models/moe/moe.py (MoE.forward) and utils.py (_permute, _unpermute), which
 * torch.compile leaves out (models/llama4/infra/parallelize.py, apply_compile). Each operator reads and writes rows.
 * Forward:
 * - torch.gather copies each token's row for its experts;
 * - torch.vstack appends a row of zeros, and an index puts rows into the order of the GPU's experts;
 * - an indexed assignment puts their results back;
 * - these are converted to fp32, multiplied by a broadcast score each, and converted back;
 * - scatter_add adds them to a copy of the shared experts' result.
 * Backward, by autograd:
 * - of scatter_add, a gather;
 * - of the conversions, two conversions; of the product, one by the scores, one by the results, and its sum over a row;
 * - of the slice that leaves out the row of zeros, a tensor of zeros and a copy; of the assignment, an index; of the
 *   index, zeros and a sum into them. torch.vstack's are views;
 * - of the gather, zeros and a scatter_add.
 * What converts, broadcasts or scatters computes an address for each value; whole rows are gathered by vectors
 * (PyTorch 2.8, ATen/native/cuda/ScatterGatherKernel.cu). */
static void rows_by_operators_kernels(struct kernels *list, const struct cut *cut)
{
    const double v = cut->value, wide = 4;
    double own = cut->own_tokens * cut->hidden, sent = cut->sent * cut->hidden, there = cut->received * cut->hidden;
    double converted = v < wide ? sent * ((v + wide) + (wide + v)) : 0;
    int conversions = v < wide ? 2 : 0;
    enum phase back = PHASE_BACKWARD_INPUT;

    memory_kernel(list, cut, "permute", PHASE_FORWARD, CLASS_EXPERT_ROWS, (own + sent) * v);
    plain_kernels(list, cut, "sort", PHASE_FORWARD, CLASS_EXPERT_ROWS, 2, 4 * there * v);
    unvectorized_kernels(list, cut, "unsort", PHASE_FORWARD, CLASS_COPY, 1, there, 2 * there * v);
    unvectorized_kernels(list, cut, "weigh", PHASE_FORWARD, CLASS_OTHER, 1 + conversions, (1 + conversions) * sent,
                         converted + 2 * wide * sent);
    memory_kernel(list, cut, "copy", PHASE_FORWARD, CLASS_COPY, 2 * own * v);
    unvectorized_kernels(list, cut, "combine", PHASE_FORWARD, CLASS_OTHER, 1, sent, (sent + 2 * own) * v);

    memory_kernel(list, cut, "combine", back, CLASS_EXPERT_ROWS, (own + sent) * v);
    unvectorized_kernels(list, cut, "weigh", back, CLASS_OTHER, 1 + conversions, (1 + conversions) * sent,
                         converted + 2 * wide * sent);
    plain_kernels(list, cut, "weigh-scores", back, CLASS_OTHER, 2, sent * (3 * wide + wide));
    plain_kernels(list, cut, "unsort", back, CLASS_EXPERT_ROWS, 3, (3 + 2) * there * v);
    plain_kernels(list, cut, "sort", back, CLASS_OTHER, 2, 4 * there * v);
    memory_kernel(list, cut, "clear", back, CLASS_OTHER, own * v);
    unvectorized_kernels(list, cut, "permute", back, CLASS_OTHER, 1, sent, (sent + 2 * own) * v);
}

/* Megatron Core at 6a6cd478 (June 2025), moe_utils.py without fusion: permute is an index_select, unpermute zeros and a
 * scatter_add_, sort_chunks_by_idxs a torch.split and a torch.cat, before the experts and after them. Backward: a gather;
 * again a torch.cat for each sort; zeros and an index_add_. Probabilities are multiplied inside the experts. */
static void rows_by_indices(struct kernels *list, const struct cut *cut, bool sorts)
{
    double own = cut->own_tokens * cut->hidden, sent = cut->sent * cut->hidden, v = cut->value;
    static const char *const gathers[] = {"permute", "combine"}, *const adds[] = {"combine", "permute"};

    for (int phase = PHASE_FORWARD; phase <= PHASE_BACKWARD_INPUT; phase++) {
        bool back = phase == PHASE_BACKWARD_INPUT;

        unvectorized_kernels(list, cut, gathers[back], (enum phase)phase, CLASS_COPY, 1, sent, (own + sent) * v);
        if (sorts)
            plain_kernels(list, cut, "sort", (enum phase)phase, CLASS_COPY, 2, 4 * cut->received * cut->hidden * v);
        memory_kernel(list, cut, "clear", (enum phase)phase, CLASS_OTHER, own * v);
        unvectorized_kernels(list, cut, adds[back], (enum phase)phase, CLASS_OTHER, 1, sent, (sent + 2 * own) * v);
    }
}

/* Rows copied into the order of the experts, and the experts' results weighted and added. A GPU orders the rows before
 * it sends them (permute) and, if it has several experts, those that it receives (sort). Rows that are sent once are
 * copied where they arrive, and added there before they return. */
static void rows_to_experts(struct kernels *list, const struct cut *cut)
{
    double width = cut->hidden * cut->value;
    double from = cut->dispatches_once ? cut->arriving : cut->own_tokens;
    double rows = cut->dispatches_once ? cut->received : cut->sent;
    bool sorts = !cut->dispatches_once && cut->experts > 1 && cut->experts < cut->shape->experts;

    if (rows_by_operators(cut)) {
        rows_by_operators_kernels(list, cut);
        return;
    }
    if (cut->shape->routed_rows == ROUTED_ROWS_INDICES && !cut->dispatches_once) {
        rows_by_indices(list, cut, sorts);
        return;
    }
    for (int phase = PHASE_FORWARD; phase <= PHASE_BACKWARD_INPUT; phase++) {
        memory_kernel(list, cut, "permute", (enum phase)phase, CLASS_EXPERT_ROWS, (from + rows) * width);
        if (sorts)
            memory_kernel(list, cut, "sort", (enum phase)phase, CLASS_EXPERT_ROWS, 4 * cut->received * width);
    }
    memory_kernel(list, cut, "combine", PHASE_FORWARD, CLASS_EXPERT_ROWS, (from + rows) * width);
    memory_kernel(list, cut, "combine", PHASE_BACKWARD_INPUT, CLASS_EXPERT_ROWS, (from + 2 * rows) * width);
}

/* A sigmoid of a product of a row with one column, times the shared experts' result. Forward: reads the input and the
 * result, writes the product. Backward: reads its gradient, the result and the input, writes two gradients. */
static void shared_gate(struct kernels *list, const struct cut *cut)
{
    double values = cut->own_tokens * cut->hidden * cut->value;

    memory_kernel(list, cut, "shared-gate", PHASE_FORWARD, CLASS_OTHER, 3 * values);
    memory_kernel(list, cut, "shared-gate", PHASE_BACKWARD_INPUT, CLASS_OTHER, 5 * values);
}

/* Kernels of tokens x experts values, and the bytes that they all read and write for each: of the format of logits
 * (`values`) and in other formats. A kernel of fewer values counts as a kernel, without bytes. */
struct router_kernels { int kernels; double values, others; };

/* Megatron Core chooses experts by PyTorch's operators, unless --moe-router-fusion (since August 2025, c08d89be) is on.
 * moe_utils.py, topk_softmax_with_capacity without a capacity; router.py, aux_loss_load_balancing, and
 * switch_load_balancing_loss_func; token_dispatcher.py, MoEAlltoAllTokenDispatcher.preprocess with experts elsewhere.
 * torch.topk is a selection and a sort; scatter out of place a copy and a kernel.
 * indices (core_r0.8.0), forward: topk, a softmax in fp32 and a conversion (4); a bincount, which looks for its input's
 *     minimum and maximum, clears and counts (4); the loss's softmax, sums, products, and its place in a table (7);
 *     again a bincount, three sums (7); repeat_interleave, a running sum and a kernel (2).
 * masks (6a6cd478, June 2025), forward: topk, softmax and conversion (4); zeros and scatter of probabilities (3); zeros
 *     as integers, scatter, the mask and its sum (6); the loss's softmax, topk and such a mask with its sum (9); its
 *     sums, products and place (6); the sums of the dispatcher, and a copy (6).
 * Backward, by autograd: of the probabilities' scatter a gather (masks); of conversion, softmax and topk (zeros, a
 *     scatter) (4); of the loss, its scale and three products (4), a copy of the broadcast gradient, the softmax's, and
 *     the sum of both (3). */
static const struct router_kernels routers[][2] = {
    [ROUTER_FUSED] = {{1, 0, 8}, {1, 0, 12}},
    [ROUTER_INDICES] = {{24, 2, 8}, {11, 5, 12}},
    [ROUTER_MASKS] = {{34, 9, 49}, {12, 5, 12}},
};

/* The router is a product, and a softmax with a choice in fp32. */
void router_kernels(struct kernels *list, const struct cut *cut)
{
    double choices = cut->own_tokens * cut->shape->experts;
    const struct router_kernels *all = routers[cut->shape->router];

    weight_product(list, cut, PRODUCT_ROUTER, cut->own_tokens, cut->shape->experts, cut->hidden);
    for (int phase = PHASE_FORWARD; phase <= PHASE_BACKWARD_INPUT; phase++)
        plain_kernels(list, cut, "routing", (enum phase)phase,
                      phase == PHASE_FORWARD ? CLASS_SOFTMAX_FORWARD : CLASS_SOFTMAX_BACKWARD, all[phase].kernels,
                      choices * (all[phase].values * cut->value + all[phase].others));
}

void expert_kernels(struct kernels *list, const struct cut *cut)
{
    size_t shared;

    rows_to_experts(list, cut);
    expert_mlp(list, cut, PRODUCT_EXPERT_UP, PRODUCT_EXPERT_DOWN, cut->experts, cut->received, cut->expert_ffn);
    shared = list->count;
    if (cut->shared_ffn > 0)
        expert_mlp(list, cut, PRODUCT_SHARED_UP, PRODUCT_SHARED_DOWN, 0, cut->tokens, cut->shared_ffn);
    if (cut->shape->shared_gate)
        shared_gate(list, cut);
    mark_recomputed(list, cut, 1u << MODULE_SHARED, shared);
}

/* Measured: scenarios/paper/megatron-bridge-experts.yaml. Wide experts (grok1-h100.yaml) are as good as other
 * layers. */
const char *transformer_caveat(struct arena *arena, const struct transformer *shape)
{
    if (!shape->experts || shape->expert_ffn >= shape->hidden)
        return NULL;
    return arena_printf(arena, "experts of %d columns are narrower than what they compute on (%d); published runs of "
                        "such models took 0.8 to 1.4 times as long as predicted, one of the oldest release 2.4 times",
                        shape->expert_ffn, shape->hidden);
}
