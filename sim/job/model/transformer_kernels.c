/* The kernels of one operation on one GPU of the tensor-parallel group: of a product, with its bias and its adapter, of a
 * norm, of an activation function. Layers are made of these operations.
 *
 * A KERNEL_MEMORY entry counts each value that must be read from or written to device memory once. Values that a fused
 * kernel keeps in registers, and vectors of the size of a bias, are not counted. */
#include "model/transformer.h"

#include <math.h>

#include "base/base.h"
#include "hardware/gpu.h"
#include "kernels/cost.h"

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

void product_kernel(struct kernels *list, const struct cut *cut, struct kernel kernel)
{
    kernel.name = product_names[kernel.product];
    kernel.dtype = cut->dtype;
    /* Where the rows are the busiest GPU's, FLOPs are the mean GPU's. */
    kernel.flop = product_flop(&kernel) / (kernel.kind == KERNEL_GROUPED ? cut->busiest : 1);
    if (kernel.bytes == 0)
        kernel.bytes = product_bytes(&kernel, dtype_bytes(cut->dtype), cut->value);
    kernel.launches = 1;
    *GROW(list) = kernel;
}

/* Y = X W^T, with X of rows x in and W of out x in, as frameworks store it. Gradients: dX = dY W, dW = dY^T X, of as
 * many rows as are kept. Under LoRA W is frozen, unless it is an adapter. With `experts` each of so many has a W and
 * its share of the rows, and one kernel computes all of them; 0: one product. */
static void products(struct kernels *list, const struct cut *cut, enum product_id product, double experts, double rows,
                     double out, double in)
{
    const struct kernel each = {.product = product,
                                .kind = experts > 0 ? KERNEL_GROUPED : KERNEL_MATMUL,
                                .batch = fmax(1, experts), .parts = cut->shape->fused_experts ? 0 : (int)experts,
                                .skew = experts > 0 ? cut->skew : (struct skew){0}};
    struct kernel forward = each, input = each, weight = each;

    forward.phase = PHASE_FORWARD, forward.layout = LAYOUT_NT;
    forward.m = rows, forward.n = out, forward.k = in;
    input.phase = PHASE_BACKWARD_INPUT, input.layout = LAYOUT_NN;
    input.m = rows, input.n = in, input.k = out;
    weight.phase = PHASE_BACKWARD_WEIGHT, weight.layout = LAYOUT_TN;
    weight.m = out, weight.n = in, weight.k = projected_rows(cut, rows);
    product_kernel(list, cut, forward);
    product_kernel(list, cut, input);
    if (!cut->lora || product == PRODUCT_LORA)
        product_kernel(list, cut, weight);
}

void weight_product(struct kernels *list, const struct cut *cut, enum product_id product, double rows, double out,
                    double in)
{
    struct cut whole = *cut;

    whole.form.randomized_linear = 0;    /* which is of the linear layers of blocks alone */
    products(list, &whole, product, 0, rows, out, in);
}

void memory_kernel(struct kernels *list, const struct cut *cut, const char *name, enum phase phase,
                   enum memory_class class, double bytes)
{
    *GROW(list) = (struct kernel){.name = name, .kind = KERNEL_MEMORY, .phase = phase, .class = class,
                                  .dtype = cut->dtype, .bytes = bytes, .launches = 1};
}

void plain_kernels(struct kernels *list, const struct cut *cut, const char *name, enum phase phase,
                   enum memory_class class, int operations, double bytes)
{
    memory_kernel(list, cut, name, phase, class, bytes / operations);
    list->items[list->count - 1].launches = operations;
}

void unvectorized_kernels(struct kernels *list, const struct cut *cut, const char *name, enum phase phase,
                          enum memory_class class, int operations, double values, double bytes)
{
    plain_kernels(list, cut, name, phase, class, operations, bytes);
    list->items[list->count - 1].unvectorized = values / operations;
}

void mark_recomputed(struct kernels *list, const struct cut *cut, unsigned modules, size_t first)
{
    for (size_t i = first; cut->recomputed & modules && i < list->count; i++)
        list->items[i].recomputed = list->items[i].phase == PHASE_FORWARD;
}

/* The modules that compute a product's input, of which a narrow copy is made again too. */
static unsigned input_modules(enum product_id product)
{
    switch (product) {
    case PRODUCT_QKV: case PRODUCT_Q: case PRODUCT_K: case PRODUCT_V: case PRODUCT_Q_DOWN: case PRODUCT_KV_DOWN:
    case PRODUCT_MLP_UP: case PRODUCT_SHARED_UP:
        return 1u << MODULE_NORMS;
    case PRODUCT_Q_UP: case PRODUCT_KV_UP:
        return 1u << MODULE_NORMS | 1u << MODULE_LATENT;
    case PRODUCT_MLP_DOWN: case PRODUCT_EXPERT_DOWN: case PRODUCT_SHARED_DOWN:
        return 1u << MODULE_ACTIVATION;
    default:
        return 0;
    }
}

/* What a linear layer computes in addition where it keeps the projection of its input instead of the input: the random
 * matrix is written and multiplied with the input, and the projection is divided by its rows; the backward writes the
 * same matrix again and multiplies it with the results' gradient (skolai/fewbit, functional/linear.py, LinearGRPFunc:
 * gaussian). */
static void random_projections(struct kernels *list, const struct cut *cut, double rows, double out, double in)
{
    double kept = projected_rows(cut, rows);
    struct kernel product = {.product = PRODUCT_RANDOM, .batch = 1, .m = kept, .n = in, .k = rows};

    if (!projects(cut))
        return;
    memory_kernel(list, cut, "random-matrix", PHASE_FORWARD, CLASS_OTHER, kept * rows * cut->value);
    product_kernel(list, cut, product);
    memory_kernel(list, cut, "random-scale", PHASE_FORWARD, CLASS_OTHER, 2 * kept * in * cut->value);
    memory_kernel(list, cut, "random-matrix", PHASE_BACKWARD_WEIGHT, CLASS_OTHER, kept * rows * cut->value);
    product.phase = PHASE_BACKWARD_WEIGHT, product.n = out;
    product_kernel(list, cut, product);
}

/* What turns frozen weights of four bits into the format of the product, each time: the scales (one of 8 bits for 64
 * values) are converted to fp32 and moved by their mean, then each value is looked up and scaled (bitsandbytes,
 * functional.py: dequantize_4bit; autograd/_functions.py: MatMul4Bit, forward and backward). */
static void unpack_kernels(struct kernels *list, const struct cut *cut, double weights)
{
    const double scales = weights / 64;

    for (int phase = PHASE_FORWARD; weights_packed(cut) && phase <= PHASE_BACKWARD_INPUT; phase++) {
        plain_kernels(list, cut, "unpack-scales", (enum phase)phase, CLASS_OTHER, 2, scales * ((1 + 4) + (4 + 4)));
        memory_kernel(list, cut, "unpack", (enum phase)phase, CLASS_COPY,
                      weights * (4 / 8. + cut->value) + scales * 4);
    }
}

/* A product of weights in a block, or of the weights of `experts`. In fp8 (Micikevicius et al. 2022; Transformer
 * Engine on Hopper) the input, the weights and the output's gradient are cast first. For each of them one kernel
 * reads it and writes it in fp8 twice, as it is and transposed, because Hopper multiplies fp8 only in layout nt.
 * Weights are cast for every micro-batch or, with fp8_kept, only with the update. Scales of 128, 32 or 16 values run
 * along the depth of a product, and the two copies have their own (Transformer Engine's Float8BlockScaling,
 * MXFP8BlockScaling and NVFP4BlockScaling). nvfp4 also scales the whole tensor, for which a kernel reads it once
 * more. Its random Hadamard transforms are in the cast. The layout of a grouped product also says which of its sizes
 * the experts share, and stays. */
void block_product(struct kernels *list, const struct cut *cut, enum product_id product, double experts, double rows,
                   double out, double in)
{
    struct cut eight = *cut;
    size_t first = list->count;
    double reads = cut->fp8 && cut->narrow == DTYPE_NVFP4 ? 2 : 1;
    double cast = reads * cut->value + 2 * dtype_scaled_bytes(cut->narrow);
    int casts = cut->shape->fused_experts ? 1 : (int)fmax(1, experts);

    if (cut->fp8)
        eight.dtype = cut->narrow;
    unpack_kernels(list, cut, out * in);
    products(list, &eight, product, experts, rows, out, in);
    random_projections(list, cut, rows, out, in);
    if (product == PRODUCT_Q_UP || product == PRODUCT_KV_UP)
        mark_recomputed(list, cut, 1u << MODULE_LATENT, first);
    if (!cut->fp8)
        return;
    for (size_t i = first; experts == 0 && i < list->count; i++)
        list->items[i].layout = LAYOUT_NT;
    plain_kernels(list, cut, "cast", PHASE_FORWARD, CLASS_COPY, casts, cast * rows * in);
    mark_recomputed(list, cut, input_modules(product), list->count - 1);
    if (!cut->fp8_kept)
        plain_kernels(list, cut, "cast-weights", PHASE_FORWARD, CLASS_COPY, casts,
                      cast * fmax(1, experts) * out * in);
    plain_kernels(list, cut, "cast", PHASE_BACKWARD_INPUT, CLASS_COPY, casts, cast * rows * out);
}

/* A bias.
 * Forward: the product adds it (PyTorch since 1.12, pytorch/pytorch#72728: addmm); or a separate kernel, which reads
 * and writes the result (PyTorch before 1.12, torch/nn/functional.py, linear: output += bias; Megatron-LM's linear
 * layers); or the next kernel (`fuses`).
 * Backward: a kernel sums the gradients of all rows (autograd's sum; Megatron-LM,
 * LinearWithGradAccumulationAndAsyncCommunication: grad_output.sum).
 * In fp8 the product adds the bias, and the kernel that casts the rows sums them (Transformer Engine,
 * cast_transpose_dbias). */
void bias_kernels(struct kernels *list, const struct cut *cut, const char *name, double rows, double width, bool fuses)
{
    if (!fuses && !cut->shape->fused_bias && !cut->fp8)
        unvectorized_kernels(list, cut, name, PHASE_FORWARD, CLASS_OTHER, 1, rows * width,
                             2 * rows * width * cut->value);
    if (!cut->lora && !cut->fp8)
        memory_kernel(list, cut, name, PHASE_BACKWARD_WEIGHT, CLASS_REDUCTION, rows * width * cut->value);
}

/* RMSNorm in plain PyTorch (Meta's and Hugging Face's Llama), one kernel per operation.
 * Forward: convert to fp32, square, mean, multiply by the inverse root, convert to half precision, multiply by the
 * weights; and two kernels over one value per row (epsilon, the inverse root).
 * Backward, by autograd: multiply by the weights, and their gradient (a product and its sum); multiply by the inverse
 * root, and its gradient (a product and its sum); the mean's gradient, expanded; the square's gradient (pow_backward in
 * PyTorch's FunctionsManual.cpp: a copy, times two, times the gradient); the sum of both gradients of x; and three
 * kernels over one value per row.
 * Between the conversions all values have 4 bytes. What converts or broadcasts is unvectorized: forward the
 * conversions, the product with the inverse root and that with the weights; backward the same and the mean's gradient.
 */
static void plain_rmsnorm(struct kernels *list, const struct cut *cut, const char *name)
{
    double elements = cut->own_tokens * cut->hidden, conversions = cut->value < 4 ? 2 * (cut->value + 4) : 0;
    int converted = conversions > 0 ? 2 : 0;

    unvectorized_kernels(list, cut, name, PHASE_FORWARD, CLASS_OTHER, 2 + converted, elements * (2 + converted),
                         elements * (conversions + 2 * 4 + 2 * cut->value));
    plain_kernels(list, cut, name, PHASE_FORWARD, CLASS_OTHER, 4, elements * 3 * 4);
    unvectorized_kernels(list, cut, name, PHASE_BACKWARD_INPUT, CLASS_OTHER, 3 + converted, elements * (3 + converted),
                         elements * (conversions + 3 * 4 + 2 * cut->value));
    plain_kernels(list, cut, name, PHASE_BACKWARD_INPUT, CLASS_OTHER, 11, elements * (14 * 4 + 4 * cut->value));
}

/* A norm. Forward: reads x, writes y. Backward: reads dy and x, writes dx. If x is converted to fp32 first, x and dx
 * have 4 bytes, and a kernel each way converts them. */
void norm_kernels(struct kernels *list, const struct cut *cut, const char *name)
{
    bool root = cut->shape->norm == NORM_RMSNORM, widened = cut->shape->widened_norms && cut->value < 4;
    double elements = cut->own_tokens * cut->hidden, x = widened ? 4 : cut->value;

    if (root && !cut->shape->fused_norm) {
        plain_rmsnorm(list, cut, name);
        return;
    }
    memory_kernel(list, cut, name, PHASE_FORWARD, root ? CLASS_RMSNORM_FORWARD : CLASS_LAYERNORM_FORWARD,
                  elements * (x + cut->value));
    memory_kernel(list, cut, name, PHASE_BACKWARD_INPUT, root ? CLASS_RMSNORM_BACKWARD : CLASS_LAYERNORM_BACKWARD,
                  elements * (cut->value + 2 * x));
    for (int phase = PHASE_FORWARD; widened && phase <= PHASE_BACKWARD_INPUT; phase++)
        unvectorized_kernels(list, cut, "norm-convert", (enum phase)phase, CLASS_COPY, 1, elements,
                             elements * (cut->value + 4));
}

/* Megatron Core, fusions/fused_bias_geglu.py (weighted_bias_quick_geglu_impl): each half is clamped, and both are put
 * together. The backward, by autograd, reads a clamp's input too, and puts the halves' gradients together. */
static void clamp_kernels(struct kernels *list, const struct cut *cut, double pairs)
{
    if (cut->shape->mlp != MLP_SWIGLU || cut->shape->swiglu_limit == 0 || cut->shape->fused_clamp)
        return;
    plain_kernels(list, cut, "clamp", PHASE_FORWARD, CLASS_OTHER, 3, (2 * 2 + 4) * pairs * cut->value);
    plain_kernels(list, cut, "clamp", PHASE_BACKWARD_INPUT, CLASS_OTHER, 3, (2 * 3 + 4) * pairs * cut->value);
}

/* The function, a kernel that finds the piece in which each input lies, and a backward that reads these indices instead
 * of inputs. */
static void few_bit_function(struct kernels *list, const struct cut *cut, const char *name, double elements)
{
    bool gated = cut->shape->mlp == MLP_SWIGLU;
    double index = cut->form.few_bit / 8.;

    if (gated)                                                           /* a SiLU, and a product with the gate */
        plain_kernels(list, cut, name, PHASE_FORWARD, CLASS_OTHER, 2, 5 * elements * cut->value);
    else
        memory_kernel(list, cut, name, PHASE_FORWARD, CLASS_GELU_FORWARD, 2 * elements * cut->value);
    memory_kernel(list, cut, "few-bit", PHASE_FORWARD, CLASS_OTHER, elements * (cut->value + index));
    if (gated)
        plain_kernels(list, cut, name, PHASE_BACKWARD_INPUT, CLASS_OTHER, 2, 6 * elements * cut->value);
    memory_kernel(list, cut, "few-bit", PHASE_BACKWARD_INPUT, gated ? CLASS_OTHER : CLASS_GELU_BACKWARD,
                  elements * (2 * cut->value + index));
}

static void squared_relu(struct kernels *list, const struct cut *cut, const char *name, double elements)
{
    bool fused = cut->shape->fused_kernels;

    plain_kernels(list, cut, name, PHASE_FORWARD, CLASS_OTHER, fused ? 1 : 2, (fused ? 2 : 4) * elements * cut->value);
    plain_kernels(list, cut, name, PHASE_BACKWARD_INPUT, CLASS_OTHER, fused ? 1 : 4,
                  (fused ? 3 : 2 + 2 + 3 + 3) * elements * cut->value);
}

/* GELU: forward reads x, writes y; backward reads dy and x, writes dx. Operation by operation, as Megatron-LM writes it
 * (0.5 x (1 + tanh(c x (1 + d x x)))), it is six kernels that read and write a value and three that read two; its
 * backward, by autograd: seven products of two values, the tanh's gradient among them, three by a constant, and three
 * sums of what reaches x on four ways.
 * SwiGLU has a second input, the gate. In plain PyTorch it is a SiLU and a product; its backward is two products and
 * then the SiLU's.
 * A squared ReLU (So et al. 2021, Primer, section 4) has as many values as GELU in one kernel. In plain PyTorch it is
 * a ReLU and a power; the power's backward copies its base, doubles the copy and multiplies it by the gradient, and the
 * ReLU's reads its result and this (pytorch, tools/autograd/derivatives.yaml: pow_backward, threshold_backward). */
void activation_function(struct kernels *list, const struct cut *cut, double elements)
{
    bool gated = cut->shape->mlp == MLP_SWIGLU;
    const char *name = mlp_names[cut->shape->mlp];
    size_t first = list->count;

    clamp_kernels(list, cut, elements);
    if (cut->form.few_bit > 0) {
        few_bit_function(list, cut, name, elements);
    } else if (gated && !cut->shape->fused_kernels) {
        plain_kernels(list, cut, name, PHASE_FORWARD, CLASS_OTHER, 2, 5 * elements * cut->value);
        plain_kernels(list, cut, name, PHASE_BACKWARD_INPUT, CLASS_OTHER, 3, 9 * elements * cut->value);
    } else if (cut->shape->mlp == MLP_SQUARED_RELU) {
        squared_relu(list, cut, name, elements);
    } else if (!gated && !cut->shape->fused_gelu) {
        plain_kernels(list, cut, name, PHASE_FORWARD, CLASS_OTHER, 9, (6 * 2 + 3 * 3) * elements * cut->value);
        plain_kernels(list, cut, name, PHASE_BACKWARD_INPUT, CLASS_OTHER, 13,
                      (7 * 3 + 3 * 2 + 3 * 3) * elements * cut->value);
    } else {
        memory_kernel(list, cut, name, PHASE_FORWARD, gated ? CLASS_SWIGLU_FORWARD : CLASS_GELU_FORWARD,
               (gated ? 3 : 2) * elements * cut->value);
        memory_kernel(list, cut, name, PHASE_BACKWARD_INPUT, gated ? CLASS_SWIGLU_BACKWARD : CLASS_GELU_BACKWARD,
               (gated ? 5 : 3) * elements * cut->value);
    }
    mark_recomputed(list, cut, 1u << MODULE_ACTIVATION, first);
}

size_t adapter_kernels(struct kernels *list, const struct cut *cut, enum lora_target target)
{
    struct adapted width;
    size_t last;

    if (!lora_adapts(cut, target, &width))
        return list->count;
    weight_product(list, cut, PRODUCT_LORA, cut->tokens, cut->lora->rank, width.in);
    last = list->count;
    weight_product(list, cut, PRODUCT_LORA, cut->tokens, width.out, cut->lora->rank);
    memory_kernel(list, cut, "lora-sum", PHASE_FORWARD, CLASS_OTHER, 3 * cut->tokens * width.out * cut->value);
    memory_kernel(list, cut, "lora-sum", PHASE_BACKWARD_INPUT, CLASS_OTHER, 3 * cut->tokens * width.in * cut->value);
    return last;
}

size_t adapted_product(struct kernels *list, const struct cut *cut, enum lora_target target, enum product_id product)
{
    size_t first = list->count, last;
    struct adapted width;
    bool adapts = lora_adapts(cut, target, &width);

    block_product(list, cut, product, 0, cut->tokens, width.out, width.in);
    last = adapter_kernels(list, cut, target);
    return adapts ? last : first;
}
