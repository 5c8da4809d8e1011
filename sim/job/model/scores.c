/* Scores, softmax and values: attention operation by operation, or fused. */
#include "hardware/gpu.h"
#include "kernels/kernel_time.h"
#include "model/operator_internal.h"

#include <math.h>

#include "base/base.h"

/* A product of two activations, C = A B, for each head. The gradients of A and of B both belong to the phase of the
 * input's gradient. Grouped keys and values are counted as if every head read its own copy. */
static void head_product(struct operators *ops, const struct cut *cut, enum product_id product,
                         enum matmul_layout layout, double n, double k)
{
    struct kernel kernel = {.product = product, .dtype = cut->dtype, .batch = cut->batch * cut->heads,
                            .m = cut->queries, .n = n, .k = k, .layout = layout,
                            .sliced = cut->slices > 1 ? cut->slices / (cut->before + 1) : 0};

    product_kernel(ops, kernel);
    kernel.phase = PHASE_BACKWARD_INPUT;
    kernel.n = k, kernel.k = n; /* dA = dC B^T */
    kernel.layout = layout == LAYOUT_NT ? LAYOUT_NN : LAYOUT_NT;
    product_kernel(ops, kernel);
    kernel.m = k, kernel.n = n, kernel.k = cut->queries; /* dB = A^T dC */
    kernel.layout = LAYOUT_TN;
    product_kernel(ops, kernel);
}

/* Kernels around a softmax that is not fused, each of which reads and writes all scores.
 * Plain PyTorch: torch.matmul copies queries, keys and values, whose heads are not contiguous, and their gradients;
 * scores are scaled and masked. The mask of an encoder is added and has no backward. A causal mask that is multiplied
 * takes two kernels: the product, and a difference that moves hidden scores far below zero and has no backward.
 * With scores_in_place torch.baddbmm reads heads where they lie, and scales. The mask is then written into a view of
 * its result, for which autograd clears a tensor and copies the gradient into it (torch/csrc/autograd/variable.cpp:
 * AsStridedBackward0; FunctionsManual.cpp, as_strided_backward) and three times more (functions/tensor.cpp,
 * CopySlices). Megatron-LM, where its softmax cannot be fused: PyTorch's in fp32 (forward_torch_softmax; query-key
 * layer scaling, its default until 2023, sets attention_softmax_in_fp32) on scores that are converted and scaled; the
 * probabilities are converted back. The gradient of masked_fill_ is a copy that is filled
 * (ATen/native/TensorAdvancedIndexing.cpp). */
static void separate_scores(struct operators *ops, const struct cut *cut)
{
    bool plain = !cut->shape->ways.fused_kernels, causal = cut->shape->causal,
         multiplied = cut->shape->ways.multiplied_mask;
    bool placed = plain && cut->shape->ways.scores_in_place, fills = causal && (!plain || (placed && !multiplied));
    double inputs = cut->tokens * head_widths(cut), half = cut->scores * cut->value;
    double values = 2 * cut->scores * (plain ? cut->value : 4);

    for (int phase = PHASE_FORWARD; phase <= PHASE_BACKWARD_INPUT; phase++) {
        int masks = plain && phase == PHASE_FORWARD ? 1 + (causal && multiplied) : causal, copies = placed ? 5 : 1;

        if (plain && !placed)
            unvectorized_kernels(ops, "heads", (enum phase)phase, CLASS_COPY, 3, inputs, 2 * inputs * cut->value);
        if (!plain && cut->value < 4)
            unvectorized_kernels(ops, "convert", (enum phase)phase, CLASS_COPY, 2, 2 * cut->scores, 2 * half + values);
        if (!placed)
            memory_kernel(ops, "scale", (enum phase)phase, CLASS_OTHER, values);
        if (placed && fills && phase == PHASE_BACKWARD_INPUT)
            memory_kernel(ops, "mask-zeros", (enum phase)phase, CLASS_OTHER, values / 2);
        if (fills && phase == PHASE_BACKWARD_INPUT)
            plain_kernels(ops, "mask-copies", (enum phase)phase, CLASS_COPY, copies, copies * values);
        if (masks > 0)
            unvectorized_kernels(ops, "mask", (enum phase)phase, CLASS_OTHER, masks, masks * cut->scores,
                                 masks * values);
    }
}

/* Attention that is not fused: scores, softmax, dropout, values.
 * Softmax with scale and mask is one kernel. Forward: reads scores, writes probabilities. Backward: reads the
 * probabilities and their gradient, writes the gradient of the scores. Megatron-LM's causal softmax
 * (scaled_upper_triang_masked_softmax.h) reads only up to the diagonal and writes all.
 * Dropout reads and writes the probabilities, with a mask of one byte per value. */
void plain_attention(struct operators *ops, const struct cut *cut)
{
    bool fuses = softmax_fuses(cut), plain = !cut->shape->ways.fused_kernels;
    bool casts = casts_apart(cut);
    double values = cut->scores * (casts ? 4 : cut->value), written = fuses || plain ? values : cut->scores * 4;
    double share = cut->shape->causal && fuses ? (cut->before + 0.5) / (cut->before + 1) : 1, read = written * share;
    double output = cut->tokens * cut->attended;

    operator_begin(ops, "attention", 1u << MODULE_CORE);
    head_product(ops, cut, PRODUCT_SCORES, LAYOUT_NT, cut->sequence, cut->query_size);
    if (cut->shape->alibi)
        memory_kernel(ops, "alibi", PHASE_FORWARD, CLASS_OTHER, 2 * values);
    if (cut->shape->relative_positions) {        /* their gradient is summed over samples, and added to other blocks' */
        memory_kernel(ops, "score-biases", PHASE_FORWARD, CLASS_OTHER, 2 * values);
        memory_kernel(ops, "score-biases", PHASE_BACKWARD_INPUT, CLASS_REDUCTION, values * (1 + 2 / cut->batch));
    }
    if (!fuses)
        separate_scores(ops, cut);
    for (int phase = PHASE_FORWARD; casts && phase <= PHASE_BACKWARD_INPUT; phase++)
        unvectorized_kernels(ops, "autocast", (enum phase)phase, CLASS_COPY, 2, 2 * cut->scores,
                             2 * cut->scores * (cut->value + 4));
    memory_kernel(ops, "softmax", PHASE_FORWARD, CLASS_SOFTMAX_FORWARD, read + written);
    memory_kernel(ops, "softmax", PHASE_BACKWARD_INPUT, CLASS_SOFTMAX_BACKWARD, 2 * read + written);
    if (cut->shape->attention_dropout > 0) {
        memory_kernel(ops, "attention-dropout", PHASE_FORWARD, CLASS_DROPOUT_RESIDUAL_FORWARD,
                      2 * values + cut->scores);
        memory_kernel(ops, "attention-dropout", PHASE_BACKWARD_INPUT, CLASS_DROPOUT_RESIDUAL_BACKWARD,
                      2 * values + cut->scores);
    }
    head_product(ops, cut, PRODUCT_VALUES, LAYOUT_NN, cut->value_size, cut->sequence);
    /* The projection needs the result in the order of tokens, not of heads: it is copied (Megatron-LM:
     * context_layer.permute.contiguous). Its gradient is copied back if the sample is the first dimension, as in BERT;
     * in Megatron-LM the token is, and a view suffices. */
    operator_begin(ops, "transpose", 0);
    unvectorized_kernels(ops, "transpose", PHASE_FORWARD, CLASS_COPY, 1, output, 2 * output * cut->value);
    if (plain && !cut->shape->ways.scores_in_place)
        unvectorized_kernels(ops, "transpose", PHASE_BACKWARD_INPUT, CLASS_COPY, 1, output, 2 * output * cut->value);
}

/* Fused attention in 8 bits: queries, keys and values are cast before it, the gradient of its output before the backward, and
 * their gradients back behind it (Transformer Engine, attention/dot_product_attention/backends.py: FusedAttnFunc). */
static void attention_casts(struct operators *ops)
{
    const struct cut *cut = ops->cut;
    double cast = cut->value + dtype_bytes(DTYPE_FP8);
    double inputs = cut->tokens * cut->query + cut->key_tokens * (cut->key + cut->values);

    memory_kernel(ops, "cast-attention", PHASE_FORWARD, CLASS_COPY, cast * inputs);
    memory_kernel(ops, "cast-attention", PHASE_BACKWARD_INPUT, CLASS_COPY, cast * cut->tokens * cut->attended);
    memory_kernel(ops, "cast-attention", PHASE_BACKWARD_INPUT, CLASS_COPY, cast * inputs);
}

/* FlashAttention (Dao et al. 2022, algorithms 1 and 4): the scores never leave the chip.
 * Products: two in the forward; five in the backward, the scores again and four gradients.
 * Traffic: the forward reads Q, K, V and writes O; the backward reads Q, K, V, O, dO and writes dQ, dK, dV, with sums
 * of dQ in fp32; both have one fp32 sum per row of scores.
 * Causal: blocks above the diagonal are skipped, equally many on each GPU of a context group (the zigzag split); with a
 * window also the scores below its band. Not causal: a window lies on both sides of a query. Chunks and documents are shorter samples. A slice sees all keys before it:
 * this takes as long as without a mask, with as many scores. */
void flash_attention(struct operators *ops, const struct cut *cut)
{
    bool causal = cut->shape->causal;
    double limit = cut->windowed ? cut->shape->window : 0;
    double documents = cut->shape->documents > 0 ? fmax(1, cut->sequence / cut->shape->documents) : 1;
    double chunks = fmax(documents, cut->shape->chunked && limit > 0 ? cut->sequence / limit : 1);
    double window = cut->shape->chunked ? 0 : limit, keys = cut->sequence / chunks, scores = cut->scores / chunks;
    double own = attention_share(keys / (cut->before + 1), causal, window);
    double share = (cut->before + own) / (cut->before + 1), rows = 4 * cut->scores / cut->sequence;
    bool masked = causal && cut->before == 0;
    double in_out = cut->tokens * cut->value * (cut->query + cut->attended);
    double keys_values = cut->batch * cut->sequence * cut->value * (cut->key + cut->values);
    bool narrow = cut->shape->ways.attention_format == ATTENTION_FORMAT_FP8;
    struct kernel kernel = {
        .name = "flash-attention", .kind = KERNEL_ATTENTION, .dtype = narrow ? DTYPE_FP8 : cut->dtype, .launches = 1, .causal = masked,
        .window = window, .batch = cut->batch * cut->heads * chunks, .m = cut->queries / chunks,
        .n = causal && !masked ? keys * share : keys,
        .sliced = cut->slices > 1 ? cut->slices / (masked ? 1 : cut->before + own) : 0,
    };

    operator_begin(ops, "flash-attention", 1u << MODULE_CORE);
    if (narrow)
        attention_casts(ops);
    /* queries and values may have different sizes: k is then the common size that gives the same FLOPs */
    kernel.k = (cut->query_size + cut->value_size) / 2;
    kernel.flop = 4 * scores * kernel.k * share;
    kernel.bytes = in_out + keys_values + rows;
    add_kernel(ops, kernel);
    kernel.phase = PHASE_BACKWARD_INPUT;
    kernel.k = (3 * cut->query_size + 2 * cut->value_size) / 5;
    kernel.flop = 10 * scores * kernel.k * share;
    kernel.bytes = 2 * in_out + 2 * keys_values + 8 * cut->tokens * cut->query + rows;
    add_kernel(ops, kernel);
}
