/* From a list of operators to a layer: every total is one loop over the list. */
#include "model/operator_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

/* ---- kernels, and which of them run again ---- */

static void join_kernels(struct arena *arena, struct operators *ops, struct layer *layer)
{
    struct operator *items = ops->list.items;
    struct operator *copy = ARENA_ARRAY(arena, struct operator, ops->list.count + 1);
    struct kernel *kernels;

    for (size_t i = 0; i < ops->list.count; i++) {
        if (!items[i].packs)
            continue;
        ops->current = i;
        items[i].first = ops->kernels.count;
        packing_kernels(ops, &items[i]);
    }
    kernels = ARENA_ARRAY(arena, struct kernel, ops->kernels.count + 1);
    for (size_t i = 0; i < ops->list.count; i++) {
        if (items[i].nkernels)
            memcpy(kernels + layer->nkernels, ops->kernels.items + items[i].first, items[i].nkernels * sizeof *kernels);
        items[i].first = layer->nkernels;
        layer->nkernels += items[i].nkernels;
        copy[i] = items[i];
    }
    layer->operators = copy, layer->noperators = ops->list.count;
    layer->kernels = kernels;
}

/* Whether the sums of its product's results over the tensor group are scattered. */
static bool scatters(const struct operators *ops, const struct operator *op)
{
    return ops->cut->own_tokens < ops->cut->tokens && op->sends[SENT_SUM].forward && op->product != PRODUCT_NONE;
}

/* Under recompute: operators. The forward's kernel of a block whose result is kept, NULL: none is. Fused attention, and
 * of the products of weights the first, the third, and so on (`products` counts them): torchtitan's policy for
 * operators (pytorch/torchtitan, parallelisms/parallelize_llama.py of 2024, _save_list and _get_custom_policy). To the
 * policy a product in 8 bits is a product of tensors in 8 bits, and counts as others do (pytorch/ao, torchao/float8).
 */
static const struct kernel *kept_kernel(const struct operators *ops, const struct operator *op, int *products)
{
    const struct kernel *kernel = ops->kernels.items + op->first;
    bool core = op->modules >> MODULE_CORE & 1;

    if (op->nkernels == 0 || kernel->phase != PHASE_FORWARD)
        return NULL;
    if (kernel->kind == KERNEL_MATMUL && !core)
        return ++*products % 2 ? kernel : NULL;
    return kernel->kind == KERNEL_ATTENTION ? kernel : NULL;
}

/* Of scattered sums nothing runs again, because they are kept; torch.compile leaves out the product before them too. */
static void mark_again(struct operators *ops)
{
    bool operators = ops->cut->recompute == RECOMPUTE_OPERATORS;
    int products = 0;

    for (size_t i = 0; i < ops->block_end; i++) {
        struct operator *op = &ops->list.items[i];

        op->again = operators ? !kept_kernel(ops, op, &products) && !op->ends && !scatters(ops, op) :
                                (op->modules & ops->cut->recomputed) != 0;
    }
}

/* B of the results that recompute: operators keeps, and of the sums that a tensor group scatters; `needed`: of those
 * that the backward needs. */
static double kept_results(const struct operators *ops, bool needed)
{
    const struct cut *cut = ops->cut;
    double bytes = 0;
    int products = 0;

    for (size_t i = 0; i < ops->block_end; i++) {
        const struct operator *op = &ops->list.items[i];
        const struct kernel *kernel = kept_kernel(ops, op, &products);

        if (needed && op->ends)
            continue;
        if (scatters(ops, op))
            bytes += cut->own_tokens * cut->hidden * cut->value;
        if (kernel)
            bytes += kernel->kind == KERNEL_ATTENTION ?
                         cut->tokens * cut->attended * cut->value + 4 * cut->scores / cut->sequence :
                         kernel->batch * kernel->m * kernel->n * cut->value;
    }
    return bytes;
}

/* ---- parameters ---- */

/* B of a value. Dettmers et al. 2023, section 3, "Double Quantization": 4 bits a value, 8 for the scale of 64 values, 32 for that
 * of 256 of these scales. GPTQ: of each 128 values a scale in half precision and a zero of 4 bits. */
static double packed_bytes(const struct cut *cut)
{
    return cut->lora->weights == LORA_WEIGHTS_NF4 ? 4 / 8. + 1 / 64. + 4 / (64. * 256) : 4 / 8. + (2 + 4 / 8.) / 128;
}

/* LoRA freezes all but its adapters; blocks may keep their frozen weights in four bits. */
static void add_tensor(struct layer *layer, const struct cut *cut, const struct weights *weights, double *sizes,
                       double *rows, struct linear *linears, struct matrix *matrices)
{
    bool packs = weights->linear.out > 0 && weights->linear.place != LINEAR_OUTPUT && weights_packed(cut);
    double kept = packs ? packed_bytes(cut) / cut->value : 1;
    bool experts = weights->place == PLACE_EXPERTS || weights->place == PLACE_EXPERT_ADAPTERS;

    if (cut->lora && weights->place < PLACE_ADAPTERS) {
        layer->packed += weights->elements * (1 - kept);
        layer->frozen += weights->elements * kept;
        layer->divided_frozen += experts ? weights->elements * kept : 0;
        return;
    }
    if (weights->linear.out > 0)
        linears[layer->nlinears++] = weights->linear;
    if (weights->elements == 0)
        return;
    layer->parameters += weights->elements;
    layer->divided_parameters += experts ? weights->elements : 0;
    sizes[layer->ntensors] = weights->elements;
    matrices[layer->ntensors] = weights->matrix;
    rows[layer->ntensors++] = weights->rows;
    layer->ndivided += experts;
}

static void add_parameters(struct arena *arena, const struct operators *ops, struct layer *layer)
{
    size_t n = ops->weights.count + 1;
    double *sizes = ARENA_ARRAY(arena, double, n), *rows = ARENA_ARRAY(arena, double, n);
    struct linear *linears = ARENA_ARRAY(arena, struct linear, n);
    struct matrix *matrices = ARENA_ARRAY(arena, struct matrix, n);

    for (enum place place = 0; place < PLACE_COUNT; place++)
        for (size_t i = 0; i < ops->weights.count; i++)
            if (ops->weights.items[i].place == place)
                add_tensor(layer, ops->cut, &ops->weights.items[i], sizes, rows, linears, matrices);
    layer->tensors = sizes, layer->rows = rows, layer->matrices = matrices;
    layer->linears = linears;
}

/* ---- memory ---- */

/* Rajbhandari et al. 2020, section 3.2, footnote: 12 x hidden x batch x sequence x layers values. They are the query,
 * the key, the value, the attention's output, and the input and output of the GELU; tensor parallelism divides them
 * all. */
static void keep_rajbhandari(struct operators *ops)
{
    const struct cut *cut = ops->cut;

    ops->values.count = 0;
    if (ops->block_end)
        keep(ops, (struct kept_value){.name = "12 values a token", .kind = KEPT_AS_IT_IS, .half = HALF_ATTENTION,
                                      .rows = 12 * cut->tokens * cut->hidden * cut->value / cut->tensor,
                                      .as = {1, 1, 1}});
}

static void sort_values(struct operators *ops)
{
    struct kept_value *values = ops->values.items;

    for (size_t i = 1; i < ops->values.count; i++)
        for (size_t k = i; k > 0 && values[k - 1].order > values[k].order; k--) {
            struct kept_value swap = values[k];

            values[k] = values[k - 1], values[k - 1] = swap;
        }
}

/* The largest of all operators' workspaces, beside what is always held. */
static struct workspace workspace_of(const struct operators *ops, bool selective)
{
    struct workspace most = {0};

    for (size_t i = 0; i < ops->list.count; i++) {
        const struct operator *op = &ops->list.items[i];

        most.forward = fmax(most.forward, op->peak.forward);
        most.backward = fmax(most.backward, op->peak.backward + (selective ? op->selective : 0));
    }
    return (struct workspace){most.forward + ops->unpacked, ops->base + most.backward + ops->unpacked};
}

/* Korthikanti et al. 2022, section 4.1 and table 2, part by part, so that it holds for other shapes. For a GPT with
 * 2-byte values: s b h (10 + 24/t + 5 a s/(h t)) bytes, all divided by t with sequence parallelism. The input of a
 * product is kept for the gradient of its weights, so under LoRA only if the product has an adapter. Selective
 * recomputation keeps all but the core of attention. A backward under recompute: modules holds all that it would keep
 * without.
 *
 * Under recompute: operators a block keeps its input and some results. Those that its backward does not need it keeps
 * in eager mode alone: torch.compile saves what the backward reads (torch/_functorch/partitioners.py). In its backward
 * it holds all that it would keep without recomputation; what is kept of the tail is no part of that. */
static void add_memory(const struct operators *ops, struct layer *layer)
{
    const struct cut *cut = ops->cut;
    bool selective = cut->recompute == RECOMPUTE_SELECTIVE;
    unsigned core = 1u << MODULE_CORE, again = cut->recomputed | (selective ? core : 0);
    double all = kept_sum(ops, true, selective ? core : 0), kept = kept_sum(ops, true, again);
    double outer = kept_sum(ops, false, 0), input = cut->own_tokens * cut->hidden * cut->value;

    layer->workspace = workspace_of(ops, selective);
    if (ops->block_end) {
        layer->selective_activation = kept_sum(ops, true, cut->recomputed | core) + outer;
        layer->selective_workspace = workspace_of(ops, true);
    }
    if (ops->block_end && cut->recompute == RECOMPUTE_OPERATORS) {
        kept = input + kept_results(ops, cut->shape->ways.fused_kernels);
        layer->workspace.backward += fmax(0, all - input - kept_results(ops, true));
    } else {
        layer->workspace.backward += all - kept;
    }
    layer->activation = kept + outer;
    for (size_t i = 0; i < ops->values.count; i++)
        layer->loss_activation += ops->values.items[i].loss ? kept_bytes(cut, &ops->values.items[i], 0) : 0;
}

void operators_finish(struct arena *arena, struct operators *ops, struct layer *layer)
{
    unsigned again = ops->cut->recomputed | (ops->cut->recompute == RECOMPUTE_SELECTIVE ? 1u << MODULE_CORE : 0);

    if (ops->cut->formula == ACTIVATIONS_RAJBHANDARI)
        keep_rajbhandari(ops);
    sort_values(ops);
    mark_again(ops);
    add_memory(ops, layer);
    add_parameters(arena, ops, layer);
    if (ops->block_end && ops->cut->recompute != RECOMPUTE_OPERATORS) /* which keeps results of kernels */
        layer->saved = kept_list(arena, ops, again, &layer->nsaved);
    join_kernels(arena, ops, layer);
}
