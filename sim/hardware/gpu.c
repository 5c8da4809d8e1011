#include "hardware/gpu.h"

#include "base/data.h"

const char *const dtype_names[] = {"fp32", "tf32", "fp16", "bf16", "fp8", NULL};

double dtype_bytes(enum dtype dtype)
{
    /* tf32 is a format of products only: in memory the data is fp32. */
    static const double bytes[DTYPE_COUNT] = {4, 4, 2, 2, 1};
    return bytes[dtype];
}

static const struct field rates_fields[] = {
    {.key = "fp32", .kind = FIELD_QUANTITY, .unit = UNIT_FLOP_RATE, .offset = offsetof(struct gpu_rates, fp32),
     .required = true, .positive = true,
     .brief = "single precision; also the rate of formats that have no rate of their own"},
    {.key = "tf32", .kind = FIELD_QUANTITY, .unit = UNIT_FLOP_RATE, .offset = offsetof(struct gpu_rates, tf32),
     .fallback = "0", .brief = "tensor cores on fp32 data; 0: no rate of its own"},
    {.key = "fp16", .kind = FIELD_QUANTITY, .unit = UNIT_FLOP_RATE, .offset = offsetof(struct gpu_rates, fp16),
     .fallback = "0", .brief = "half precision, accumulated in fp32; 0: no rate of its own"},
    {.key = "bf16", .kind = FIELD_QUANTITY, .unit = UNIT_FLOP_RATE, .offset = offsetof(struct gpu_rates, bf16),
     .fallback = "0", .brief = "bfloat16, accumulated in fp32; 0: no rate of its own"},
    {.key = "fp8", .kind = FIELD_QUANTITY, .unit = UNIT_FLOP_RATE, .offset = offsetof(struct gpu_rates, fp8),
     .fallback = "0", .brief = "8-bit floating point, accumulated in fp32; 0: no rate of its own"},
};

static const struct table rates_table = {
    .name = "peak",
    .brief = "peak rates of dense matrix products, by number format",
    .fields = rates_fields,
    .count = COUNT(rates_fields),
    .size = sizeof(struct gpu_rates),
    .node_offset = offsetof(struct gpu_rates, node),
};

static const struct field gpu_fields[] = {
    {.key = "title", .kind = FIELD_STRING, .offset = offsetof(struct gpu, title), .brief = "the product's full name"},
    {.key = "memory", .kind = FIELD_QUANTITY, .unit = UNIT_BYTES, .offset = offsetof(struct gpu, memory),
     .required = true, .positive = true, .brief = "size of the device memory"},
    {.key = "memory_bandwidth", .kind = FIELD_QUANTITY, .unit = UNIT_BANDWIDTH,
     .offset = offsetof(struct gpu, memory_bandwidth), .required = true, .positive = true,
     .brief = "bandwidth of the device memory, from the data sheet"},
    {.key = "memory_efficiency", .kind = FIELD_QUANTITY, .unit = UNIT_NUMBER,
     .offset = offsetof(struct gpu, memory_efficiency), .required = true, .positive = true, .max = 1,
     .brief = "share of memory_bandwidth that large element-wise kernels achieve; measured: 0.70 to 0.87"},
    {.key = "peak", .kind = FIELD_RECORD, .table = &rates_table, .offset = offsetof(struct gpu, peak),
     .required = true, .brief = "peak rates of dense matrix products, from the data sheet"},
    {.key = "matmul_efficiency", .kind = FIELD_QUANTITY, .unit = UNIT_NUMBER,
     .offset = offsetof(struct gpu, matmul_efficiency), .required = true, .positive = true, .max = 1,
     .brief = "share of the peak that large matrix products achieve; measured: 0.72 to 0.81"},
    {.key = "launch_overhead", .kind = FIELD_QUANTITY, .unit = UNIT_TIME,
     .offset = offsetof(struct gpu, launch_overhead), .required = true,
     .brief = "time of each kernel in addition to its work: start, ramp and tail; about 3 us"},
    {.key = "multiprocessors", .kind = FIELD_INT, .min = 0, .max = 100000, .fallback = "0",
     .offset = offsetof(struct gpu, multiprocessors),
     .brief = "number of streaming multiprocessors, from the data sheet; 0: not known, and collectives then do not "
              "slow kernels down"},
};

const struct table gpu_table = {
    .name = "gpu",
    .brief = "one type of GPU (a file of platforms/gpus/)",
    .fields = gpu_fields,
    .count = COUNT(gpu_fields),
    .size = sizeof(struct gpu),
    .node_offset = offsetof(struct gpu, node),
};

int gpu_load(struct arena *arena, const char *name, struct loc loc, struct gpu *gpu, struct error *err)
{
    struct node *root;
    const char *path = data_resolve(arena, "platforms/gpus", "GPU", name, loc, err);

    if (!path || conf_load(arena, path, &root, err) || field_parse(arena, &gpu_table, root, gpu, err))
        return -1;
    gpu->name = data_stem(arena, path);
    if (!gpu->title)
        gpu->title = gpu->name;
    return 0;
}

double gpu_rate(const struct gpu *gpu, enum dtype dtype)
{
    const double rates[DTYPE_COUNT] = {gpu->peak.fp32, gpu->peak.tf32, gpu->peak.fp16, gpu->peak.bf16,
                                       gpu->peak.fp8};
    return rates[dtype];
}

double gpu_peak(const struct gpu *gpu, enum dtype dtype)
{
    double rate = gpu_rate(gpu, dtype);

    return rate > 0 ? rate : gpu->peak.fp32;
}
