/* What a block keeps from its forward to its backward, tensor by tensor, and the form in which it keeps it: as it is,
 * as the index of a piece of a derivative, as a random projection, or quantized. */
#include "model/operator_internal.h"

#include <math.h>

#include "base/base.h"

/* ActNN (Chen et al. 2021) and GACT (Liu et al. 2022) quantize groups of 256 values, each with its least value and its
 * scale, which have 2 bytes each (ucbrise/actnn, actnn/conf.py: group_size; actnn/ops.py: quantize_activation). */
static double quantized_bytes(const struct cut *cut)
{
    enum { GROUP = 256, GROUP_BYTES = 2 * 2 };

    return cut->form.activations_bits / 8. + (double)GROUP_BYTES / GROUP;
}

static bool is_index(const struct cut *cut, const struct kept_value *value)
{
    return value->kind == KEPT_FUNCTION && cut->form.few_bit > 0;
}

static bool is_quantized(const struct cut *cut, const struct kept_value *value)
{
    return cut->form.activations_bits > 0 && value->kind != KEPT_AS_IT_IS && !is_index(cut, value);
}

/* A value where modules run again; 0 tensors: it is not kept. */
static struct kept_as kept_as(const struct kept_value *value, unsigned again)
{
    if (value->modules & again)
        return (struct kept_as){0};
    return value->reduced_by & again ? value->reduced : value->as;
}

/* Values that are kept: an input that is not kept as it is by each linear layer that reads it; of a function, however
 * many values it would keep, one index. */
static double kept_values(const struct cut *cut, const struct kept_value *value, struct kept_as as)
{
    double values = value->rows * as.width;

    if (value->kind == KEPT_INPUT && projects(cut))
        return as.tensors * projected_rows(cut, value->rows) * as.width;
    if (as.tensors > 0 && (is_index(cut, value) || (value->kind == KEPT_INPUT && !is_quantized(cut, value))))
        return values;
    return as.tensors * values;
}

double kept_bytes(const struct cut *cut, const struct kept_value *value, unsigned again)
{
    struct kept_as as = kept_as(value, again);
    double each = is_index(cut, value)     ? cut->form.few_bit / 8. :
                  is_quantized(cut, value) ? quantized_bytes(cut) :
                                             as.bytes;

    return kept_values(cut, value, as) * each;
}

double kept_sum(const struct operators *ops, bool block, unsigned again)
{
    double bytes = 0;

    for (size_t i = 0; i < ops->values.count; i++)
        if ((ops->values.items[i].half != HALF_NEITHER) == block)
            bytes += kept_bytes(ops->cut, &ops->values.items[i], again);
    return bytes;
}

/* A value as the tensors that it is kept as: each linear layer's own projection or packed input, each factor. */
static void list_tensors(const struct cut *cut, const struct kept_value *value, unsigned again,
                         struct saved_tensor *tensors, size_t *count)
{
    bool one = is_index(cut, value) || (value->kind == KEPT_INPUT && !projects(cut) && !is_quantized(cut, value));
    int parts = one ? 1 : kept_as(value, again).tensors;
    double bytes = kept_bytes(cut, value, again) / parts;

    for (int i = 0; bytes > 0 && i < parts; i++)
        tensors[(*count)++] = (struct saved_tensor){value->name, bytes, value->order == KEPT_CORE};
}

const struct saved_tensor *kept_list(struct arena *arena, const struct operators *ops, unsigned again, size_t *count)
{
    enum { MOST_PARTS = 8 };
    struct saved_tensor *tensors = ARENA_ARRAY(arena, struct saved_tensor, ops->values.count * MOST_PARTS + 1);

    *count = 0;
    for (size_t i = 0; i < ops->values.count; i++) {
        BUG_IF(ops->values.items[i].as.tensors > MOST_PARTS);
        if (ops->values.items[i].half != HALF_NEITHER)
            list_tensors(ops->cut, &ops->values.items[i], again, tensors, count);
    }
    return tensors;
}

/* A pass over the values finds the least and the largest one of each group; another one rounds and packs them (ActNN,
 * cpp_extension/minimax_cuda_kernel.cu, quantization_cuda_kernel.cu). The backward unpacks them before it reads them.
 * Such layers pack in every forward, also in one that is computed again later. */
void packing_kernels(struct operators *ops, const struct operator *op)
{
    const struct cut *cut = ops->cut;
    bool core = op->modules >> MODULE_CORE & 1;

    for (size_t i = 0; i < ops->values.count; i++) {
        const struct kept_value *value = &ops->values.items[i];
        double packed = kept_bytes(cut, value, 0), whole = kept_values(cut, value, value->as) * value->as.bytes;
        enum phase phase = value->kind == KEPT_INPUT ? PHASE_BACKWARD_WEIGHT : PHASE_BACKWARD_INPUT;
        int n = value->as.tensors;

        if (value->half != op->half || (value->order == KEPT_CORE) != core || !is_quantized(cut, value) || n == 0)
            continue;
        plain_kernels(ops, "least-largest", PHASE_FORWARD, CLASS_REDUCTION, n, whole);
        plain_kernels(ops, "quantize", PHASE_FORWARD, CLASS_OTHER, n, whole + packed);
        plain_kernels(ops, "dequantize", phase, CLASS_OTHER, n, packed + whole);
    }
}
