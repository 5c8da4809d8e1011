/* The kernels of the output layer and of the loss behind it. */
#include "model/transformer.h"

static void loss_kernel(struct kernels *list, const struct cut *cut, const char *name, enum phase phase, double bytes)
{
    memory_kernel(list, cut, name, phase,
                  phase == PHASE_FORWARD ? CLASS_CROSS_ENTROPY_FORWARD : CLASS_CROSS_ENTROPY_BACKWARD, bytes);
    list->items[list->count - 1].loss = true;
}

/* Cross-entropy over the vocabulary's share, eager and in fp32 (Megatron-LM, mpu/cross_entropy.py): the logits are
 * converted, the maximum is read, subtracted, exponentials are taken and summed, and divided by the sum: a value of
 * half and eight of full precision. Backward: the gradient of the probabilities is multiplied by the loss's and
 * converted. PyTorch's own, of logits as they are: log_softmax reads a row three times (maximum, sum, difference) and
 * writes it; nll_loss's backward clears a gradient, log_softmax's reads it twice and the output, and writes (ATen's
 * SoftMax.cu). Compiled: the conversion, exponentials and their sums with a copy back, and the quotients; backward a
 * copy for the target's place, the multiplication with the conversion, and a copy back (Megatron-LM,
 * fusions/fused_cross_entropy.py). Fused: reads the logits; backward reads them again and writes their gradient. The
 * all-reduces (maximum, sum and the target's logit: 12 bytes a token) are not modelled.
 * Composer computes two metrics from the logits of a micro-batch, after its backward (trainer.py: update_metric), each
 * by PyTorch's log_softmax of them in fp32 (autocast): they count beside the loss. */
static void loss_kernels(struct kernels *list, const struct cut *cut)
{
    double logits = cut->tokens * cut->vocabulary, value = cut->value;
    double forward[] = {[CROSS_ENTROPY_FP32] = value + 9 * 4, [CROSS_ENTROPY_PLAIN] = 4 * value,
                        [CROSS_ENTROPY_FUSED] = value, [CROSS_ENTROPY_COMPILED] = value + 7 * 4};
    double backward[] = {[CROSS_ENTROPY_FP32] = 3 * 4 + value, [CROSS_ENTROPY_PLAIN] = 5 * value,
                         [CROSS_ENTROPY_FUSED] = 2 * value, [CROSS_ENTROPY_COMPILED] = value + 4 * 4};

    loss_kernel(list, cut, "cross-entropy", PHASE_FORWARD, logits * forward[cut->cross_entropy]);
    loss_kernel(list, cut, "cross-entropy", PHASE_BACKWARD_INPUT, logits * backward[cut->cross_entropy]);
    for (int i = 0; cut->measured && i < 2; i++)
        loss_kernel(list, cut, "metric", PHASE_FORWARD, logits * (value + 4 + 4 * 4));
}

/* BERT's transform before its output layer: a product, GELU and norm, whole on every GPU. */
static void transform(struct kernels *list, const struct cut *cut)
{
    double values = cut->own_tokens * cut->hidden * cut->value;

    weight_product(list, cut, PRODUCT_TRANSFORM, cut->own_tokens, cut->hidden, cut->hidden);
    memory_kernel(list, cut, "gelu", PHASE_FORWARD, CLASS_GELU_FORWARD, 2 * values);
    memory_kernel(list, cut, "gelu", PHASE_BACKWARD_INPUT, CLASS_GELU_BACKWARD, 3 * values);
    norm_kernels(list, cut, "transform-norm");
}

/* Columns of dummy tokens take their time, but are nothing that the mathematics needs. */
static void logits(struct kernels *list, const struct cut *cut)
{
    size_t first = list->count;

    weight_product(list, cut, PRODUCT_LOGITS, cut->tokens, cut->columns, cut->hidden);
    for (size_t i = first; i < list->count; i++)
        list->items[i].flop *= cut->shape->vocabulary / (cut->tensor * cut->columns);
}

void output_kernels(struct kernels *list, const struct cut *cut)
{
    if (cut->shape->final_norm)
        norm_kernels(list, cut, "final-norm");
    if (cut->shape->head == HEAD_NONE)
        return;
    if (cut->shape->head == HEAD_MASKED_LANGUAGE_MODEL)
        transform(list, cut);
    logits(list, cut);
    if (cut->shape->head == HEAD_MASKED_LANGUAGE_MODEL)
        bias_kernels(list, cut, "logits-bias", cut->tokens, cut->vocabulary, false);
    loss_kernels(list, cut);
}
