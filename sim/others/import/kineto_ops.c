#include "import/kineto_ops.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "kernels/cost.h"
#include "kernels/kernel_time.h"

enum { DIMS = 8 };

/* A tensor among an operation's arguments. */
struct tensor {
    size_t ndims;
    double dims[DIMS], strides[DIMS];
    bool strided;                    /* strides were recorded */
    const char *type;                /* as PyTorch calls it */
};

static const struct { const char *type, *dtype; double bytes; } types[] = {
    {"float", "fp32", 4},
    {"c10::Half", "fp16", 2},
    {"c10::BFloat16", "bf16", 2},
    {"c10::Float8_e4m3fn", "fp8", 1},
    {"c10::Float8_e5m2", "fp8", 1},
};

static const char no_dims[] = "its shapes were not recorded (record_shapes=True), or its format is not known";

static int type_index(const char *type)
{
    for (size_t i = 0; i < COUNT(types); i++)
        if (!strcmp(types[i].type, type))
            return (int)i;
    return -1;
}

static bool read_numbers(const json_t *list, double numbers[DIMS], size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const json_t *number = json_array_get(list, i);

        numbers[i] = json_is_number(number) ? json_number_value(number) : -1;
        if (numbers[i] < 0 || numbers[i] > 1e12)
            return false;
    }
    return true;
}

/* Whether that argument is a tensor of a known format with `least` dimensions or more, none of them 0. */
static bool read_tensor(const json_t *args, size_t index, size_t least, struct tensor *tensor)
{
    const json_t *dims = json_array_get(json_object_get(args, "Input Dims"), index);
    const json_t *strides = json_array_get(json_object_get(args, "Input Strides"), index);
    const char *type = json_string_value(json_array_get(json_object_get(args, "Input type"), index));

    *tensor = (struct tensor){.ndims = json_array_size(dims), .type = type};
    if (!type || type_index(type) < 0 || tensor->ndims < least || tensor->ndims > DIMS || tensor->ndims == 0 ||
        !read_numbers(dims, tensor->dims, tensor->ndims))
        return false;
    for (size_t i = 0; i < tensor->ndims; i++)
        if (tensor->dims[i] < 1)
            return false;
    tensor->strided = json_array_size(strides) == tensor->ndims &&
                      read_numbers(strides, tensor->strides, tensor->ndims);
    return true;
}

static double elements(const struct tensor *tensor)
{
    double count = 1;

    for (size_t i = 0; i < tensor->ndims; i++)
        count *= tensor->dims[i];
    return count;
}

static const char *dtype_of(const struct tensor *tensor)
{
    return types[type_index(tensor->type)].dtype;
}

static int refuse(const char **why, const char *text)
{
    *why = text;
    return -1;
}

/* 'n' where the last dimension is contiguous, 't' where the one before it is, 0 else. A dimension of 1 has any stride.
 * */
static char order(const struct tensor *tensor)
{
    size_t last = tensor->ndims - 1;

    if (tensor->strides[last] == 1 || tensor->dims[last] == 1)
        return 'n';
    return tensor->strides[last - 1] == 1 || tensor->dims[last - 1] == 1 ? 't' : 0;
}

/* A product of two matrices, or of `batched` many. `transposed`: the second is n x k, as a linear layer's weight. */
static int read_product(const json_t *args, size_t first, bool batched, bool transposed, struct kineto_shape *shape,
                        const char **why)
{
    struct tensor a, b;
    size_t least = batched ? 3 : 2;

    if (!read_tensor(args, first, least, &a) || !read_tensor(args, first + 1, least, &b))
        return refuse(why, no_dims);
    if (!a.strided || !b.strided)
        return refuse(why, "no 'Input Strides' were recorded, which say how its operands lie in memory; newer PyTorch "
                      "has them");
    double k = a.dims[a.ndims - 1], n = b.dims[b.ndims - (transposed ? 2 : 1)];
    char orders[2] = {order(&a), order(&b)};

    if (strcmp(dtype_of(&a), dtype_of(&b)) != 0 || b.dims[b.ndims - (transposed ? 1 : 2)] != k ||
        (batched && b.dims[0] != a.dims[0]))
        return refuse(why, "its operands do not fit together");
    if (transposed)
        orders[1] = orders[1] == 'n' ? 't' : orders[1] == 't' ? 'n' : 0;
    shape->layout = orders[0] == 'n' && orders[1] == 'n' ? "nn" : orders[0] == 'n' && orders[1] == 't' ? "nt" :
                    orders[0] == 't' && orders[1] == 'n' ? "tn" : NULL;
    if (!shape->layout)
        return refuse(why, "no profile has GEMMs of operands that lie so in memory");
    shape->kernel = "matmul";
    shape->dtype = dtype_of(&a);
    shape->batch = batched ? a.dims[0] : 1;
    shape->m = batched ? a.dims[1] : elements(&a) / k;
    shape->n = n;
    shape->k = k;
    return 1;
}

/* Fused attention. `heads_first`: tensors are batch x heads x tokens x size, else batch x tokens x heads x size. */
static int read_attention(const json_t *args, size_t query, bool heads_first, size_t causal, bool backward,
                          struct kineto_shape *shape, const char **why)
{
    const char *mask = json_string_value(json_array_get(json_object_get(args, "Concrete Inputs"), causal));
    struct tensor q, k;
    int tokens = heads_first ? 2 : 1, heads = heads_first ? 1 : 2;

    if (!read_tensor(args, query, 3, &q) || !read_tensor(args, query + 1, 3, &k))
        return refuse(why, no_dims);
    if (q.ndims != 4 || k.ndims != 4)
        return refuse(why, "its sequences have lengths of their own, which are not recorded");
    if (!mask || (strcmp(mask, "True") != 0 && strcmp(mask, "False") != 0))
        return refuse(why, "no 'Concrete Inputs' were recorded, which say whether it is causal");
    shape->kernel = attention_direction_names[attention_direction(backward, !strcmp(mask, "True"))];
    shape->dtype = dtype_of(&q);
    shape->batch = q.dims[0] * q.dims[heads];
    shape->m = q.dims[tokens];
    shape->n = k.dims[tokens];
    shape->k = q.dims[3];
    return 1;
}

/* A kernel bound by memory, of the elements of one of its arguments. */
static int read_elements(const json_t *args, size_t index, const char *kernel, struct kineto_shape *shape,
                         const char **why)
{
    struct tensor tensor;

    if (!read_tensor(args, index, 1, &tensor))
        return refuse(why, no_dims);
    shape->kernel = kernel;
    shape->dtype = dtype_of(&tensor);
    shape->n = tensor.dims[tensor.ndims - 1];
    shape->m = elements(&tensor) / shape->n;
    return 1;
}

/* An embedding looks its rows up by index_select(weight, 0, indices). */
static int read_lookup(const json_t *args, size_t indices, struct kineto_shape *shape, const char **why)
{
    const json_t *dims = json_array_get(json_object_get(args, "Input Dims"), indices);
    struct tensor weight;
    double counts[DIMS];

    if (!read_tensor(args, 0, 2, &weight) || !json_array_size(dims) || json_array_size(dims) > DIMS ||
        !read_numbers(dims, counts, json_array_size(dims)))
        return refuse(why, no_dims);
    *shape = (struct kineto_shape){.kernel = memory_class_names[CLASS_EMBEDDING_FORWARD], .dtype = dtype_of(&weight),
                                   .m = 1, .n = weight.dims[weight.ndims - 1]};
    for (size_t i = 0; i < json_array_size(dims); i++)
        shape->m *= counts[i];
    return shape->m > 0 ? 1 : refuse(why, "it looks up nothing");
}

static int read_copy(const json_t *args, struct kineto_shape *shape, const char **why)
{
    struct tensor to, from;

    if (!read_tensor(args, 0, 1, &to) || !read_tensor(args, 1, 1, &from))
        return refuse(why, no_dims);
    if (!to.strided || !from.strided || to.ndims != from.ndims || memcmp(to.dims, from.dims, sizeof to.dims) ||
        memcmp(to.strides, from.strides, sizeof to.strides))
        return refuse(why, "it changes the order in memory, or that is not known");
    shape->kernel = memory_class_names[CLASS_COPY];
    shape->dtype = "byte";
    shape->bytes = elements(&to) * (types[type_index(to.type)].bytes + types[type_index(from.type)].bytes);
    return 1;
}

/* Fused Adam has lists of tensors; the first is of the parameters. */
static int read_adam(const json_t *args, struct kineto_shape *shape, const char **why)
{
    const json_t *list = json_array_get(json_object_get(args, "Input Dims"), 0);
    double dims[DIMS];

    shape->kernel = memory_class_names[CLASS_ADAM];
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *item = json_array_get(list, i);
        double count = 1;

        if (!json_is_array(item) || json_array_size(item) > DIMS || !read_numbers(item, dims, json_array_size(item)))
            return refuse(why, no_dims);
        for (size_t d = 0; d < json_array_size(item); d++)
            count *= dims[d];
        shape->m += count;
    }
    return shape->m > 0 ? 1 : refuse(why, no_dims);
}

/* What an operation is read as, and the index of its first tensor. */
enum reading { PRODUCT, BATCHED, LINEAR, FLASH, FLASH_BACKWARD, SDPA, SDPA_BACKWARD, ELEMENTS, LOOKUP, COPY, ADAM };
static const struct { const char *name; enum reading reading; size_t first; int extra; } operations[] = {
    /* extra: PRODUCT: none; attention: the index of is_causal; ELEMENTS: the class */
    {"aten::mm", PRODUCT, 0, 0},
    {"aten::addmm", PRODUCT, 1, 0},
    {"aten::_scaled_mm", PRODUCT, 0, 0},
    {"aten::bmm", BATCHED, 0, 0},
    {"aten::baddbmm", BATCHED, 1, 0},
    {"aten::linear", LINEAR, 0, 0},
    {"aten::_flash_attention_forward", FLASH, 0, 8},
    {"aten::_flash_attention_backward", FLASH_BACKWARD, 1, 11},
    {"flash_attn::_flash_attn_forward", FLASH, 0, 5},
    {"flash_attn::_flash_attn_backward", FLASH_BACKWARD, 1, 11},
    {"aten::_scaled_dot_product_flash_attention", SDPA, 0, 4},
    {"aten::_scaled_dot_product_flash_attention_backward", SDPA_BACKWARD, 1, 11},
    {"aten::native_layer_norm", ELEMENTS, 0, CLASS_LAYERNORM_FORWARD},
    {"aten::native_layer_norm_backward", ELEMENTS, 1, CLASS_LAYERNORM_BACKWARD},
    {"aten::_fused_rms_norm", ELEMENTS, 0, CLASS_RMSNORM_FORWARD},
    {"aten::_fused_rms_norm_backward", ELEMENTS, 1, CLASS_RMSNORM_BACKWARD},
    {"aten::_softmax", ELEMENTS, 0, CLASS_SOFTMAX_FORWARD},
    {"aten::_softmax_backward_data", ELEMENTS, 0, CLASS_SOFTMAX_BACKWARD},
    {"aten::gelu", ELEMENTS, 0, CLASS_GELU_FORWARD},
    {"aten::gelu_backward", ELEMENTS, 0, CLASS_GELU_BACKWARD},
    {"aten::embedding", LOOKUP, 1, 0},
    {"aten::index_select", LOOKUP, 2, 0},
    {"aten::embedding_dense_backward", ELEMENTS, 0, CLASS_EMBEDDING_BACKWARD},
    {"aten::copy_", COPY, 0, 0},
    {"aten::_fused_adam_", ADAM, 0, 0},
    {"aten::_fused_adamw_", ADAM, 0, 0},
};

int kineto_shape_of(const char *name, const json_t *args, struct kineto_shape *shape, const char **why)
{
    size_t i = 0;

    *shape = (struct kineto_shape){0};
    while (i < COUNT(operations) && strcmp(operations[i].name, name) != 0)
        i++;
    if (i == COUNT(operations))
        return 0;
    const size_t first = operations[i].first, extra = (size_t)operations[i].extra;

    switch (operations[i].reading) {
    case PRODUCT:
        return read_product(args, first, false, false, shape, why);
    case BATCHED:
        return read_product(args, first, true, false, shape, why);
    case LINEAR:
        return read_product(args, first, false, true, shape, why);
    case FLASH:
        return read_attention(args, first, false, extra, false, shape, why);
    case FLASH_BACKWARD:
        return read_attention(args, first, false, extra, true, shape, why);
    case SDPA:
        return read_attention(args, first, true, extra, false, shape, why);
    case SDPA_BACKWARD:
        return read_attention(args, first, true, extra, true, shape, why);
    case ELEMENTS:
        return read_elements(args, first, memory_class_names[extra], shape, why);
    case LOOKUP:
        return read_lookup(args, first, shape, why);
    case COPY:
        return read_copy(args, shape, why);
    case ADAM:
        return read_adam(args, shape, why);
    }
    BUG("an operation of no reading");
}

/* Products of fp32 on tensor cores round their operands to tf32: cuBLAS and cuDNN say so in their kernels' names,
 * CUTLASS as s1688 (the shape of the instruction). Fused Adam's functor names the format of all its tensors. */
enum kineto_format kineto_kernel_format(const char *kernel)
{
    const char *adam = strstr(kernel, "FusedAdamMathFunctor<");

    if (adam && !strncmp(strchr(adam, '<') + 1, "float", 5))
        return KINETO_FORMAT_FP32;
    if (adam)
        return strstr(adam, "Half") || strstr(adam, "BFloat16") ? KINETO_FORMAT_HALF : KINETO_FORMAT_UNKNOWN;
    return strstr(kernel, "tf32") || strstr(kernel, "s1688") ? KINETO_FORMAT_TF32 : KINETO_FORMAT_UNKNOWN;
}

int kineto_shape_finish(struct kineto_shape *shape, enum kineto_format format, const char **why)
{
    if (!strcmp(shape->kernel, memory_class_names[CLASS_ADAM])) {
        if (format != KINETO_FORMAT_FP32 && format != KINETO_FORMAT_HALF)
            return refuse(why, "the format of its states is not known");
        /* parameters and two moments are read and written, gradients read */
        shape->dtype = "byte";
        shape->bytes = 7 * shape->m * (format == KINETO_FORMAT_FP32 ? 4 : 2);
        shape->m = 0;
    } else if (!strcmp(shape->kernel, "matmul") && !strcmp(shape->dtype, "fp32") && format == KINETO_FORMAT_TF32) {
        shape->dtype = "tf32";
    }
    return 0;
}
