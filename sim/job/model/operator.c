/* The list of a layer's operators while it is written: kernels, weights, exchanges and kept tensors go into it. */
#include "model/operator.h"

#include <math.h>
#include <stdlib.h>

#include "base/base.h"
#include "hardware/gpu.h"
#include "kernels/cost.h"

void operators_begin(struct operators *ops, const struct cut *cut)
{
    ops->cut = cut;
    ops->half = HALF_NEITHER;
    ops->within = 0;
    ops->list.count = ops->kernels.count = ops->weights.count = ops->values.count = ops->block_end = 0;
    ops->input = ops->unpacked = ops->base = 0;
}

void operators_release(struct operators *ops)
{
    free(ops->list.items);
    free(ops->kernels.items);
    free(ops->weights.items);
    free(ops->values.items);
}

struct operator *operator_begin(struct operators *ops, const char *name, unsigned modules)
{
    struct operator *op = GROW(&ops->list);

    ops->current = ops->list.count - 1;
    *op = (struct operator){
        .name = name, .half = ops->half, .modules = modules | ops->within, .first = ops->kernels.count};
    return op;
}

void add_kernel(struct operators *ops, struct kernel kernel)
{
    *GROW(&ops->kernels) = kernel;
    ops->list.items[ops->current].nkernels++;
}

/* FLOPs of all matrices together. A grouped product's rows are of all experts, so its batch is in them already. */
static double product_flop(const struct kernel *kernel)
{
    return 2 * (kernel->kind == KERNEL_GROUPED ? 1 : kernel->batch) * kernel->m * kernel->n * kernel->k;
}

/* Each operand is read once and the result written once. Experts share the rows, and each has a matrix of weights (tn:
 * of their gradients). */
static double product_bytes(const struct kernel *kernel, double operand, double result)
{
    double m = kernel->m, n = kernel->n, k = kernel->k;

    if (kernel->kind != KERNEL_GROUPED)
        return kernel->batch * (operand * (m * k + k * n) + result * m * n);
    if (kernel->layout == LAYOUT_TN)
        return operand * (m * k + k * n) + kernel->batch * result * m * n;
    return operand * (m * k + kernel->batch * k * n) + result * m * n;
}

void product_kernel(struct operators *ops, struct kernel kernel)
{
    kernel.name = product_names[kernel.product];
    /* Where the rows are the busiest GPU's, FLOPs are the mean GPU's. */
    kernel.flop = product_flop(&kernel) / (kernel.kind == KERNEL_GROUPED ? ops->cut->busiest : 1);
    kernel.bytes = product_bytes(&kernel, dtype_bytes(kernel.dtype), ops->cut->value);
    kernel.launches = 1;
    add_kernel(ops, kernel);
}

void plain_kernels(struct operators *ops, const char *name, enum phase phase, enum memory_class class, int operations,
                   double bytes)
{
    add_kernel(ops, (struct kernel){.name = name, .kind = KERNEL_MEMORY, .phase = phase, .class = class,
                                    .dtype = ops->cut->dtype, .bytes = bytes / operations, .launches = operations});
}

void memory_kernel(struct operators *ops, const char *name, enum phase phase, enum memory_class class, double bytes)
{
    plain_kernels(ops, name, phase, class, 1, bytes);
}

void unvectorized_kernels(struct operators *ops, const char *name, enum phase phase, enum memory_class class,
                          int operations, double values, double bytes)
{
    plain_kernels(ops, name, phase, class, operations, bytes);
    ops->kernels.items[ops->kernels.count - 1].unvectorized = values / operations;
}

void sends(struct operators *ops, enum sending what, int forward, int backward, double bytes)
{
    ops->list.items[ops->current].sends[what] = (struct sends){forward, backward, bytes};
}

void parameter(struct operators *ops, struct weights weights)
{
    *GROW(&ops->weights) = weights;
}

void vector(struct operators *ops, enum place place, double elements)
{
    parameter(ops, (struct weights){.place = place, .elements = elements, .matrix.expert = place == PLACE_EXPERTS});
}

void matrix(struct operators *ops, enum place place, double rows, double columns)
{
    parameter(ops,
              (struct weights){
                  .place = place, .elements = rows * columns, .rows = rows, .matrix = {rows, columns, .count = 1}});
}

void norm_weights(struct operators *ops, enum place place, double width)
{
    vector(ops, place, width);
    if (ops->cut->shape->norm_bias)
        vector(ops, place, width);
}

int keep(struct operators *ops, struct kept_value value)
{
    value.half = value.half ? value.half : ops->half;
    value.modules |= ops->within;
    for (size_t i = 0; value.joined && i < ops->values.count; i++) {
        struct kept_value *first = &ops->values.items[i];

        if (first->order != value.order || !first->joined)
            continue;
        first->as.tensors += value.kind == KEPT_AS_IT_IS ? 0 : value.as.tensors;
        first->reduced.tensors += value.kind == KEPT_AS_IT_IS ? 0 : value.reduced.tensors;
        first->rows += value.kind == KEPT_AS_IT_IS ? value.rows : 0;
        return (int)i;
    }
    *GROW(&ops->values) = value;
    return (int)ops->values.count - 1;
}

int keep_projection_input(struct operators *ops, double width)
{
    return keep(ops, (struct kept_value){.name = "projection input", .order = KEPT_PROJECTION_INPUT, .kind = KEPT_INPUT,
                                         .rows = ops->cut->tokens, .as = {width, ops->cut->saved, 0}});
}

void keep_outer(struct operators *ops, const char *name, double values, double bytes)
{
    keep(ops, (struct kept_value){.name = name, .kind = KEPT_AS_IT_IS, .rows = values, .as = {1, bytes, 1}});
}

void packs(struct operators *ops, bool core)
{
    if (ops->cut->form.activations_bits > 0)
        operator_begin(ops, core ? "pack-core" : "pack", core ? 1u << MODULE_CORE : 0)->packs = true;
}
