/* The kernels of the loss behind the output layer. */
#include "transformer.h"

/* Cross-entropy over the vocabulary's share, eager and in fp32 (Megatron-LM, mpu/cross_entropy.py): the logits are
 * converted, the maximum is read, subtracted, exponentials are taken and summed, and divided by the sum: a value of
 * half and eight of full precision. Backward: the gradient of the probabilities is multiplied by the loss's and
 * converted. PyTorch's own, of logits as they are: log_softmax reads a row three times (maximum, sum, difference) and
 * writes it; nll_loss's backward clears a gradient, log_softmax's reads it twice and the output, and writes (ATen's
 * SoftMax.cu). Fused: reads the logits; backward reads them again and writes their gradient. The all-reduces (maximum,
 * sum and the target's logit: 12 bytes a token) are not modelled. */
void loss_kernels(struct kernels *list, const struct cut *cut)
{
    double logits = cut->tokens * cut->vocabulary, value = cut->value;
    double forward[] = {[CROSS_ENTROPY_FP32] = value + 9 * 4, [CROSS_ENTROPY_PLAIN] = 4 * value,
                        [CROSS_ENTROPY_FUSED] = value};
    double backward[] = {[CROSS_ENTROPY_FP32] = 3 * 4 + value, [CROSS_ENTROPY_PLAIN] = 5 * value,
                         [CROSS_ENTROPY_FUSED] = 2 * value};

    memory_kernel(list, cut, "cross-entropy", PHASE_FORWARD, CLASS_CROSS_ENTROPY_FORWARD,
                  logits * forward[cut->cross_entropy]);
    list->items[list->count - 1].loss = true;
    memory_kernel(list, cut, "cross-entropy", PHASE_BACKWARD_INPUT, CLASS_CROSS_ENTROPY_BACKWARD,
                  logits * backward[cut->cross_entropy]);
    list->items[list->count - 1].loss = true;
}
