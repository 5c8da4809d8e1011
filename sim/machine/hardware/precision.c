#include "hardware/precision.h"

#include "hardware/gpu.h"

enum dtype precision_dtype(const struct precision_spec *precision)
{
    static const enum dtype dtypes[] = {
        [PRECISION_FP32] = DTYPE_FP32,        [PRECISION_TF32] = DTYPE_TF32,
        [PRECISION_MIXED_FP16] = DTYPE_FP16,  [PRECISION_MIXED_BF16] = DTYPE_BF16,
        [PRECISION_BF16] = DTYPE_BF16,
        [PRECISION_MIXED_FP8] = DTYPE_BF16,   [PRECISION_MIXED_FP8_BLOCK] = DTYPE_BF16,
        [PRECISION_MIXED_MXFP8] = DTYPE_BF16, [PRECISION_MIXED_NVFP4] = DTYPE_BF16,
    };
    return dtypes[precision->format];
}

bool precision_is_narrow(const struct precision_spec *precision)
{
    return precision->format >= PRECISION_MIXED_FP8;
}

enum dtype precision_products(const struct precision_spec *precision)
{
    static const enum dtype narrow[] = {
        [PRECISION_MIXED_FP8] = DTYPE_FP8,
        [PRECISION_MIXED_FP8_BLOCK] = DTYPE_FP8_BLOCK,
        [PRECISION_MIXED_MXFP8] = DTYPE_MXFP8,
        [PRECISION_MIXED_NVFP4] = DTYPE_NVFP4,
    };
    return precision_is_narrow(precision) ? narrow[precision->format] : precision_dtype(precision);
}

/* LAMB's passes (NVIDIA/apex, csrc/multi_tensor_lamb.cu, multi_tensor_lamb_cuda; all in fp32): the weights' norms, the
 * update written in place of the gradient, its norms, and both read once more for the step. Muon's momentum, the moments
 * of its AdamW and the momentum of SGD and Adafactor have the format of the weights that they change (KellerJordan/Muon,
 * muon.py: zeros_like; NVIDIA-NeMo/Emerging-Optimizers, orthogonalized_optimizer.py; PyTorch v2.6, torch/optim/sgd.py,
 * _single_tensor_sgd: the first gradient's clone). */
struct optimizer_states precision_optimizer(const struct precision_spec *precision)
{
    double value = precision->format >= PRECISION_MIXED_FP16 && precision->master == MASTER_NONE ? 2 : 4;
    const struct optimizer_states states[] = {
        [OPTIMIZER_ADAM] = {.full = 8},       [OPTIMIZER_ADAM_8BIT] = {.full = 8, .quantized = 2},
        [OPTIMIZER_MOMENTUM] = {.full = value}, [OPTIMIZER_SGD] = {0},
        [OPTIMIZER_ADAFACTOR] = {.factored = true}, [OPTIMIZER_ADAFACTOR_MOMENTUM] = {.full = value, .factored = true},
        [OPTIMIZER_LAMB] = {.full = 8, .norms = 5 * 4},
        [OPTIMIZER_ADAM_HALF] = {.full = 4},
        [OPTIMIZER_MUON] = {.full = 2 * value, .matrix = value},
    };
    return states[precision->optimizer];
}

/* Bytes of adding a backward's gradient to the batch's: a half-precision one into fp32 sums always, as the products
 * write it in their own format (Megatron-LM: main_grad), or its converted copy (DeepSpeed, bf16_optimizer.py,
 * update_hp_grads: add_(grad.to(fp32))); one of its own format where there is something to add to (autograd's
 * AccumulateGrad). Fused, the sums' traffic hides behind the product (apex: wgrad_gemm_accum). */
static double accumulation(const struct precision_spec *precision, bool adds_up, double weights, double gradients)
{
    if (precision->fused_accumulation)
        return 0;
    if (gradients > weights)
        return weights + (precision->gradients == GRADIENTS_CONVERTED ? 4 : 2) * gradients;
    return adds_up ? 3 * gradients : 0;
}

/* A layer's gradients before they are scattered, pass by pass (PyTorch 2.0's FSDP): the backward of the views of its
 * flat parameter puts them beside one another (flat_param.py: torch.split), they are converted to the format that is
 * sent (_runtime_utils.py, _post_backward_hook: reduce_dtype), and divided by a part of the number of replicas
 * (_reduce_grad: _div_if_needed). FSDP2 copies gradients once, but weights too, after each gather
 * (_fsdp_collectives.py: chunk_cat, split_with_sizes_copy): 12 bytes for these 8 in half precision, 14 for 18. */
static double flattening(double weights, double sent)
{
    return 2 * weights + (sent > weights ? weights + sent : 0) + 2 * sent;
}

/* What comes before the update, eager and pass by pass (Megatron-LM, MixedPrecisionOptimizer.step; PyTorch's GradScaler
 * and clip_grad_norm_ do the same): half-precision gradients are copied to fp32 for a whole master; with fp16's loss
 * scale they are divided by it and looked through for overflows; their norm is taken, and they are scaled to it (by
 * LAMB itself, as it reads them). `read`: B of a gradient once it was copied. */
static double preparation(const struct precision_spec *precision, double gradients, double read)
{
    double copy = gradients < read ? gradients + read : 0;
    double unscale = precision->format == PRECISION_MIXED_FP16 ? 2 * read : 0;
    double scaling = precision->optimizer == OPTIMIZER_LAMB ? 0 : 2 * read;
    double clip = precision->clip_gradients ? read + scaling : 0;

    return copy + unscale + clip;
}

/* What Adam's operations read and write beyond one fused kernel, where each is a kernel of its own (pytorch v2.2,
 * torch/optim/adamw.py: _multi_tensor_adamw): weights are scaled for their decay (read, written); the first moment moves
 * (read, written) and the gradient is read; the second is scaled (read, written), and the gradient's square added (both
 * read, written); its root goes to a copy (read, written), which is divided and gets epsilon (read, written, twice);
 * the step reads both and the weights, and writes these. Of fp32 that is 80 B instead of 28. */
static double passes_beyond_fused(const struct precision_spec *precision, double read, double updated)
{
    double moment = precision_optimizer(precision).full / 2;
    bool adam = precision->optimizer == OPTIMIZER_ADAM || precision->optimizer == OPTIMIZER_ADAM_HALF ||
                precision->optimizer == OPTIMIZER_MUON;

    return adam && !precision->fused_optimizer ? 2 * updated + read + 10 * moment : 0;
}

/* Muon's passes over a matrix but for its orthogonalization (Emerging-Optimizers, orthogonalized_optimizer.py, step):
 * the weights decay (read, written), the momentum moves towards the gradient (read, written; the gradient read), and
 * the orthogonal update goes into the weights (read, written; the update read). */
static double matrix_passes(const struct precision_spec *precision, double read, double updated)
{
    double momentum = precision_optimizer(precision).matrix;

    return momentum > 0 ? read + 2 * momentum + 4 * updated + momentum : 0;
}

/* Replicas gather the weights of blocks in fp8 where these have no others. In mxfp8 they gather bf16, because rows and
 * columns have scales of their own (Megatron-LM, core/distributed: reuse_grad_buf_for_mxfp8_param_ag). */
static double gathered(const struct precision_spec *precision, double weights)
{
    bool narrow = precision->format == PRECISION_MIXED_FP8 || precision->format == PRECISION_MIXED_FP8_BLOCK;

    return narrow && precision->fp8_weights == FP8_WEIGHTS_PRIMARY ? dtype_scaled_bytes(precision_products(precision))
                                                                   : weights;
}

/* An update reads the gradient, reads and writes weights (of half precision and what goes with it, or the master's) and
 * states; half-precision weights are copied from a whole master's. Optimizers without one read half-precision gradients
 * as they are (PyTorch's Adam of bf16 weights; Apex, distributed_fused_adam.py; Transformer Engine, fused_adam.py). A
 * factored second moment takes a first look at the gradient for its rows and columns. */
struct parameter_bytes precision_bytes(const struct precision_spec *precision, bool adds_up)
{
    static const double masters[] = {[MASTER_FP32] = 4, [MASTER_REMAINDERS] = 2, [MASTER_HALF] = 2,
                                     [MASTER_NONE] = 0};
    bool mixed = precision->format >= PRECISION_MIXED_FP16;
    bool whole = precision->master == MASTER_FP32;
    struct optimizer_states optimizer = precision_optimizer(precision);
    double states = optimizer.full - 3 * optimizer.quantized, weights = mixed ? 2 : 4;
    double master = mixed ? masters[precision->master] : 0;
    int form = precision->gradients;
    double gradients = form == GRADIENTS_HALF || form == GRADIENTS_WIDENED ? weights : 4;
    double sent = form == GRADIENTS_HALF ? weights : 4, read = whole ? 4 : gradients;
    bool converted = mixed && form == GRADIENTS_CONVERTED;
    double updated = whole ? 4 : weights + master, copied = mixed && whole ? 4 + weights : 0;
    double before = preparation(precision, gradients, read);

    return (struct parameter_bytes){
        .weights = weights, .gathered = gathered(precision, weights), .gradients = gradients, .sent = sent,
        .converted = converted ? weights : 0, .tied = form == GRADIENTS_WIDENED ? weights : sent, .master = master,
        .flattening = flattening(weights, sent), .accumulation = accumulation(precision, adds_up, weights, gradients),
        .update_traffic = before + read * (optimizer.factored ? 2 : 1) + 2 * states + optimizer.norms + 2 * updated +
                          passes_beyond_fused(precision, read, updated) + copied,
        .matrix_traffic = before + matrix_passes(precision, read, updated) + copied,
    };
}
