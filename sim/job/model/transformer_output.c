/* The kernels of the first layer, the embedding, and of the last: the output layer and the loss, which follows it;
 * and of multi-token prediction, whose blocks begin and end as these layers do. */
#include "model/transformer.h"

static void loss_kernel(struct kernels *list, const struct cut *cut, const char *name, enum phase phase, double bytes)
{
    memory_kernel(list, cut, name, phase,
                  phase == PHASE_FORWARD ? CLASS_CROSS_ENTROPY_FORWARD : CLASS_CROSS_ENTROPY_BACKWARD, bytes);
    list->items[list->count - 1].loss = true;
}

/* A kernel in fp32 that changes the logits in place by a value of each row. */
static void unvectorized_loss(struct kernels *list, const struct cut *cut, enum phase phase, double logits)
{
    loss_kernel(list, cut, "cross-entropy", phase, 2 * 4 * logits);
    list->items[list->count - 1].unvectorized = logits;
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
 *
 * What broadcasts a value of each row is unvectorized, in fp32 and in place: the difference and the quotients of fp32,
 * and its backward's product; the quotients of compiled. Megatron Core's own functions take 15.8 and 5.4 ms for 8192
 * rows of 131072 logits in bf16 on an H100 (here 14.9 and 5.8; 12.6 and 4.6 if nothing were so), compiled 11.8 and 6.1
 * (11.1 and 6.0): linkedin/Liger-Kernel, benchmark/data/all_benchmark_data_megatron.csv at 7097ab9c.
 *
 * The all-reduces (maximum, sum and the target's logit: 12 bytes per token) are not modelled.
 * Composer computes two metrics from the logits of a micro-batch, after its backward (trainer.py: update_metric), each
 * with PyTorch's log_softmax in fp32 (autocast): `measured` adds their kernels to the loss. */
static void loss_kernels(struct kernels *list, const struct cut *cut)
{
    double logits = cut->tokens * cut->vocabulary, value = cut->value, conversion = value < 4 ? value + 4 : 0;
    double forward[] = {[CROSS_ENTROPY_FP32] = value + 9 * 4, [CROSS_ENTROPY_PLAIN] = 4 * value,
                        [CROSS_ENTROPY_FUSED] = value, [CROSS_ENTROPY_COMPILED] = value + 7 * 4,
                        [CROSS_ENTROPY_CONVERTED] = conversion + 4 * 4};
    double backward[] = {[CROSS_ENTROPY_FP32] = 3 * 4 + value, [CROSS_ENTROPY_PLAIN] = 5 * value,
                         [CROSS_ENTROPY_FUSED] = 2 * value, [CROSS_ENTROPY_COMPILED] = value + 4 * 4,
                         [CROSS_ENTROPY_CONVERTED] = conversion + 5 * 4};
    int form = (int)cut->cross_entropy;
    int broadcasts = form == CROSS_ENTROPY_FP32 ? 2 : form == CROSS_ENTROPY_COMPILED;

    for (int i = 0; i < broadcasts; i++)
        unvectorized_loss(list, cut, PHASE_FORWARD, logits);
    loss_kernel(list, cut, "cross-entropy", PHASE_FORWARD, logits * (forward[form] - broadcasts * 2 * 4));
    if (form == CROSS_ENTROPY_FP32)
        unvectorized_loss(list, cut, PHASE_BACKWARD_INPUT, logits);
    loss_kernel(list, cut, "cross-entropy", PHASE_BACKWARD_INPUT,
                logits * (backward[form] - (form == CROSS_ENTROPY_FP32) * 2 * 4));
    for (int i = 0; cut->measured && i < 2; i++)
        loss_kernel(list, cut, "metric", PHASE_FORWARD, logits * (value + 4 + 4 * 4));
}

/* BERT's transform before its output layer: a product, GELU and norm, not split over the tensor group. */
static void transform(struct kernels *list, const struct cut *cut)
{
    double values = cut->own_tokens * cut->hidden * cut->value;

    weight_product(list, cut, PRODUCT_TRANSFORM, cut->own_tokens, cut->hidden, cut->hidden);
    memory_kernel(list, cut, "gelu", PHASE_FORWARD, CLASS_GELU_FORWARD, 2 * values);
    memory_kernel(list, cut, "gelu", PHASE_BACKWARD_INPUT, CLASS_GELU_BACKWARD, 3 * values);
    norm_kernels(list, cut, "transform-norm");
}

/* The columns of padding in the vocabulary take time, but they do not count as FLOPs that training needs. */
static void logits(struct kernels *list, const struct cut *cut)
{
    size_t first = list->count;

    weight_product(list, cut, PRODUCT_LOGITS, cut->tokens, cut->columns, cut->shape->embedding_size);
    for (size_t i = first; i < list->count; i++)
        list->items[i].flop *= cut->shape->vocabulary / (cut->tensor * cut->columns);
}

void output_kernels(struct kernels *list, const struct cut *cut)
{
    if (cut->shape->final_norm)
        norm_kernels(list, cut, "final-norm");
    if (cut->shape->head != HEAD_NONE)
        head_kernels(list, cut);
}

void head_kernels(struct kernels *list, const struct cut *cut)
{
    if (cut->shape->head == HEAD_MASKED_LANGUAGE_MODEL)
        transform(list, cut);
    if (cut->shape->embedding_size != cut->shape->hidden)
        weight_product(list, cut, PRODUCT_TRANSFORM, cut->own_tokens, cut->shape->embedding_size, cut->hidden);
    logits(list, cut);
    if (cut->shape->head == HEAD_MASKED_LANGUAGE_MODEL || cut->shape->head_bias)
        bias_kernels(list, cut, "logits-bias", cut->tokens, cut->vocabulary, false);
    loss_kernels(list, cut);
}

/* Adds rows of an embedding table to the hidden states. Forward: the first table reads a row per token and writes it,
 * further tables also read and write the sum; a row that repeats (positions in all samples, token types) is read once.
 * Backward: reads dy and adds to the rows. */
static void lookup(struct kernels *list, const struct cut *cut, const char *name, double rows, double columns,
                   bool further)
{
    double width = columns * cut->value;

    memory_kernel(list, cut, name, PHASE_FORWARD, CLASS_EMBEDDING_FORWARD,
                  (rows + (further ? 2 : 1) * cut->tokens) * width);
    if (!cut->lora)
        memory_kernel(list, cut, name, PHASE_BACKWARD_WEIGHT, CLASS_EMBEDDING_BACKWARD,
                      (cut->tokens + 2 * rows) * width);
}

void embedding_kernels(struct kernels *list, const struct cut *cut)
{
    double elements = cut->own_tokens * cut->hidden;

    lookup(list, cut, "embedding", cut->tokens, cut->shape->embedding_size, false);
    if (cut->shape->embedding_size != cut->shape->hidden)
        weight_product(list, cut, PRODUCT_TRANSFORM, cut->own_tokens, cut->hidden, cut->shape->embedding_size);
    if (cut->shape->positions > 0)
        lookup(list, cut, "positions", cut->queries, cut->hidden, true);
    if (cut->shape->token_types > 0)
        lookup(list, cut, "token-types", cut->shape->token_types, cut->hidden, true);
    if (cut->shape->embedding_norm)
        norm_kernels(list, cut, "embedding-norm");
    if (cut->shape->dropout > 0) {
        memory_kernel(list, cut, "dropout", PHASE_FORWARD, CLASS_DROPOUT_RESIDUAL_FORWARD,
                      elements * (2 * cut->value + 1));
        memory_kernel(list, cut, "dropout", PHASE_BACKWARD_WEIGHT, CLASS_DROPOUT_RESIDUAL_BACKWARD,
               elements * (2 * cut->value + 1));
    }
}

/* Megatron Core, multi_token_prediction.py (core_v0.14.0): the embedding of the tokens one further, its norm and that of the
 * hidden states, torch.cat of both, their product, a block and a norm. torch.cat's backward is views. */
void prediction_kernels(struct kernels *list, const struct cut *cut)
{
    double values = cut->own_tokens * cut->hidden * cut->value;

    lookup(list, cut, "embedding", cut->tokens, cut->shape->embedding_size, false);
    norm_kernels(list, cut, "embedding-norm");
    norm_kernels(list, cut, "hidden-norm");
    memory_kernel(list, cut, "concatenate", PHASE_FORWARD, CLASS_COPY, 4 * values);
    block_product(list, cut, PRODUCT_PREDICTION, 0, cut->tokens, cut->hidden / cut->tensor, 2 * cut->hidden);
    block_kernels(list, cut);
    norm_kernels(list, cut, "prediction-norm");
}
