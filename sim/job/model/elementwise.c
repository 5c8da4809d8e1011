/* The words of blocks but for products and attention: norms, activation functions, residual sums, rows of embeddings.
 * Each writes kernels, weights and what is kept.
 *
 * A KERNEL_MEMORY entry counts each value that must be read from or written to device memory once. Values that a fused
 * kernel keeps in registers, and vectors of the size of a bias, are not counted. */
#include "model/operator.h"

#include <math.h>

#include "base/base.h"
#include "kernels/cost.h"

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
static void plain_rmsnorm(struct operators *ops, const char *name, double elements)
{
    double value = residual_value(ops->cut), conversions = value < 4 ? 2 * (value + 4) : 0;
    int converted = conversions > 0 ? 2 : 0;

    unvectorized_kernels(ops, name, PHASE_FORWARD, CLASS_OTHER, 2 + converted, elements * (2 + converted),
                         elements * (conversions + 2 * 4 + 2 * value));
    plain_kernels(ops, name, PHASE_FORWARD, CLASS_OTHER, 4, elements * 3 * 4);
    unvectorized_kernels(ops, name, PHASE_BACKWARD_INPUT, CLASS_OTHER, 3 + converted, elements * (3 + converted),
                         elements * (conversions + 3 * 4 + 2 * value));
    plain_kernels(ops, name, PHASE_BACKWARD_INPUT, CLASS_OTHER, 11, elements * (14 * 4 + 4 * value));
}

/* A norm. Forward: reads x, writes y. Backward: reads dy and x, writes dx. If x is converted to fp32 first, x and dx
 * have 4 bytes, and a kernel each way converts them. */
void norm_kernels(struct operators *ops, const char *name, double rows, double width)
{
    const struct cut *cut = ops->cut;
    bool root = cut->shape->norm == NORM_RMSNORM, widened = cut->shape->ways.widened_norms && cut->value < 4;
    double elements = rows * width, x = widened ? 4 : residual_value(cut), y = casts_apart(cut) ? 4 : cut->value;

    if (root && !cut->shape->ways.fused_norm) {
        plain_rmsnorm(ops, name, elements);
        return;
    }
    memory_kernel(ops, name, PHASE_FORWARD, root ? CLASS_RMSNORM_FORWARD : CLASS_LAYERNORM_FORWARD,
                  elements * (x + y));
    memory_kernel(ops, name, PHASE_BACKWARD_INPUT, root ? CLASS_RMSNORM_BACKWARD : CLASS_LAYERNORM_BACKWARD,
                  elements * (y + 2 * x));
    for (int phase = PHASE_FORWARD; widened && phase <= PHASE_BACKWARD_INPUT; phase++)
        unvectorized_kernels(ops, "norm-convert", (enum phase)phase, CLASS_COPY, 1, elements,
                             elements * (cut->value + 4));
}

double residual_value(const struct cut *cut)
{
    return cut->shape->ways.autocast ? fmax(cut->value, 4) : cut->value;
}

bool casts_apart(const struct cut *cut)
{
    return cut->shape->ways.autocast && cut->value < 4 && !cut->shape->ways.fused_kernels;
}

bool norm_copies(const struct cut *cut)
{
    return cut->shape->norm == NORM_RMSNORM && !cut->shape->ways.fused_norm;
}

/* Whether a norm that is one kernel keeps its input in fp32, and nobody the input itself. */
static bool keeps_widened(const struct cut *cut)
{
    return (cut->shape->ways.widened_norms || cut->shape->ways.autocast) && cut->value < 4 && !norm_copies(cut);
}

/* The linear layers that read a norm's output, in Transformers' code: of Mamba-2 one, of a gated delta net two, of Kimi's six, of
 * lightning attention two. */
static int readers(const struct cut *cut, enum kept_order order)
{
    static const int mixers[] = {[MIXER_MAMBA] = 1, [MIXER_DELTA] = 2, [MIXER_KIMI] = 6, [MIXER_LIGHTNING] = 2};

    if (order == KEPT_MLP_INPUT)
        return cut->shape->mlp == MLP_SWIGLU && !cut->shape->ways.fused_gate ? 2 : 1;
    if (order == KEPT_ATTENTION_INPUT && cut->mixer < COUNT(mixers) && mixers[cut->mixer])
        return mixers[cut->mixer];
    return order == KEPT_CROSS_INPUT || cut->shape->ways.fused_qkv ? 1 : 3;
}

/* Each linear layer that reads it casts it, and the gradient that it gives back. */
void input_casts(struct operators *ops, int layers)
{
    const struct cut *cut = ops->cut;
    double elements = layers * cut->own_tokens * cut->hidden;

    for (int phase = PHASE_FORWARD; casts_apart(cut) && phase <= PHASE_BACKWARD_INPUT; phase++)
        unvectorized_kernels(ops, "autocast", (enum phase)phase, CLASS_COPY, layers, elements, elements * (cut->value + 4));
}

void outer_norm(struct operators *ops, const char *name, enum place place)
{
    operator_begin(ops, name, 0);
    norm_kernels(ops, name, ops->cut->own_tokens, ops->cut->hidden);
    norm_weights(ops, place, ops->cut->hidden);
}

/* The first norm of a block keeps the block's input. A checkpoint already holds it, and a recomputation begins with a
 * view of the checkpoint (torch/utils/checkpoint.py, detach_variable; Megatron-LM's CheckpointFunction). But a copy in
 * fp32 is none, quantized values are a copy too, and Rajbhandari et al. count no input. */
static double checkpointed_input(const struct cut *cut)
{
    bool widened = keeps_widened(cut) && !(cut->recomputed >> MODULE_NORMS & 1);
    bool copies = (norm_copies(cut) && cut->value < 4) || widened || cut->form.activations_bits > 0;

    return cut->formula == ACTIVATIONS_RAJBHANDARI || copies ? 0 : cut->own_tokens * cut->hidden * cut->value;
}

/* The norm's input is kept; in plain PyTorch an RMSNorm keeps its input in fp32 and, instead of the input in half
 * precision, the normalised values in half precision. Products that follow keep its output. */
struct tensor norm(struct operators *ops, const char *name, enum kept_order order)
{
    const struct cut *cut = ops->cut;
    struct kept_value input = {.name = "norm input", .order = KEPT_NORMS, .kind = KEPT_VALUES,
                               .reduced_by = 1u << MODULE_NORMS, .reduced = {cut->hidden, cut->value, 1},
                               .rows = cut->own_tokens, .joined = true,
                               .as = {cut->hidden, keeps_widened(cut) ? 4 : cut->value, 1}};
    struct tensor output = {cut->tokens, cut->hidden, -1, 1u << MODULE_NORMS};

    outer_norm(ops, name, PLACE_BLOCK);
    ops->list.items[ops->current].modules |= 1u << MODULE_NORMS;
    input_casts(ops, readers(cut, order));
    keep(ops, input);
    input = (struct kept_value){.name = "norm input in fp32", .order = KEPT_WIDE_NORMS, .kind = KEPT_VALUES,
                                .modules = 1u << MODULE_NORMS, .as = {cut->hidden, 4, 1}, .rows = cut->own_tokens,
                                .joined = true};
    if (norm_copies(cut))
        keep(ops, input);
    if (order == KEPT_ATTENTION_INPUT || cut->mixer == MIXER_NONE)
        ops->input = checkpointed_input(cut);
    output.kept = keep(ops, (struct kept_value){.name = order == KEPT_ATTENTION_INPUT ? "qkv input" :
                                                        order == KEPT_CROSS_INPUT     ? "q input" :
                                                                                        "up input",
                                                .order = order, .kind = KEPT_INPUT, .modules = 1u << MODULE_NORMS,
                                                .half = order == KEPT_MLP_INPUT ? HALF_MLP : HALF_ATTENTION,
                                                .as = {cut->hidden, cut->saved, 0}, .rows = cut->input_tokens});
    return output;
}

/* A norm of what a half of a block adds to the residual (Gemma 2 and 3, GLM 4), which keeps its input. */
void post_norm(struct operators *ops, const char *name)
{
    const struct cut *cut = ops->cut;
    struct kept_value input = {.name = "post norm input", .order = KEPT_POST_NORMS, .kind = KEPT_VALUES,
                               .rows = cut->own_tokens, .as = {cut->hidden, keeps_widened(cut) ? 4 : cut->value, 1}};

    outer_norm(ops, name, PLACE_BLOCK);
    keep(ops, input);
    input.name = "post norm input in fp32", input.as.bytes = 4;
    if (norm_copies(cut))
        keep(ops, input);
}

/* The norms of queries and of keys, whichever of their values share a mean; their inputs are kept. */
void qk_norms(struct operators *ops)
{
    const struct cut *cut = ops->cut;
    const double widths[] = {cut->query, cut->key};
    struct kept_value input = {.name = "qk norm input", .order = KEPT_QK_NORMS, .kind = KEPT_VALUES,
                               .rows = cut->tokens, .as = {cut->query + cut->key, cut->value, 1}};

    if (!cut->shape->qk_norm)
        return;
    operator_begin(ops, "qk-norms", 0);
    for (size_t i = 0; i < COUNT(widths); i++) {
        norm_kernels(ops, i == 0 ? "q-norm" : "k-norm", cut->tokens, widths[i]);
        norm_weights(ops, PLACE_BLOCK, cut->shape->qk_norm == QK_NORM_HEAD ? cut->query_size : widths[i]);
    }
    keep(ops, input);
    input.name = "qk norm input in fp32", input.as.bytes = 4;
    if (norm_copies(cut))
        keep(ops, input);
}

/* A bias.
 * Forward: the product adds it (PyTorch since 1.12, pytorch/pytorch#72728: addmm); or a separate kernel, which reads
 * and writes the result (PyTorch before 1.12, torch/nn/functional.py, linear: output += bias; Megatron-LM's linear
 * layers); or the next kernel (`fuses`).
 * Backward: a kernel sums the gradients of all rows (autograd's sum; Megatron-LM,
 * LinearWithGradAccumulationAndAsyncCommunication: grad_output.sum).
 * In fp8 the product adds the bias, and the kernel that casts the rows sums them (Transformer Engine,
 * cast_transpose_dbias). */
void bias(struct operators *ops, const char *name, double rows, double width, bool fuses)
{
    const struct cut *cut = ops->cut;

    operator_begin(ops, name, 0);
    if (!fuses && !cut->shape->ways.fused_bias && !cut->fp8)
        unvectorized_kernels(ops, name, PHASE_FORWARD, CLASS_OTHER, 1, rows * width, 2 * rows * width * cut->value);
    if (!cut->lora && !cut->fp8)
        memory_kernel(ops, name, PHASE_BACKWARD_WEIGHT, CLASS_REDUCTION, rows * width * cut->value);
}

/* Megatron Core, fusions/fused_bias_geglu.py (weighted_bias_quick_geglu_impl): each half is clamped, and both are put
 * together. The backward, by autograd, reads a clamp's input too, and puts the halves' gradients together. */
static void clamp_kernels(struct operators *ops, double pairs)
{
    const struct cut *cut = ops->cut;
    if (cut->shape->mlp != MLP_SWIGLU || cut->shape->swiglu_limit == 0 || cut->shape->ways.fused_clamp)
        return;
    plain_kernels(ops, "clamp", PHASE_FORWARD, CLASS_OTHER, 3, (2 * 2 + 4) * pairs * cut->value);
    plain_kernels(ops, "clamp", PHASE_BACKWARD_INPUT, CLASS_OTHER, 3, (2 * 3 + 4) * pairs * cut->value);
}

/* The function, a kernel that finds the piece in which each input lies, and a backward that reads these indices instead
 * of inputs. */
static void few_bit_function(struct operators *ops, const char *name, double elements)
{
    const struct cut *cut = ops->cut;
    bool gated = cut->shape->mlp == MLP_SWIGLU;
    double index = cut->form.few_bit / 8.;

    if (gated) /* a SiLU, and a product with the gate */
        plain_kernels(ops, name, PHASE_FORWARD, CLASS_OTHER, 2, 5 * elements * cut->value);
    else
        memory_kernel(ops, name, PHASE_FORWARD, CLASS_GELU_FORWARD, 2 * elements * cut->value);
    memory_kernel(ops, "few-bit", PHASE_FORWARD, CLASS_OTHER, elements * (cut->value + index));
    if (gated)
        plain_kernels(ops, name, PHASE_BACKWARD_INPUT, CLASS_OTHER, 2, 6 * elements * cut->value);
    memory_kernel(ops, "few-bit", PHASE_BACKWARD_INPUT, gated ? CLASS_OTHER : CLASS_GELU_BACKWARD,
                  elements * (2 * cut->value + index));
}

static void squared_relu(struct operators *ops, const char *name, double elements)
{
    const struct cut *cut = ops->cut;
    bool fused = cut->shape->ways.fused_kernels;

    plain_kernels(ops, name, PHASE_FORWARD, CLASS_OTHER, fused ? 1 : 2, (fused ? 2 : 4) * elements * cut->value);
    plain_kernels(ops, name, PHASE_BACKWARD_INPUT, CLASS_OTHER, fused ? 1 : 4,
                  (fused ? 3 : 2 + 2 + 3 + 3) * elements * cut->value);
}

/* xIELU (Huang and Schlag 2024): a x^2 + b x above 0 and c (e^x - 1 - x) + b x below, of which a and c are learned. One kernel
 * has as many values as GELU's. In plain PyTorch (Transformers, activations.py: _xielu_python) forward is a comparison, five
 * operations that read one value and write one, five of two values, and the choice by the comparison's result; backward, by
 * autograd, seven of one value, eleven of two, and the sums that are the gradients of a and c. */
static void xielu(struct operators *ops, const char *name, double elements)
{
    const struct cut *cut = ops->cut;
    bool fused = cut->shape->ways.fused_kernels;

    plain_kernels(ops, name, PHASE_FORWARD, CLASS_OTHER, fused ? 1 : 12,
                  (fused ? 2 : 1 + 5 * 2 + 5 * 3 + 3) * elements * cut->value + (fused ? 0 : 2 * elements));
    plain_kernels(ops, name, PHASE_BACKWARD_INPUT, CLASS_OTHER, fused ? 1 : 20,
                  (fused ? 3 : 7 * 2 + 11 * 3 + 2) * elements * cut->value + (fused ? 0 : 2 * elements));
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
static void function_kernels(struct operators *ops, double elements)
{
    const struct cut *cut = ops->cut;
    bool gated = cut->shape->mlp == MLP_SWIGLU;
    const char *name = mlp_names[cut->shape->mlp];

    clamp_kernels(ops, elements);
    if (cut->form.few_bit > 0) {
        few_bit_function(ops, name, elements);
    } else if (gated && !cut->shape->ways.fused_kernels) {
        plain_kernels(ops, name, PHASE_FORWARD, CLASS_OTHER, 2, 5 * elements * cut->value);
        plain_kernels(ops, name, PHASE_BACKWARD_INPUT, CLASS_OTHER, 3, 9 * elements * cut->value);
    } else if (cut->shape->mlp == MLP_SQUARED_RELU) {
        squared_relu(ops, name, elements);
    } else if (cut->shape->mlp == MLP_XIELU) {
        xielu(ops, name, elements);
    } else if (!gated && !cut->shape->ways.fused_gelu) {
        plain_kernels(ops, name, PHASE_FORWARD, CLASS_OTHER, 9, (6 * 2 + 3 * 3) * elements * cut->value);
        plain_kernels(ops, name, PHASE_BACKWARD_INPUT, CLASS_OTHER, 13,
                      (7 * 3 + 3 * 2 + 3 * 3) * elements * cut->value);
    } else {
        memory_kernel(ops, name, PHASE_FORWARD, gated ? CLASS_SWIGLU_FORWARD : CLASS_GELU_FORWARD,
                      (gated ? 3 : 2) * elements * cut->value);
        memory_kernel(ops, name, PHASE_BACKWARD_INPUT, gated ? CLASS_SWIGLU_BACKWARD : CLASS_GELU_BACKWARD,
                      (gated ? 5 : 3) * elements * cut->value);
    }
}

/* B of gradients on both sides of the function, of as many values each, and of its inputs if they are unpacked. With
 * projections of inputs also the random matrix of the MLP's last product, at whose backward the block still keeps most,
 * and the projection of its gradient. */
static double function_gradients(const struct cut *cut, double elements)
{
    int inputs = cut->shape->mlp == MLP_SWIGLU ? 2 : 1;
    double unpacked = cut->form.activations_bits > 0 ? inputs - (cut->form.few_bit > 0) : 0;
    double projected = projects(cut) ? projected_rows(cut, cut->tokens) * cut->hidden * cut->value : 0;

    return elements * (inputs + 1 + unpacked) * cut->value + random_matrix(cut) + projected;
}

/* Kept are the inputs of the function (with its gate) and, unless it runs again, of the second product; in plain
 * PyTorch then also the SiLU's output, the other factor of the gate, or of a GELU operation by operation the factors of
 * its three products of two values, the tanh's result and the input: seven; or of an xIELU the input, the two factors that its
 * products have besides, and the exponential. Separate clamps keep their inputs too. */
struct tensor activation(struct operators *ops, double rows, double width, enum kept_order order)
{
    const struct cut *cut = ops->cut;
    bool gated = cut->shape->mlp == MLP_SWIGLU;
    bool clamps = gated && cut->shape->swiglu_limit > 0 && !cut->shape->ways.fused_clamp;
    int inputs = cut->shape->mlp == MLP_GELU && !cut->shape->ways.fused_gelu ? 7 :
                 cut->shape->mlp == MLP_XIELU && !cut->shape->ways.fused_kernels ? 4 : 1,
        factors = cut->shape->ways.fused_kernels ? 1 : 2;
    struct kept_value function = {.name = "function input", .order = order, .kind = KEPT_FUNCTION, .rows = rows,
                                  .reduced_by = 1u << MODULE_ACTIVATION, .reduced = {width, cut->value, 1},
                                  .as = {width, cut->value, inputs}};
    struct tensor output = {rows, width, -1, 1u << MODULE_ACTIVATION};

    operator_begin(ops, mlp_names[cut->shape->mlp], 1u << MODULE_ACTIVATION)->peak.backward = function_gradients(
        cut, rows * width);
    function_kernels(ops, rows * width);
    keep(ops, function);
    function.name = "gate", function.kind = KEPT_VALUES, function.as.tensors = factors + 2 * clamps;
    if (gated)
        keep(ops, function);
    output.kept = keep(ops, (struct kept_value){.name = "down input", .order = order, .kind = KEPT_INPUT,
                                                .modules = 1u << MODULE_ACTIVATION, .as = {width, cut->saved, 0},
                                                .rows = rows});
    return output;
}

/* The residual sum. Forward: bias, dropout and sum are one kernel, which reads the branch and the residual and writes
 * their sum and the mask; or dropout is a kernel before it, which reads and writes the branch. Backward: the gradient
 * of the branch goes through the mask; at the beginning of the branch two gradients are added. */
void residual(struct operators *ops, const char *name)
{
    const struct cut *cut = ops->cut;
    double elements = cut->own_tokens * cut->hidden, mask = cut->shape->dropout > 0 ? elements : 0;
    double sum = residual_value(cut);

    operator_begin(ops, name, 0)->ends = ops->half == HALF_MLP && ends_early(cut);
    if (mask > 0 && !cut->shape->ways.fused_kernels)
        memory_kernel(ops, "dropout", PHASE_FORWARD, CLASS_DROPOUT_RESIDUAL_FORWARD, 2 * elements * cut->value + mask);
    memory_kernel(ops, name, PHASE_FORWARD, CLASS_DROPOUT_RESIDUAL_FORWARD,
                  elements * (2 * sum + cut->value) + (cut->shape->ways.fused_kernels ? mask : 0));
    if (mask > 0)
        memory_kernel(ops, "dropout", PHASE_BACKWARD_INPUT, CLASS_DROPOUT_RESIDUAL_BACKWARD,
                      2 * elements * cut->value + mask);
    memory_kernel(ops, name, PHASE_BACKWARD_INPUT, CLASS_OTHER, 3 * elements * sum);
    if (casts_apart(cut))
        unvectorized_kernels(ops, "autocast", PHASE_BACKWARD_INPUT, CLASS_COPY, 1, elements, elements * (cut->value + 4));
    if (mask > 0)
        keep(ops, (struct kept_value){.name = "dropout masks", .order = KEPT_MASKS, .kind = KEPT_AS_IT_IS,
                                      .rows = elements, .as = {1, 1, 1}, .joined = true});
}

/* Adds rows of an embedding table to the hidden states. Forward: the first table reads a row per token and writes it,
 * further tables also read and write the sum; a row that repeats (positions in all samples, token types) is read once.
 * Backward: reads dy and adds to the rows. */
void lookup(struct operators *ops, const char *name, double rows, double columns, bool further)
{
    const struct cut *cut = ops->cut;
    double width = columns * cut->value;

    operator_begin(ops, name, 0);
    memory_kernel(ops, name, PHASE_FORWARD, CLASS_EMBEDDING_FORWARD, (rows + (further ? 2 : 1) * cut->tokens) * width);
    if (!cut->lora)
        memory_kernel(ops, name, PHASE_BACKWARD_WEIGHT, CLASS_EMBEDDING_BACKWARD, (cut->tokens + 2 * rows) * width);
}

/* A bias for each head, query and key, of whichever samples: once for all blocks that add them. */
void lookup_biases(struct operators *ops)
{
    const struct cut *cut = ops->cut;
    double bytes = cut->heads * cut->queries * cut->sequence * cut->value;

    operator_begin(ops, "relative-positions", 0);
    memory_kernel(ops, "relative-positions", PHASE_FORWARD, CLASS_EMBEDDING_FORWARD, 2 * bytes);
    if (!cut->lora)
        memory_kernel(ops, "relative-positions", PHASE_BACKWARD_WEIGHT, CLASS_EMBEDDING_BACKWARD, bytes);
    keep_outer(ops, "relative positions", cut->heads * cut->queries * cut->sequence, cut->value);
}

void qkv_bias(struct operators *ops, const char *name, double query, double key, double values)
{
    const struct transformer *shape = ops->cut->shape;
    double width = query + values + (shape->keys_biased ? key : 0);

    if (!shape->qkv_bias || width == 0)
        return;
    vector(ops, PLACE_BLOCK, width);
    bias(ops, name, query > 0 ? ops->cut->tokens : ops->cut->key_tokens, width, false);
}
