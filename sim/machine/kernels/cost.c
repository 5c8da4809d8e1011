#include "kernels/cost.h"

#include <math.h>

#include "base/base.h"
#include "hardware/gpu.h"
#include "kernels/profile.h"

const char *const cost_source_names[] = ENUM_NAMES(COST_SOURCES);
const char *const attention_generation_names[] = ENUM_NAMES(ATTENTION_GENERATIONS);
const char *const layout_names[] = {[LAYOUT_NN] = "nn", [LAYOUT_NT] = "nt", [LAYOUT_TN] = "tn", NULL};
_Static_assert(COUNT(layout_names) == LAYOUT_COUNT + 1, "a name for every layout");
const char *const product_names[] = ENUM_NAMES(PRODUCTS);
const char *const memory_class_names[] = {
    [CLASS_OTHER] = "other",
    [CLASS_SOFTMAX_FORWARD] = "softmax-forward", [CLASS_SOFTMAX_BACKWARD] = "softmax-backward",
    [CLASS_LAYERNORM_FORWARD] = "layernorm-forward", [CLASS_LAYERNORM_BACKWARD] = "layernorm-backward",
    [CLASS_RMSNORM_FORWARD] = "rmsnorm-forward", [CLASS_RMSNORM_BACKWARD] = "rmsnorm-backward",
    [CLASS_GELU_FORWARD] = "gelu-forward", [CLASS_GELU_BACKWARD] = "gelu-backward",
    [CLASS_SWIGLU_FORWARD] = "swiglu-forward", [CLASS_SWIGLU_BACKWARD] = "swiglu-backward",
    [CLASS_DROPOUT_RESIDUAL_FORWARD] = "dropout-residual-forward",
    [CLASS_DROPOUT_RESIDUAL_BACKWARD] = "dropout-residual-backward",
    [CLASS_EMBEDDING_FORWARD] = "embedding-forward", [CLASS_EMBEDDING_BACKWARD] = "embedding-backward",
    [CLASS_CROSS_ENTROPY_FORWARD] = "cross-entropy-forward", [CLASS_CROSS_ENTROPY_BACKWARD] = "cross-entropy-backward",
    [CLASS_ADAM] = "adam", [CLASS_REDUCTION] = "reduction", [CLASS_COPY] = "copy-device",
    [CLASS_EXPERT_ROWS] = "expert-rows", NULL,
};
_Static_assert(COUNT(memory_class_names) == CLASS_COUNT + 1, "a name for every class");

double attention_capability(enum attention_generation generation)
{
    return generation == ATTENTION_EFFICIENT ? 5 : generation == ATTENTION_FLASH_1 ? 7.5 : 8;
}

enum attention_generation attention_called(enum attention_generation attention, const struct gpu *gpu)
{
    bool old = gpu->compute_capability > 0 && gpu->compute_capability < attention_capability(ATTENTION_FLASH_2);

    return attention != ATTENTION_SDPA ? attention : old ? ATTENTION_EFFICIENT : ATTENTION_FLASH_2;
}

const char *const kernel_kind_names[] = {
    [KERNEL_MATMUL] = "products",
    [KERNEL_GROUPED] = "grouped_products",
    [KERNEL_ATTENTION] = "attention",
    [KERNEL_MEMORY] = "memory_bound",
    NULL,
};
_Static_assert(COUNT(kernel_kind_names) == KERNEL_KIND_COUNT + 1, "a name for every kind");
const char *const cost_basis_names[] = {
    [BASIS_MEASURED] = "measured", [BASIS_SIZES] = "other_sizes", [BASIS_LAYOUT] = "other_layout",
    [BASIS_KERNELS] = "other_kernels", [BASIS_GPU] = "other_gpu", [BASIS_DATA_SHEET] = "data_sheet", NULL,
};
_Static_assert(COUNT(cost_basis_names) == BASIS_COUNT + 1, "a name for every basis");

void cost_bases_add(struct cost_bases *bases, const struct cost_bases *more, double times)
{
    for (int kind = 0; kind < KERNEL_KIND_COUNT; kind++)
        for (int basis = 0; basis < BASIS_COUNT; basis++)
            bases->seconds[kind][basis] += times * more->seconds[kind][basis];
    bases->unmeasured += times * more->unmeasured;
}

double cost_bases_of(const struct cost_bases *bases, enum kernel_kind kind)
{
    double all = 0;

    for (int basis = 0; basis < BASIS_COUNT; basis++)
        all += bases->seconds[kind][basis];
    return all;
}

double cost_bases_total(const struct cost_bases *bases)
{
    double all = 0;

    for (enum kernel_kind kind = 0; kind < KERNEL_KIND_COUNT; kind++)
        all += cost_bases_of(bases, kind);
    return all;
}

void cost_bases_scale(struct cost_bases *bases, double by)
{
    for (int kind = 0; kind < KERNEL_KIND_COUNT; kind++)
        for (int basis = 0; basis < BASIS_COUNT; basis++)
            bases->seconds[kind][basis] *= by;
    bases->unmeasured *= by;
}

const char *const unaligned_batches_names[] = ENUM_NAMES(UNALIGNED_BATCHES);

static double roofline(const struct gpu *gpu, const struct kernel *kernel)
{
    bool attends = kernel->kind == KERNEL_ATTENTION && gpu->attention_efficiency > 0;
    double achieved = attends ? gpu->attention_efficiency : gpu->matmul_efficiency;
    double efficiency = achieved * (kernel->efficiency > 0 ? kernel->efficiency : 1);
    enum dtype dtype = kernel->kind == KERNEL_ATTENTION && kernel->dtype == DTYPE_FP8 ? DTYPE_BF16 : kernel->dtype;
    double compute = kernel->flop / (efficiency * gpu_peak(gpu, dtype));
    double memory = kernel->bytes / (gpu->memory_efficiency * gpu->memory_bandwidth);

    return fmax(compute, memory) + gpu->launch_overhead;
}

/* Whether a kernel takes another time by more than a hundredth than on the GPU whose kernels were measured. */
static bool changed(const struct cost_model *model, const struct kernel *kernel, double seconds)
{
    struct profile measured = *model->profile;

    measured.changed = NULL;
    return model->profile->changed &&
           fabs(seconds / profile_kernel(&measured, kernel, model->attention).seconds - 1) > 0.01;
}

/* A kernel for which the profile has no record is timed by the roofline and counts as extrapolated. A product whose
 * efficiency is above 1 executes fewer FLOPs than it counts (Winograd). */
static struct kernel_seconds calibrated(const struct cost_model *model, const struct kernel *kernel)
{
    struct kernel large = *kernel;
    struct kernel_seconds one;

    if (kernel->efficiency > 0)
        large.flop /= kernel->efficiency;
    one = profile_kernel(model->profile, &large, model->attention);
    if (isnan(one.seconds))
        return (struct kernel_seconds){roofline(model->gpu, kernel), BASIS_DATA_SHEET};
    one.basis = changed(model, &large, one.seconds) ? BASIS_GPU : one.basis;
    one.seconds = fmax(one.seconds, fmin(kernel->flop, large.flop) / gpu_peak(model->gpu, kernel->dtype));
    one.seconds = fmax(one.seconds, kernel->bytes / model->gpu->memory_bandwidth);
    one.seconds = fmax(one.seconds, model->gpu->launch_overhead);
    return one;
}

static double cuda_cores(const struct cost_model *model, const struct kernel *kernel)
{
    static const double share = 12.2 / 19.5;
    struct product product = {
        kernel->batch, kernel->m, kernel->n, kernel->k, kernel->layout, dtype_bytes(kernel->dtype), FORM_MATMUL,
        {.exponent = 0}};

    if (model->unaligned_batches != UNALIGNED_CUDA_CORES || kernel->kind != KERNEL_MATMUL || kernel->batch <= 1 ||
        product.value != 2 || product_aligned(&product))
        return 0;
    return kernel->flop / (share * model->gpu->peak.fp32);
}

static double unvectorized(const struct gpu *gpu, const struct kernel *kernel)
{
    return gpu->unvectorized_rate > 0 ? kernel->unvectorized / gpu->unvectorized_rate : 0;
}

struct cost cost_kernel(const struct cost_model *model, const struct kernel *kernel)
{
    struct kernel_seconds one = {.basis = BASIS_DATA_SHEET};
    struct cost cost = {.kind = kernel->kind};

    BUG_IF(model->source == COST_AUTO);
    if (model->source == COST_CALIBRATED)
        one = calibrated(model, kernel);
    else
        one.seconds = roofline(model->gpu, kernel);
    one.seconds = fmax(one.seconds, cuda_cores(model, kernel));
    one.seconds = fmax(one.seconds, unvectorized(model->gpu, kernel));
    cost.seconds = kernel->launches * one.seconds;
    cost.basis = kernel->unmeasured && one.basis < BASIS_KERNELS ? BASIS_KERNELS : one.basis;
    cost.unmeasured = kernel->unmeasured ? cost.seconds : 0;
    cost.extrapolated = model->source == COST_CALIBRATED && cost.basis != BASIS_MEASURED ? cost.seconds : 0;
    return cost;
}

double kernel_whole_flop(const struct kernel *kernel)
{
    double keys = kernel->window > 0 ? fmin(kernel->window, kernel->n) : kernel->n;
    double whole = kernel->sliced > 0 ? kernel->sliced : 1, product = 2 * kernel->batch * kernel->m * keys * kernel->k * whole;

    if (kernel->kind != KERNEL_ATTENTION)
        return kernel->flop * whole;
    return kernel->phase == PHASE_FORWARD ? 2 * product : 5 * product;
}
