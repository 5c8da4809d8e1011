/* A block's experts, which stand where the MLP would be: their rows and their kernels. */
#include "model/transformer.h"

#include <math.h>

/* Routing is assumed to be balanced: every expert gets equally many tokens. With a capacity factor each GPU sends each
 * expert as many rows as its capacity, padding included (Fedus et al. 2021, Switch Transformers, section 2.2; rounded
 * up as there). */
void cut_experts(struct cut *cut, const struct shard *shard)
{
    const struct transformer *shape = cut->shape;
    double share = shape->experts ? (double)shape->experts_per_token / shape->experts : 0;
    double rows = cut->own_tokens * share, tensor = shard->tensor;

    if (shard->capacity > 0)
        rows = ceil(rows * shard->capacity);
    cut->experts = shape->experts / fmax(1, shard->dispatch_group);
    cut->expert_ffn = shape->expert_ffn / tensor;
    cut->shared_ffn = (double)shape->shared_experts * shape->expert_ffn / tensor;
    cut->sent = rows * shape->experts;
    cut->gathers_rows = shard->sequence_parallel && shard->tensor > 1;
    cut->received = cut->sent * (cut->gathers_rows ? tensor : 1);
}

/* An MLP of `rows` rows; with `experts` each of so many computes its share of the rows. */
static void expert_mlp(struct kernels *list, const struct cut *cut, enum product_id up, enum product_id down,
                       double experts, double rows, double ffn)
{
    bool gated = cut->shape->mlp == MLP_SWIGLU;

    block_product(list, cut, up, experts, rows, (gated ? 2 : 1) * ffn, cut->hidden);
    activation_function(list, cut, rows * ffn);
    block_product(list, cut, down, experts, rows, cut->hidden, ffn);
}

/* Experts. The router is a product, and a softmax with a choice in fp32. Rows are copied into the order of the experts
 * (permute). If a GPU has several experts and receives rows from other GPUs, it copies them into the order of its
 * experts (sort). The experts' results are weighted and added (combine). */
void expert_kernels(struct kernels *list, const struct cut *cut)
{
    double width = cut->hidden * cut->value, choices = 4 * cut->own_tokens * cut->shape->experts;
    bool sorts = cut->experts > 1 && cut->experts < cut->shape->experts;

    weight_product(list, cut, PRODUCT_ROUTER, cut->own_tokens, cut->shape->experts, cut->hidden);
    memory_kernel(list, cut, "routing", PHASE_FORWARD, CLASS_SOFTMAX_FORWARD, 2 * choices);
    memory_kernel(list, cut, "routing", PHASE_BACKWARD_INPUT, CLASS_SOFTMAX_BACKWARD, 3 * choices);
    memory_kernel(list, cut, "permute", PHASE_FORWARD, CLASS_COPY, (cut->own_tokens + cut->sent) * width);
    memory_kernel(list, cut, "permute", PHASE_BACKWARD_INPUT, CLASS_COPY, (cut->own_tokens + cut->sent) * width);
    for (int phase = PHASE_FORWARD; sorts && phase <= PHASE_BACKWARD_INPUT; phase++)
        memory_kernel(list, cut, "sort", (enum phase)phase, CLASS_COPY, 4 * cut->received * width);
    expert_mlp(list, cut, PRODUCT_EXPERT_UP, PRODUCT_EXPERT_DOWN, cut->experts, cut->received, cut->expert_ffn);
    memory_kernel(list, cut, "combine", PHASE_FORWARD, CLASS_OTHER, (cut->own_tokens + cut->sent) * width);
    memory_kernel(list, cut, "combine", PHASE_BACKWARD_INPUT, CLASS_OTHER, (cut->own_tokens + 2 * cut->sent) * width);
    if (cut->shared_ffn > 0)
        expert_mlp(list, cut, PRODUCT_SHARED_UP, PRODUCT_SHARED_DOWN, 0, cut->tokens, cut->shared_ffn);
}
