#include "cost.h"

#include <math.h>

const char *const cost_source_names[] = {"roofline", NULL};

static double cost_roofline(const struct gpu *gpu, const struct kernel *kernel)
{
    double efficiency = gpu->matmul_efficiency * (kernel->efficiency > 0 ? kernel->efficiency : 1);
    double compute = kernel->flop / (efficiency * gpu_peak(gpu, kernel->dtype));
    double memory = kernel->bytes / (gpu->memory_efficiency * gpu->memory_bandwidth);
    return fmax(compute, memory) + gpu->launch_overhead;
}

double cost_seconds(enum cost_source source, const struct gpu *gpu, const struct kernel *kernel)
{
    static double (*const one_launch[])(const struct gpu *, const struct kernel *) = {
        [COST_ROOFLINE] = cost_roofline,
    };
    return kernel->launches * one_launch[source](gpu, kernel);
}
