/* The word `loss`: cross-entropy, its kernels, what it keeps and what it holds. */
#include "model/operator.h"

#include <math.h>

#include "base/base.h"

static void loss_kernel(struct operators *ops, const char *name, enum phase phase, double bytes)
{
    memory_kernel(ops, name, phase, phase == PHASE_FORWARD ? CLASS_CROSS_ENTROPY_FORWARD : CLASS_CROSS_ENTROPY_BACKWARD,
                  bytes);
}

/* A kernel in fp32 that changes the logits in place by a value of each row. */
static void unvectorized_loss(struct operators *ops, enum phase phase, double logits)
{
    loss_kernel(ops, "cross-entropy", phase, 2 * 4 * logits);
    ops->kernels.items[ops->kernels.count - 1].unvectorized = logits;
}

/* Cross-entropy over this GPU's share of the vocabulary. The numbers are values read or written per logit.
 *
 * fp32: eager kernels in fp32 (Megatron-LM, mpu/cross_entropy.py). Forward: the logits are converted to fp32, the
 *     maximum is read and subtracted, exponentials are taken, summed and divided by the sum: one value in the logits'
 *     format and nine in fp32. Backward: the gradient of the probabilities is multiplied by the gradient of the loss
 *     and converted.
 * plain: PyTorch's kernels on the logits in their own format (ATen's SoftMax.cu). Forward: log_softmax reads a row
 *     three times (maximum, sum, difference) and writes it. Backward: nll_loss clears a gradient; log_softmax reads
 *     this gradient twice and the output once, and writes.
 * converted: the same in fp32, and a conversion each way. On an A100, 16384 rows of 131072 logits in fp32 take 20.7 ms
 *     forward (1.66 TB/s), and 39.7 ms with what adds a gradient to another one (1.73 TB/s): linkedin/Liger-Kernel,
 *     benchmark/data/all_benchmark_data.csv, 0.2.1.
 * compiled: forward: the conversion, the exponentials and their sums with a copy back, and the quotients. Backward: a
 *     copy for the target's element, the multiplication with the conversion, and a copy back (Megatron-LM,
 *     fusions/fused_cross_entropy.py).
 * fused: forward reads the logits; backward reads them again and writes their gradient.
 * chunked: forward reads them twice and writes their gradient in place (linkedin/Liger-Kernel at ead96b61,
 *     ops/cross_entropy.py); chunk_sums adds up the weight's gradient.
 *
 * What broadcasts a value of each row is unvectorized, in fp32 and in place: the difference and the quotients of fp32,
 * and its backward's product; the quotients of compiled. Megatron Core's own functions take 15.8 and 5.4 ms for 8192
 * rows of 131072 logits in bf16 on an H100 (here 14.9 and 5.8; 12.6 and 4.6 if nothing were so), compiled 11.8 and 6.1
 * (11.1 and 6.0): linkedin/Liger-Kernel, benchmark/data/all_benchmark_data_megatron.csv at 7097ab9c.
 *
 * The all-reduces (maximum, sum and the target's logit: 12 bytes per token) are not modelled.
 * Composer computes two metrics from the logits of a micro-batch, after its backward (trainer.py: update_metric), each
 * with PyTorch's log_softmax in fp32 (autocast): `measured` adds their kernels to the loss. */
static void loss_kernels(struct operators *ops)
{
    const struct cut *cut = ops->cut;
    double logits = cut->tokens * cut->vocabulary, value = cut->value, conversion = value < 4 ? value + 4 : 0;
    double forward[] = {[CROSS_ENTROPY_FP32] = value + 9 * 4,
                        [CROSS_ENTROPY_PLAIN] = 4 * value,
                        [CROSS_ENTROPY_FUSED] = value,
                        [CROSS_ENTROPY_COMPILED] = value + 7 * 4,
                        [CROSS_ENTROPY_CONVERTED] = conversion + 4 * 4,
                        [CROSS_ENTROPY_CHUNKED] = 3 * value};
    double backward[] = {[CROSS_ENTROPY_FP32] = 3 * 4 + value,
                         [CROSS_ENTROPY_PLAIN] = 5 * value,
                         [CROSS_ENTROPY_FUSED] = 2 * value,
                         [CROSS_ENTROPY_COMPILED] = value + 4 * 4,
                         [CROSS_ENTROPY_CONVERTED] = conversion + 5 * 4,
                         [CROSS_ENTROPY_CHUNKED] = 0};
    int form = (int)cut->cross_entropy;
    int broadcasts = form == CROSS_ENTROPY_FP32 ? 2 : form == CROSS_ENTROPY_COMPILED;

    for (int i = 0; i < broadcasts; i++)
        unvectorized_loss(ops, PHASE_FORWARD, logits);
    loss_kernel(ops, "cross-entropy", PHASE_FORWARD, logits * (forward[form] - broadcasts * 2 * 4));
    if (form == CROSS_ENTROPY_FP32)
        unvectorized_loss(ops, PHASE_BACKWARD_INPUT, logits);
    if (backward[form] > 0)
        loss_kernel(ops, "cross-entropy", PHASE_BACKWARD_INPUT,
                    logits * (backward[form] - (form == CROSS_ENTROPY_FP32) * 2 * 4));
    for (int i = 0; cut->measured && i < 2; i++)
        loss_kernel(ops, "metric", PHASE_FORWARD, logits * (value + 4 + 4 * 4));
}

/* Tokens of a chunk: so many that their logits take about as much as the tokens themselves, the next power of two (Liger
 * Kernel at ead96b61, ops/fused_linear_cross_entropy.py, fused_linear_cross_entropy_forward). */
static double chunk_tokens(const struct cut *cut)
{
    double least = ceil(cut->tokens / ceil(cut->vocabulary / cut->shape->embedding_size));

    return fmin(exp2(ceil(log2(least))), cut->tokens);
}

/* The product of each chunk after the first reads and writes the sum of the weight's gradient (Liger Kernel: addmm). On an
 * A100, 4,096 to 32,768 tokens of width 4,096 with a vocabulary of 128,256 take 65, 55, 56 and 59 ms longer than with
 * converted logits' products and loss (benchmark/data/all_benchmark_data.csv, 0.2.1), in up to 32 chunks of 2.1 GB. */
static void chunk_sums(struct operators *ops)
{
    const struct cut *cut = ops->cut;
    double chunks = ceil(cut->tokens / chunk_tokens(cut)), weights = cut->vocabulary * cut->shape->embedding_size;

    if (!cut->lora && chunks > 1)
        memory_kernel(ops, "chunk-sums", PHASE_BACKWARD_WEIGHT, CLASS_OTHER, (chunks - 1) * 2 * cut->value * weights);
}

/* Bytes per logit that are held in addition to loss_activation while the loss is computed (forward) and while its
 * gradient is (backward).
 *
 * fp32 in Megatron-LM: the half-precision logits. Their conversion becomes the softmax in place, the softmax the
 *     gradient in place, and the gradient is converted back.
 * converted, and fp32 in code without fused kernels, where nothing is in place: forward the logits and their
 *     conversion, backward the gradients of the softmax's logarithm and of its input. Over a tensor group one tensor
 *     more in each (torch/distributed/tensor/parallel/loss.py: the difference to the maximum; the sum of the target's
 *     gradient and the exponentials).
 * plain: forward the logits, backward two gradients.
 * compiled: torch.compile needs a separate buffer for a tensor that it also reduces or scatters into (Megatron-LM,
 *     fusions/fused_cross_entropy.py, at 0cb4a9c8).
 * fused: backward the gradient.
 * chunked: the logits of a chunk, whose gradient takes their place, and in the forward already the gradient of the output
 *     layer's input. */
static struct workspace loss_workspace(const struct cut *cut)
{
    double chunk = chunk_tokens(cut) / cut->tokens;
    int more = cut->tensor > 1;

    if (cut->cross_entropy == CROSS_ENTROPY_FUSED)
        return (struct workspace){.backward = cut->value};
    if (cut->cross_entropy == CROSS_ENTROPY_CHUNKED)
        return (struct workspace){.forward = (chunk + cut->shape->embedding_size / cut->vocabulary) * cut->value,
                                  .backward = chunk * cut->value};
    if (cut->cross_entropy == CROSS_ENTROPY_PLAIN)
        return (struct workspace){.forward = cut->value, .backward = 2 * cut->value};
    if (cut->cross_entropy == CROSS_ENTROPY_COMPILED)
        return (struct workspace){.forward = cut->value + 4, .backward = cut->value + 4};
    if (cut->cross_entropy == CROSS_ENTROPY_FP32 && cut->shape->ways.fused_kernels)
        return (struct workspace){.forward = cut->value, .backward = cut->value};
    return (struct workspace){.forward = cut->value + (1 + more) * 4, .backward = (2 + more) * 4};
}

/* The softmax in fp32 is kept; or its logarithm in the logits' format; or, fused, the logits, from which it is
 * recomputed; or, chunked, nothing. */
void loss(struct operators *ops)
{
    const struct cut *cut = ops->cut;
    double logits = cut->tokens * cut->vocabulary;
    bool narrow = cut->cross_entropy == CROSS_ENTROPY_FUSED || cut->cross_entropy == CROSS_ENTROPY_PLAIN;
    bool chunked = cut->cross_entropy == CROSS_ENTROPY_CHUNKED;
    struct workspace held = loss_workspace(cut);
    struct operator *op = operator_begin(ops, "loss", 0);

    op->loss = true;
    op->peak = (struct workspace){logits * held.forward, logits * held.backward};
    loss_kernels(ops);
    if (chunked)
        chunk_sums(ops);
    keep_outer(ops, "loss", chunked ? 0 : logits, narrow ? cut->value : 4);
    ops->values.items[ops->values.count - 1].loss = true;
}
