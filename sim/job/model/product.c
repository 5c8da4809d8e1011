/* The word `product`: Y = X W^T on one GPU of the tensor-parallel group, with what the software does around it: casts
 * to narrow formats, adapters of LoRA, weights of four bits, random projections. It writes the three GEMMs, the weight
 * and its bias, what is kept of the input, and what the tensor group exchanges.
 *
 * Products follow Megatron's split (Shoeybi et al. 2019, section 3): QKV, the first product of the MLP and the output
 * layer are split by columns, the projection and the second product of the MLP by rows, attention by heads. Biases of
 * products split by columns are split, others whole. */
#include "model/operator.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/base.h"
#include "config/field.h"
#include "hardware/gpu.h"
#include "kernels/cost.h"

/* ---- LoRA: which products have adapters ---- */

static const char *const target_names[] = {
    [LORA_QKV] = "qkv", [LORA_PROJECTION] = "projection", [LORA_MLP_UP] = "mlp-up", [LORA_MLP_DOWN] = "mlp-down", NULL,
};
_Static_assert(COUNT(target_names) == LORA_TARGET_COUNT + 1, "a name for every target");
static const char *const weights_names[] = ENUM_NAMES(LORA_WEIGHTS);
static const struct field lora_fields[] = {
    {KEY(lora, rank), .kind = FIELD_INT, .required = true, .min = 1, .max = 65536, .brief = "rank of the adapters"},
    {KEY(lora, targets), .kind = FIELD_CHOICES, .choices = target_names, .fallback = "[qkv]",
     .brief = "the GEMMs of every block that get an adapter each: qkv in latent attention all four that give queries, keys and "
              "values; mlp-up and mlp-down of experts and shared experts too"},
    {KEY(lora, weights), .kind = FIELD_CHOICE, .choices = weights_names, .fallback = "full",
     .choice_briefs = NAMES("the model's number format",
                            "four bits with quantized scales (QLoRA), converted before each "
                            "GEMM (bitsandbytes)",
                            "GPTQ's four bits, converted in each forward by PyTorch's operators and kept converted for the "
                            "backward (AutoGPTQ without ExLlama's kernels, which have no backward)"),
     .brief = "how blocks keep the weights of their GEMMs, which are frozen"},
};
const struct table lora_table = {
    TABLE("memory: lora", "low-rank adapters are trained and the model's own weights are frozen", lora, lora_fields),
};

bool lora_trains(const struct cut *cut, enum lora_target target)
{
    bool trains = !cut->lora;

    for (size_t i = 0; cut->lora && i < cut->lora->targets.count; i++)
        trains |= ((const int *)cut->lora->targets.items)[i] == (int)target;
    return trains;
}

bool weights_packed(const struct cut *cut)
{
    return cut->lora && cut->lora->weights != LORA_WEIGHTS_FULL;
}

/* ---- kernels ---- */

/* The three kernels of Y = X W^T, with X of rows x in and W of out x in, as frameworks store it. Gradients: dX = dY W,
 * dW = dY^T X, of as many rows as are kept. `trained`: W is. With `experts` each of so many has a W and its share of
 * the rows, and one kernel computes all of them; 0: one product. */
struct gemm {
    enum product_id id;
    enum dtype dtype;
    double experts, rows, out, in, kept_rows;
    bool trained, narrow, data;      /* data: nobody needs the gradient of X */
};

static void gemms(struct operators *ops, const struct gemm *gemm)
{
    const struct cut *cut = ops->cut;
    bool transposed = gemm->narrow && gemm->experts == 0;
    const struct kernel each = {.product = gemm->id, .dtype = gemm->dtype,
                                .kind = gemm->experts > 0 ? KERNEL_GROUPED : KERNEL_MATMUL,
                                .batch = fmax(1, gemm->experts),
                                .parts = cut->shape->ways.fused_experts ? 0 : (int)gemm->experts,
                                .skew = gemm->experts > 0 ? cut->skew : (struct skew){0}};
    struct kernel forward = each, input = each, weight = each;

    forward.phase = PHASE_FORWARD, forward.layout = LAYOUT_NT;
    forward.m = gemm->rows, forward.n = gemm->out, forward.k = gemm->in;
    input.phase = PHASE_BACKWARD_INPUT, input.layout = transposed ? LAYOUT_NT : LAYOUT_NN;
    input.m = gemm->rows, input.n = gemm->in, input.k = gemm->out;
    weight.phase = PHASE_BACKWARD_WEIGHT, weight.layout = transposed ? LAYOUT_NT : LAYOUT_TN;
    weight.m = gemm->out, weight.n = gemm->in, weight.k = gemm->kept_rows;
    product_kernel(ops, forward);
    if (!gemm->data)
        product_kernel(ops, input);
    if (gemm->trained)
        product_kernel(ops, weight);
}

void plain_product(struct operators *ops, enum product_id id, double rows, double out, double in)
{
    gemms(ops,
          &(struct gemm){id, ops->cut->dtype, 0, rows, out, in, rows, !ops->cut->lora, false, false});
}

/* What a linear layer computes in addition where it keeps the projection of its input instead of the input: the random
 * matrix is written and multiplied with the input, and the projection is divided by its rows; the backward writes the
 * same matrix again and multiplies it with the results' gradient (skolai/fewbit, functional/linear.py, LinearGRPFunc:
 * gaussian). */
static void random_projections(struct operators *ops, double rows, double out, double in)
{
    const struct cut *cut = ops->cut;
    double kept = projected_rows(cut, rows);
    struct kernel product = {.product = PRODUCT_RANDOM, .dtype = cut->dtype, .batch = 1, .m = kept, .n = in, .k = rows};

    if (!projects(cut))
        return;
    operator_begin(ops, "random-projection", 0);
    memory_kernel(ops, "random-matrix", PHASE_FORWARD, CLASS_OTHER, kept * rows * cut->value);
    product_kernel(ops, product);
    memory_kernel(ops, "random-scale", PHASE_FORWARD, CLASS_OTHER, 2 * kept * in * cut->value);
    memory_kernel(ops, "random-matrix", PHASE_BACKWARD_WEIGHT, CLASS_OTHER, kept * rows * cut->value);
    product.phase = PHASE_BACKWARD_WEIGHT, product.n = out;
    product_kernel(ops, product);
}

/* GPTQ's weights in the format of the product, by PyTorch's operators (AutoGPTQ at 9f7d3707, nn_modules/qlinear/
 * qlinear_cuda_old.py, forward, which trains; groups of 128): each word of eight is copied to eight words and shifted, these
 * become bytes and are masked, the group's zero is subtracted, and the group's scale multiplied, which widens; of zeros four such
 * operators. torch.matmul keeps the result for the gradient of its input. */
static void unpack_integers(struct operators *ops, double weight, int experts)
{
    enum { GROUP = 128 };
    const double v = ops->cut->value, weights = experts * weight, word = 4, zeros = weights / GROUP;

    operator_begin(ops, "unpack", 0)->peak.forward = weight * (word + 1);
    plain_kernels(ops, "unpack-zeros", PHASE_FORWARD, CLASS_OTHER, 4 * experts, zeros * ((word / 8 + word) + (word + 1) + 2 * (1 + 1)));
    unvectorized_kernels(ops, "unpack-shift", PHASE_FORWARD, CLASS_OTHER, experts, weights, weights * (word / 8 + word));
    unvectorized_kernels(ops, "unpack-bytes", PHASE_FORWARD, CLASS_COPY, experts, weights, weights * (word + 1));
    plain_kernels(ops, "unpack-mask", PHASE_FORWARD, CLASS_OTHER, experts, weights * (1 + 1));
    unvectorized_kernels(ops, "unpack-zero", PHASE_FORWARD, CLASS_OTHER, experts, weights, weights * (1 + 1) + zeros);
    unvectorized_kernels(ops, "unpack-scale", PHASE_FORWARD, CLASS_OTHER, experts, weights, weights * (1 + v) + zeros * v);
    keep(ops, (struct kept_value){.name = "unpacked weights", .order = KEPT_ADAPTERS, .kind = KEPT_AS_IT_IS, .half = HALF_ATTENTION,
                                  .rows = weights, .as = {1, v, 1}});
}

/* What turns frozen weights of four bits into the format of the product, each time: the scales (one of 8 bits for 64
 * values) are converted to fp32 and moved by their mean, then each value is looked up and scaled (bitsandbytes,
 * functional.py: dequantize_4bit; autograd/_functions.py: MatMul4Bit, forward and backward). Each expert's are a matrix of
 * their own, converted when its turn comes.
 * The look-up takes twice as long as a copy of as many bytes, at least: a kernel that looks values up in shared memory is 2.0 to
 * 2.2 times as fast as bitsandbytes' on A100 (Qi et al. 2026, arXiv 2604.02556), and one by shuffles within warps 1.36 to 2.07
 * times on A100 and H100 (bitsandbytes pull request 1747, September 2025); neither can be faster than a copy. */
static void unpack_kernels(struct operators *ops, double weight, int experts)
{
    const struct cut *cut = ops->cut;
    const double weights = experts * weight, scales = weights / 64, as_copy = 2;

    if (!weights_packed(cut))
        return;
    if (cut->lora->weights == LORA_WEIGHTS_INT4) {
        unpack_integers(ops, weight, experts);
        return;
    }
    ops->unpacked = fmax(ops->unpacked, weight * cut->value);
    operator_begin(ops, "unpack", 0);
    for (int phase = PHASE_FORWARD; phase <= PHASE_BACKWARD_INPUT; phase++) {
        plain_kernels(ops, "unpack-scales", (enum phase)phase, CLASS_OTHER, 2 * experts, scales * ((1 + 4) + (4 + 4)));
        plain_kernels(ops, "unpack", (enum phase)phase, CLASS_COPY, experts,
                      as_copy * (weights * (4 / 8. + cut->value) + scales * 4));
    }
}

/* In fp8 (Micikevicius et al. 2022; Transformer
 * Engine on Hopper) the input, the weights and the output's gradient are cast first. For each of them one kernel
 * reads it and writes it in fp8 twice, as it is and transposed, because Hopper multiplies fp8 only in layout nt.
 * Weights are cast for every micro-batch or, with fp8_kept, only with the update. Scales of 128, 32 or 16 values run
 * along the depth of a product, and the two copies have their own (Transformer Engine's Float8BlockScaling,
 * MXFP8BlockScaling and NVFP4BlockScaling). nvfp4 also scales the whole tensor, for which a kernel reads it once
 * more. Its random Hadamard transforms are in the cast. The layout of a grouped product also says which of its sizes
 * the experts share, and stays. */
static void casts(struct operators *ops, const struct weight_product *product, double out)
{
    const struct cut *cut = ops->cut;
    double reads = cut->narrow == DTYPE_NVFP4 ? 2 : 1, rows = product->in.rows, in = product->in.width;
    double cast = reads * cut->value + 2 * dtype_scaled_bytes(cut->narrow);
    int casts = cut->shape->ways.fused_experts ? 1 : (int)fmax(1, product->experts);

    operator_begin(ops, "cast", product->in.modules | product->modules);
    plain_kernels(ops, "cast", PHASE_FORWARD, CLASS_COPY, casts, cast * rows * in);
    plain_kernels(ops, "cast", PHASE_BACKWARD_INPUT, CLASS_COPY, casts, cast * rows * out);
    if (cut->fp8_kept)
        return;
    operator_begin(ops, "cast-weights", 0);
    plain_kernels(ops, "cast-weights", PHASE_FORWARD, CLASS_COPY, casts, cast * fmax(1, product->experts) * out * in);
}

/* ---- the word ---- */

/* Adds the weight of one tensor, and of its bias. */
static void product_weights(struct operators *ops, const struct weight_product *product)
{
    double copies = product->experts > 0 ? product->experts : 1, parts = fmax(1, product->matrices);
    double out = product->out, in = product->in.width;
    bool rows = product->split == SPLIT_ROWS;
    struct weights *weight = GROW(&ops->weights);

    *weight = (struct weights){.place = product->place, .rows = rows ? out : copies * out,
                               .matrix = {out / parts, in, .count = copies * parts, .expert = product->experts > 0}};
    weight->elements = weight->rows * (rows ? copies * in : in);
    if (product->parts)
        memcpy(weight->matrix.parts, product->parts, sizeof weight->matrix.parts);
    if (!product->plain) {
        weight->linear = (struct linear){product->experts > 0 ? LINEAR_EXPERT : LINEAR_BLOCK, out, in};
        weight->matrix.cut = rows ? MATRIX_COLUMNS : product->split == SPLIT_COLUMNS ? MATRIX_ROWS : MATRIX_WHOLE;
    }
    if (product->bias)
        vector(ops, product->place, copies * out);
}

/* What the tensor group exchanges for it. */
static void product_sends(struct operators *ops, const struct weight_product *product, bool trained)
{
    struct operator *op = &ops->list.items[ops->current];
    double bytes = ops->cut->tokens * ops->cut->hidden * ops->cut->value;

    if (ops->cut->tensor == 1 || !(product->whole_input || product->sums))
        return;
    op->product = ops->cut->lora ? PRODUCT_NONE : product->id;
    op->pieces = product->pieces;
    op->gathers = product->whole_input && trained;
    if (product->whole_input)
        sends(ops, SENT_INPUT, 0, 1, bytes);
    if (product->sums)
        sends(ops, SENT_SUM, 1, 0, bytes);
}

static bool merges(const struct cut *cut, const struct weight_product *product)
{
    return cut->lora && product->experts > 0 && lora_trains(cut, product->target) &&
           cut->shape->ways.expert_adapters == EXPERT_ADAPTERS_MERGED;
}

/* Experts' weights plus what their adapters multiply out to, before the product (PEFT, tuners/lora/layer.py, ParamWrapper:
 * get_delta_weight is an einsum and a product by a number, and a parametrization adds it to the weights). Autograd keeps the sums
 * for the gradients of rows; their own gradients are those of the products that the adapters multiply out to. */
static void merge_adapters(struct operators *ops, const struct weight_product *product, double out)
{
    const struct cut *cut = ops->cut;
    double in = product->in.width, rank = cut->lora ? cut->lora->rank : 0, bytes = product->experts * out * in * cut->value;
    struct kernel kernel = {.product = PRODUCT_LORA, .dtype = cut->dtype, .kind = KERNEL_MATMUL, .batch = product->experts,
                            .m = out, .n = in, .k = rank, .layout = LAYOUT_NN};

    if (!merges(cut, product))
        return;
    operator_begin(ops, "lora-merge", product->modules)->peak = (struct workspace){bytes, 2 * bytes};
    product_kernel(ops, kernel);
    memory_kernel(ops, "lora-scale", PHASE_FORWARD, CLASS_OTHER, 2 * bytes);
    memory_kernel(ops, "lora-sum", PHASE_FORWARD, CLASS_OTHER, 3 * bytes);
    memory_kernel(ops, "lora-scale", PHASE_BACKWARD_WEIGHT, CLASS_OTHER, 2 * bytes);
    kernel.phase = PHASE_BACKWARD_WEIGHT;
    kernel.n = rank, kernel.k = in, kernel.layout = LAYOUT_NT;
    product_kernel(ops, kernel);
    kernel.m = rank, kernel.n = in, kernel.k = out, kernel.layout = LAYOUT_TN;
    product_kernel(ops, kernel);
    keep(ops, (struct kept_value){.name = "merged weights", .order = KEPT_ADAPTERS, .kind = KEPT_AS_IT_IS, .half = HALF_MLP,
                                  .rows = bytes, .as = {1, 1, 1}});
}

/* Low-rank matrices A and B beside a product (Hu et al. 2021, section 4.1: Y + X A B). PEFT computes the frozen product and
 * its bias first (peft/tuners/lora/layer.py, Linear.forward: base_layer, then lora_B(lora_A(x)) times a number, and the sum of
 * both), so an adapter's may be a block's last product. Where kernels are fused, the number is part of the sum (Transformer
 * Engine's ForwardLinearScaleAdd, NeMo AutoModel's lora_kernel.py). Experts have one each, in grouped products (NeMo
 * AutoModel, _peft/lora_experts.py: GroupedExpertsLoRA; PEFT, where experts are modules), or one for all of them, whose
 * gradient all GPUs of the expert group sum (Megatron Bridge, peft/lora.py: share_expert_adapters). */
static void adapter(struct operators *ops, const struct weight_product *product, double out, bool ends)
{
    const struct cut *cut = ops->cut;
    double rows = product->in.rows, in = product->in.width, rank = cut->lora->rank;
    bool shares = cut->shape->ways.expert_adapters == EXPERT_ADAPTERS_SHARED;
    double experts = shares ? 0 : product->experts, copies = fmax(1, experts);
    enum place place = experts > 0 ? PLACE_EXPERT_ADAPTERS : PLACE_ADAPTERS;
    struct gemm gemm = {PRODUCT_LORA, cut->dtype, experts, rows, rank, in, rows, true, false, false};
    const struct matrix a = {rank, in, .count = copies, .expert = experts > 0}, b = {out, rank, .count = copies, .expert = experts > 0};

    parameter(ops, (struct weights){.place = place, .elements = copies * rank * in, .rows = copies * rank, .matrix = a});
    parameter(ops, (struct weights){.place = place, .elements = copies * out * rank, .rows = copies * out, .matrix = b});
    if (merges(cut, product))
        return;
    operator_begin(ops, "lora-a", product->modules);
    gemms(ops, &gemm);
    operator_begin(ops, "lora-b", product->modules)->ends = ends;
    gemm.out = out, gemm.in = rank;
    gemms(ops, &gemm);
    for (int phase = PHASE_FORWARD; !cut->shape->ways.fused_kernels && phase <= PHASE_BACKWARD_INPUT; phase++)
        memory_kernel(ops, "lora-scale", (enum phase)phase, CLASS_OTHER, 2 * rows * out * cut->value);
    memory_kernel(ops, "lora-sum", PHASE_FORWARD, CLASS_OTHER, 3 * rows * out * cut->value);
    memory_kernel(ops, "lora-sum", PHASE_BACKWARD_INPUT, CLASS_OTHER, 3 * rows * in * cut->value);
    keep(ops, (struct kept_value){.name = "adapter", .order = KEPT_ADAPTERS, .kind = KEPT_VALUES, .half = HALF_ATTENTION,
                                  .rows = rows, .as = {rank, cut->value, 1}});
}

/* A product of weights in a block, or of the weights of `experts`. Under LoRA W is frozen. */
struct tensor product(struct operators *ops, const struct weight_product *product)
{
    const struct cut *cut = ops->cut;
    int times = product->times > 0 ? product->times : 1;
    bool narrow = cut->fp8 && !product->plain, trained = lora_trains(cut, product->target);
    bool adapted = cut->lora && trained, ends = ops->half == HALF_MLP && ends_early(cut) && product->split == SPLIT_ROWS;
    double rows = product->in.rows, in = product->in.width, out = product->out / times;

    for (int i = 0; i < times; i++) {
        size_t first = ops->list.count;

        if (!product->plain)
            unpack_kernels(ops, out * in, (int)fmax(1, product->experts));
        merge_adapters(ops, product, out);
        operator_begin(ops, product_names[product->id], product->modules);
        gemms(ops, &(struct gemm){product->id, narrow ? cut->narrow : cut->dtype, product->experts, rows, out, in,
                                  product->plain ? rows : projected_rows(cut, rows), !cut->lora || merges(cut, product), narrow, false});
        if (!product->plain)
            ops->list.items[ops->current].peak.forward = random_matrix(cut);
        if (i == 0)
            product_sends(ops, product, trained);
        if (!product->plain)
            random_projections(ops, rows, out, in);
        if (narrow)
            casts(ops, product, out);
        for (size_t k = first; k < ops->list.count; k++)
            ops->list.items[k].ends = ends && !adapted;
        if (adapted)
            adapter(ops, product, out, ends);
    }
    product_weights(ops, product);
    if (product->in.kept >= 0)
        ops->values.items[product->in.kept].as.tensors += trained * (product->readers ?
                                                                         product->readers :
                                                                         (int)fmax(1, product->matrices));
    return (struct tensor){rows, product->out, -1, product->modules};
}

void project(struct operators *ops, struct tensor in, bool pieces)
{
    const struct cut *cut = ops->cut;

    product(ops, &(struct weight_product){.id = PRODUCT_PROJECTION, .in = in, .out = cut->hidden, .split = SPLIT_ROWS,
                                          .place = PLACE_BLOCK, .target = LORA_PROJECTION,
                                          .bias = cut->shape->projection_bias, .sums = true, .pieces = pieces});
    if (cut->shape->projection_bias)
        bias(ops, "projection-bias", cut->own_tokens, cut->hidden, cut->shape->ways.fused_kernels);
}

void outer_product(struct operators *ops, const char *name, enum product_id id, double rows, double out, double in)
{
    operator_begin(ops, name, 0);
    plain_product(ops, id, rows, out, in);
    matrix(ops, PLACE_FIRST, out, in);
}

void input_product(struct operators *ops, const char *name, enum product_id id, double rows, double out, double in, bool biased)
{
    operator_begin(ops, name, 0);
    gemms(ops, &(struct gemm){id, ops->cut->dtype, 0, rows, out, in, rows, !ops->cut->lora, false, true});
    matrix(ops, PLACE_FIRST, out, in);
    if (!biased)
        return;
    vector(ops, PLACE_FIRST, out);
    bias(ops, "input-bias", rows, out, true);
}

void gate_sum(struct operators *ops, double rows)
{
    operator_begin(ops, "gate-sum", 0);
    memory_kernel(ops, "gate-sum", PHASE_BACKWARD_INPUT, CLASS_OTHER, 3 * rows * ops->cut->hidden * ops->cut->value);
}

void ends_block(struct operators *ops)
{
    bool adapted = ops->cut->lora && lora_trains(ops->cut, LORA_MLP_DOWN);

    ops->list.items[ops->current].ends = ends_early(ops->cut) && !adapted;
}
