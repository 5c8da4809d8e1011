#include "kernels/costs.h"

#include <stddef.h>

static const struct field costs_spec_fields[] = {
    {KEY(costs_spec, gpu), .kind = FIELD_CHOICE, .choices = cost_source_names, .fallback = "auto",
     .choice_briefs = NAMES("calibrated if the GPU has a profile, else roofline",
                            "a profile that is fitted to measured kernels",
                            "the GPU's data sheet and the achievable shares of its rates"),
     .brief = "source of kernel times, for models whose times are not given"},
    {KEY(costs_spec, profile), .kind = FIELD_STRING, .files = "calibration/data",
     .brief = "a name of calibration/data/ or a path; left out: the GPU's own (dtsim list profiles)"},
    {KEY(costs_spec, attention), .kind = FIELD_CHOICE, .choices = attention_generation_names, .fallback = "newest",
     .choice_briefs = NAMES("the newest generation that the profile has", "FlashAttention, in Triton",
                            "FlashAttention-2", "FlashAttention-3; on Blackwell TensorRT-LLM's kernels for inference",
                            "cuDNN 9 on Hopper and Blackwell, as Transformer Engine runs it"),
     .brief = "which generation of a profile's fused attention kernels is used; if the profile lacks it, the next "
              "older one"},
    {KEY(costs_spec, host_launch), .kind = FIELD_QUANTITY, .unit = UNIT_TIME, .fallback = "55 us",
     .brief = "the host's time for each kernel, small kernels around it included; each phase of a layer takes at least "
              "the sum over its kernels; the default is of eager PyTorch; 0: launches are recorded (CUDA graphs)"},
    {KEY(costs_spec, cuda_graphs), .kind = FIELD_CHOICE, .choices = CHOICES(CUDA_GRAPHS), .fallback = "none",
     .choice_briefs = NAMES("the host launches each kernel",
                            "blocks up to the dispatch of tokens: norms, attention and router, not experts or MLP "
                            "(Megatron Core's scopes attn, moe_router and moe_preprocess)",
                            "whole iterations (full_iteration)"),
     .brief = "which kernels CUDA graphs record, so that the host does not launch them one by one"},
    {KEY(costs_spec, launch_blocking), .kind = FIELD_BOOL, .fallback = "false",
     .brief = "the host waits for each kernel before it launches the next (CUDA_LAUNCH_BLOCKING=1), so the times of "
              "host and GPU add up; software says which communication overlaps"},
    {KEY(costs_spec, host_send), .kind = FIELD_QUANTITY, .unit = UNIT_TIME, .fallback = "240 us",
     .brief = "the host's time for each transfer between stages where software has overlap_p2p: false, in addition "
              "to the time of its bytes: the host waits for it too and then launches again; not for models whose times "
              "are given"},
    {KEY(costs_spec, unaligned_batches), .kind = FIELD_CHOICE, .choices = unaligned_batches_names,
     .fallback = "tensor-cores",
     .brief = "which cores compute batched half-precision GEMMs (as in attention that is not fused) whose rows are "
              "not multiples of 16 bytes; cuda-cores: as cuBLAS before CUDA 11.7"},
    {KEY(costs_spec, speed), .kind = FIELD_QUANTITY, .unit = UNIT_NUMBER, .min = 1e-6, .max = 1e6, .fallback = "1",
     .brief = "how many times faster than that all kernels run, also those whose times are given: what if the GPU were "
              "faster? launches and links stay as they are"},
};
const struct table costs_table = {
    TABLE("costs", "how kernels are timed", costs_spec, costs_spec_fields),
    .delegated = "attention cuda_graphs unaligned_batches",
};

bool costs_calibrated(const struct kernel_costs *costs)
{
    return !costs->given && costs->model.source == COST_CALIBRATED;
}

struct cost costs_kernel(const struct kernel_costs *costs, const struct kernel *kernel)
{
    struct cost cost = costs->given ? (struct cost){0} : cost_kernel(&costs->model, kernel);

    cost.seconds /= costs->speed;
    cost.extrapolated /= costs->speed;
    if (costs->listener)
        costs->listener->call(costs->listener->context, kernel, &cost);
    return cost;
}

struct cost costs_traffic(const struct kernel_costs *costs, const char *name, enum memory_class class, double bytes)
{
    struct kernel kernel = {.name = name, .kind = KERNEL_MEMORY, .class = class, .dtype = DTYPE_FP32, .launches = 1,
                            .bytes = bytes};

    return bytes == 0 ? (struct cost){0} : costs_kernel(costs, &kernel);
}
