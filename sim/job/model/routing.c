/* The words of experts: their router, and rows that go into their order and come back. */
#include "model/operator.h"

#include <math.h>

#include "base/base.h"

/* The biases of the experts' last products, each times its token's probability, which is in fp32 (Megatron Core,
 * transformer/moe/experts.py: TEGroupedMLP._apply_bias). For each expert the bias times the probabilities, and the sum
 * with its rows; then all rows are put together and converted back. The backward, by autograd: the gradient in fp32;
 * for each expert that of its rows, of its bias and of its probabilities, the latter two a product and its sum; then
 * the gradients of rows are put together. */
void weighted_biases(struct operators *ops, double experts, double rows)
{
    const struct cut *cut = ops->cut;
    double values = rows * cut->routed, value = cut->value, wide = 4;
    int each = (int)fmax(1, experts);

    operator_begin(ops, "expert-bias", 0);
    plain_kernels(ops, "expert-bias", PHASE_FORWARD, CLASS_OTHER, 2 * each + 2,
                  values * (wide + (value + 2 * wide) + 2 * wide + (wide + value)));
    plain_kernels(ops, "expert-bias", PHASE_BACKWARD_INPUT, CLASS_OTHER, 5 * each + 2,
                  values * ((value + wide) + (wide + value) + 2 * 3 * wide + 2 * value));
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
static void rows_by_operators_kernels(struct operators *ops)
{
    const struct cut *cut = ops->cut;
    const double v = cut->value, wide = 4;
    double own = cut->own_tokens * cut->routed, sent = cut->sent * cut->routed, there = cut->received * cut->routed;
    double converted = v < wide ? sent * ((v + wide) + (wide + v)) : 0;
    int conversions = v < wide ? 2 : 0;
    enum phase back = PHASE_BACKWARD_INPUT;

    memory_kernel(ops, "permute", PHASE_FORWARD, CLASS_EXPERT_ROWS, (own + sent) * v);
    plain_kernels(ops, "sort", PHASE_FORWARD, CLASS_EXPERT_ROWS, 2, 4 * there * v);
    unvectorized_kernels(ops, "unsort", PHASE_FORWARD, CLASS_COPY, 1, there, 2 * there * v);
    unvectorized_kernels(ops, "weigh", PHASE_FORWARD, CLASS_OTHER, 1 + conversions, (1 + conversions) * sent,
                         converted + 2 * wide * sent);
    memory_kernel(ops, "copy", PHASE_FORWARD, CLASS_COPY, 2 * own * v);
    unvectorized_kernels(ops, "combine", PHASE_FORWARD, CLASS_OTHER, 1, sent, (sent + 2 * own) * v);

    memory_kernel(ops, "combine", back, CLASS_EXPERT_ROWS, (own + sent) * v);
    unvectorized_kernels(ops, "weigh", back, CLASS_OTHER, 1 + conversions, (1 + conversions) * sent,
                         converted + 2 * wide * sent);
    plain_kernels(ops, "weigh-scores", back, CLASS_OTHER, 2, sent * (3 * wide + wide));
    plain_kernels(ops, "unsort", back, CLASS_EXPERT_ROWS, 3, (3 + 2) * there * v);
    plain_kernels(ops, "sort", back, CLASS_OTHER, 2, 4 * there * v);
    memory_kernel(ops, "clear", back, CLASS_OTHER, own * v);
    unvectorized_kernels(ops, "permute", back, CLASS_OTHER, 1, sent, (sent + 2 * own) * v);
}

/* Megatron Core at 6a6cd478 (June 2025), moe_utils.py without fusion: permute is an index_select, unpermute zeros and a
 * scatter_add_, sort_chunks_by_idxs a torch.split and a torch.cat, before the experts and after them. Backward: a
 * gather; again a torch.cat for each sort; zeros and an index_add_. Probabilities are multiplied inside the experts. */
static void rows_by_indices(struct operators *ops, bool sorts)
{
    const struct cut *cut = ops->cut;
    double own = cut->own_tokens * cut->routed, sent = cut->sent * cut->routed, v = cut->value;
    static const char *const gathers[] = {"permute", "combine"}, *const adds[] = {"combine", "permute"};

    for (int phase = PHASE_FORWARD; phase <= PHASE_BACKWARD_INPUT; phase++) {
        bool back = phase == PHASE_BACKWARD_INPUT;

        unvectorized_kernels(ops, gathers[back], (enum phase)phase, CLASS_COPY, 1, sent, (own + sent) * v);
        if (sorts)
            plain_kernels(ops, "sort", (enum phase)phase, CLASS_COPY, 2, 4 * cut->received * cut->routed * v);
        memory_kernel(ops, "clear", (enum phase)phase, CLASS_OTHER, own * v);
        unvectorized_kernels(ops, adds[back], (enum phase)phase, CLASS_OTHER, 1, sent, (sent + 2 * own) * v);
    }
}

/* Rows copied into the order of the experts, and the experts' results weighted and added. A GPU orders the rows before
 * it sends them (permute) and, if it has several experts, those that it receives (sort). Rows that are sent once are
 * copied where they arrive, and added there before they return. */
static void row_kernels(struct operators *ops)
{
    const struct cut *cut = ops->cut;
    double width = cut->routed * cut->value;
    double from = cut->dispatches_once ? cut->arriving : cut->own_tokens;
    double rows = cut->dispatches_once ? cut->received : cut->sent;
    bool sorts = !cut->dispatches_once && cut->experts > 1 && cut->experts < cut->shape->experts;

    if (rows_by_operators(cut)) {
        rows_by_operators_kernels(ops);
        return;
    }
    if (cut->shape->ways.routed_rows == ROUTED_ROWS_INDICES && !cut->dispatches_once) {
        rows_by_indices(ops, sorts);
        return;
    }
    for (int phase = PHASE_FORWARD; phase <= PHASE_BACKWARD_INPUT; phase++) {
        memory_kernel(ops, "permute", (enum phase)phase, CLASS_EXPERT_ROWS, (from + rows) * width);
        if (sorts)
            memory_kernel(ops, "sort", (enum phase)phase, CLASS_EXPERT_ROWS, 4 * cut->received * width);
    }
    memory_kernel(ops, "combine", PHASE_FORWARD, CLASS_EXPERT_ROWS, (from + rows) * width);
    memory_kernel(ops, "combine", PHASE_BACKWARD_INPUT, CLASS_EXPERT_ROWS, (from + 2 * rows) * width);
}

/* What its GPUs exchange. If every GPU of the tensor group has all tokens, each GPU sends all tokens to its share of
 * the experts, and the tensor group sums the results. If each GPU has a share of the tokens (sequence parallelism), it
 * sends only this share, and the tensor group gathers the rows of its experts and scatters the sums (Megatron-LM's
 * all-to-all dispatcher), unless each GPU has whole experts. */
static void row_sends(struct operators *ops)
{
    const struct cut *cut = ops->cut;
    struct operator *op = &ops->list.items[ops->current];
    double width = cut->routed * cut->value;

    if (!cut->sends_own_rows && cut->tensor > 1) {
        op->gathers = 1;
        sends(ops, SENT_INPUT, 0, 1, cut->tokens * width);
        sends(ops, SENT_SUM, 1, 0, cut->tokens * width);
    }
    if (cut->dispatches)
        sends(ops, SENT_ROWS, 2, 2, cut->travelling * width);
    op->delivered = cut->dispatches ? cut->arriving * width : 0;
    if (cut->gathers_rows)
        sends(ops, SENT_ROW_SUMS, 1, 1, (cut->gathers_tokens ? cut->arriving : cut->received) * width);
}

/* Kept are the inputs of the experts, which gradients of trained weights need, and their outputs, which those of the
 * probabilities need. */
struct tensor rows(struct operators *ops)
{
    const struct cut *cut = ops->cut;
    bool operators = rows_by_operators(cut);
    struct kept_value value = {.name = "expert rows", .order = KEPT_ROUTED, .kind = KEPT_VALUES,
                               .rows = lora_trains(cut, LORA_MLP_UP) * cut->received + !operators * cut->sent, .as = {cut->routed, cut->value, 1}};

    operator_begin(ops, "rows", 0)->peak.backward = (cut->sent + cut->received) * cut->routed * cut->value;
    row_kernels(ops);
    row_sends(ops);
    keep(ops, value);
    value.name = "expert results", value.rows = cut->sent, value.as.bytes = 4;
    if (operators)
        keep(ops, value);
    return (struct tensor){cut->received, cut->routed, -1, 0};
}

/* Kernels of tokens x experts values, and the bytes that they all read and write for each: of the format of logits
 * (`values`) and in other formats. A kernel of fewer values counts as a kernel, without bytes. */
struct router_kernels {
    int kernels;
    double values, others;
};

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

/* The router is a product, whole on every GPU, and a softmax with a choice in fp32, which keeps its probabilities. */
void router(struct operators *ops, struct tensor in)
{
    const struct cut *cut = ops->cut;
    double choices = cut->own_tokens * cut->shape->experts;
    const struct router_kernels *all = routers[cut->shape->ways.router];

    in.rows = cut->own_tokens;
    product(ops, &(struct weight_product){.id = PRODUCT_ROUTER, .in = in, .out = cut->shape->experts,
                                          .place = PLACE_MLP, .plain = true, .target = LORA_TARGET_COUNT,
                                          .bias = cut->shape->router_bias});
    operator_begin(ops, "routing", 0);
    for (int phase = PHASE_FORWARD; phase <= PHASE_BACKWARD_INPUT; phase++)
        plain_kernels(ops, "routing", (enum phase)phase,
                      phase == PHASE_FORWARD ? CLASS_SOFTMAX_FORWARD : CLASS_SOFTMAX_BACKWARD, all[phase].kernels,
                      choices * (all[phase].values * cut->value + all[phase].others));
    keep(ops, (struct kept_value){
                  .name = "router", .order = KEPT_ROUTED, .kind = KEPT_AS_IT_IS, .rows = choices, .as = {1, 4, 1}});
}

/* A sigmoid of a product of a row with one column, times the shared experts' result. Forward: reads the input and the
 * result, writes the product. Backward: reads its gradient, the result and the input, writes two gradients. */
void shared_gate(struct operators *ops)
{
    const struct cut *cut = ops->cut;
    double values = cut->own_tokens * cut->hidden * cut->value;

    operator_begin(ops, "shared-gate", 0);
    matrix(ops, PLACE_MLP, 1, cut->hidden);
    memory_kernel(ops, "shared-gate", PHASE_FORWARD, CLASS_OTHER, 3 * values);
    memory_kernel(ops, "shared-gate", PHASE_BACKWARD_INPUT, CLASS_OTHER, 5 * values);
}
