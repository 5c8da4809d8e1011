#include "hardware/gpu.h"

#include <math.h>
#include <string.h>

#include "base/base.h"
#include "config/conf.h"
#include "config/field.h"
#include "config/named.h"
#include "files/data.h"

const char *const dtype_names[] = {
    [DTYPE_FP32] = "fp32",   [DTYPE_TF32] = "tf32",   [DTYPE_FP16] = "fp16",
    [DTYPE_BF16] = "bf16",   [DTYPE_FP8] = "fp8",     [DTYPE_FP8_BLOCK] = "fp8-block",
    [DTYPE_MXFP8] = "mxfp8", [DTYPE_NVFP4] = "nvfp4", NULL,
};
_Static_assert(COUNT(dtype_names) == DTYPE_COUNT + 1, "a name for every format");

double dtype_bytes(enum dtype dtype)
{
    /* tf32 is a format of products only: in memory the data is fp32. */
    static const double bytes[DTYPE_COUNT] = {4, 4, 2, 2, 1, 1, 1, 0.5};
    return bytes[dtype];
}

double dtype_scaled_bytes(enum dtype dtype)
{
    static const double scales[DTYPE_COUNT] = {
        [DTYPE_FP8_BLOCK] = 4. / 128,
        [DTYPE_MXFP8] = 1. / 32,
        [DTYPE_NVFP4] = 1. / 16,
    };
    return dtype_bytes(dtype) + scales[dtype];
}

static const struct field rates_fields[] = {
    {KEY(gpu_rates, fp32), .kind = FIELD_QUANTITY, .unit = UNIT_FLOP_RATE, .required = true, .positive = true,
     .brief = "single precision; also the rate of formats that have no rate of their own"},
    {KEY(gpu_rates, tf32), .kind = FIELD_QUANTITY, .unit = UNIT_FLOP_RATE, .fallback = "0",
     .brief = "tensor cores on fp32 data; 0: no rate of its own"},
    {KEY(gpu_rates, fp16), .kind = FIELD_QUANTITY, .unit = UNIT_FLOP_RATE, .fallback = "0",
     .brief = "half precision, accumulated in fp32; 0: no rate of its own"},
    {KEY(gpu_rates, bf16), .kind = FIELD_QUANTITY, .unit = UNIT_FLOP_RATE, .fallback = "0",
     .brief = "bfloat16, accumulated in fp32; 0: no rate of its own"},
    {KEY(gpu_rates, fp8), .kind = FIELD_QUANTITY, .unit = UNIT_FLOP_RATE, .fallback = "0",
     .brief = "8-bit floating point, accumulated in fp32; 0: no rate of its own"},
    {KEY(gpu_rates, nvfp4), .kind = FIELD_QUANTITY, .unit = UNIT_FLOP_RATE, .fallback = "0",
     .brief = "4-bit floating point with a scale for 16 values, accumulated in fp32; 0: no rate of its own"},
};

static const struct table rates_table = {
    TABLE("peak", "peak rates of dense GEMMs, by number format", gpu_rates, rates_fields),
};

#define CHANGED_RATE(dtype) \
    {KEY(gpu_rates, dtype), .kind = FIELD_QUANTITY, .unit = UNIT_FLOP_RATE, .positive = true, \
     .brief = "left out: the data sheet's"}
static const struct field changed_rates_fields[] = {
    CHANGED_RATE(fp32), CHANGED_RATE(tf32), CHANGED_RATE(fp16),
    CHANGED_RATE(bf16), CHANGED_RATE(fp8),  CHANGED_RATE(nvfp4),
};
_Static_assert(COUNT(changed_rates_fields) == COUNT(rates_fields), "all rates may be changed");

static const struct table changed_rates_table = {
    TABLE("peak", "peak rates that differ from the data sheet's", gpu_rates, changed_rates_fields),
};

static const struct field power_fields[] = {
    {KEY(gpu_power, idle), .kind = FIELD_QUANTITY, .unit = UNIT_POWER, .required = true, .brief = "of a GPU that waits"},
    {KEY(gpu_power, compute), .kind = FIELD_QUANTITY, .unit = UNIT_POWER, .required = true,
     .brief = "of a GPU that computes"},
    {KEY(gpu_power, communication), .kind = FIELD_QUANTITY, .unit = UNIT_POWER, .required = true,
     .brief = "of a GPU that communicates and does not compute meanwhile"},
};
const struct table gpu_power_table = {TABLE("power", "power by what a GPU does", gpu_power, power_fields)};

/* A file with a base says what differs, and reads as if it held the rest too. */
static bool has_base(const struct node *sheet)
{
    return node_get(sheet, "name") != NULL;
}

#define REQUIRED .required = true, .dispensable = has_base
static const struct field gpu_fields[] = {
    {.key = "name", AT(gpu, base), .kind = FIELD_STRING,
     .brief = "a name of platforms/gpus/ or a path: the other keys replace values of that data sheet, and its measured "
              "kernels are scaled by what differs; its power counts only where nothing that they depend on differs"},
    {KEY(gpu, title), .kind = FIELD_STRING, .brief = "the product's full name"},
    {KEY(gpu, memory), .kind = FIELD_QUANTITY, .unit = UNIT_BYTES, REQUIRED, .positive = true,
     .brief = "size of the device memory"},
    {KEY(gpu, memory_bandwidth), .kind = FIELD_QUANTITY, .unit = UNIT_BANDWIDTH, REQUIRED, .positive = true,
     .brief = "bandwidth of the device memory, from the data sheet"},
    {KEY(gpu, memory_efficiency), .kind = FIELD_QUANTITY, .unit = UNIT_NUMBER, REQUIRED, .min = 1e-6,
     .max = 1, .brief = "share of memory_bandwidth that large element-wise kernels achieve; measured: 0.70 to 0.87"},
    {KEY(gpu, peak), .kind = FIELD_RECORD, .table = &rates_table, REQUIRED,
     .brief = "peak rates of dense GEMMs, from the data sheet"},
    {KEY(gpu, matmul_efficiency), .kind = FIELD_QUANTITY, .unit = UNIT_NUMBER, REQUIRED, .min = 1e-6,
     .max = 1, .brief = "share of the peak that large GEMMs achieve; measured: 0.72 to 0.81"},
    {KEY(gpu, attention_efficiency), .kind = FIELD_QUANTITY, .unit = UNIT_NUMBER, .min = 1e-6, .max = 1,
     .brief = "share of the peak that fused attention achieves; left out: as large GEMMs"},
    {KEY(gpu, launch_overhead), .kind = FIELD_QUANTITY, .unit = UNIT_TIME, REQUIRED,
     .brief = "time of each kernel in addition to its work: start, ramp and tail; about 3 us"},
    {KEY(gpu, host_speed), .kind = FIELD_QUANTITY, .unit = UNIT_NUMBER, .min = 0.01, .max = 100, .fallback = "1",
     .brief = "how many times faster than beside an A100 the processor that usually stands beside this GPU launches an "
              "eager framework's kernels: a software file's host_launch is divided by it"},
    {KEY(gpu, compute_capability), .kind = FIELD_QUANTITY, .unit = UNIT_NUMBER, .min = 0, .max = 100, .fallback = "0",
     .brief = "NVIDIA's number for what the chip can run, such as 8.6; FlashAttention-2 and cuDNN's fused attention need "
              "8.0, FlashAttention 7.5; 0: not NVIDIA's, or not known, and taken to run all that software calls"},
    {KEY(gpu, multiprocessors), .kind = FIELD_INT, .min = 0, .max = 100000, .fallback = "0",
     .brief = "number of streaming multiprocessors, from the data sheet; 0: not known, and collectives then do not "
              "slow kernels down"},
    {KEY(gpu, unvectorized_rate), .kind = FIELD_QUANTITY, .unit = UNIT_COUNT, .fallback = "0",
     .brief = "values a second of PyTorch's element-wise kernels on tensors that are broadcast, converted or not "
              "contiguous, for which a thread computes an address a value; 0: not known, and memory alone limits them"},
    {KEY(gpu, power), .kind = FIELD_OPTIONAL, .table = &gpu_power_table,
     .brief = "power by what the GPU does, each number with the GPU's share of its node (processors, memory, NICs, fans, power "
              "supplies); left out: estimated from board_power"},
    {KEY(gpu, power_error), .kind = FIELD_QUANTITY, .unit = UNIT_NUMBER, .min = 0, .max = 1, .fallback = "0",
     .brief = "share of 'power' that other nodes with this GPU may be off, by their fans, NICs and processors"},
    {KEY(gpu, board_power), .kind = FIELD_QUANTITY, .unit = UNIT_POWER, .positive = true,
     .brief = "most that the board takes, from the data sheet; without 'power' energy is estimated from it, within 25 %, or more on a "
              "small board; left out: not known"},
};

static const struct field gpu_spec_fields[] = {
    {KEY(gpu_spec, name), .kind = FIELD_STRING, .required = true, .files = "platforms/gpus",
     .brief = "a name of platforms/gpus/ or a path"},
    {KEY(gpu_spec, memory), .kind = FIELD_QUANTITY, .unit = UNIT_BYTES, .positive = true,
     .brief = "of a GPU, instead of its data sheet's: the same chip is sold with several sizes"},
    {KEY(gpu_spec, memory_bandwidth), .kind = FIELD_QUANTITY, .unit = UNIT_BANDWIDTH, .positive = true,
     .brief = "instead of the data sheet's; measured kernels are scaled by it where they wait for memory"},
    {KEY(gpu_spec, peak), .kind = FIELD_OPTIONAL, .table = &changed_rates_table,
     .brief = "instead of the data sheet's; measured GEMMs and attention are scaled by it"},
    {KEY(gpu_spec, matmul_efficiency), .kind = FIELD_QUANTITY, .unit = UNIT_NUMBER, .min = 1e-6, .max = 1,
     .brief = "share of the peak that large GEMMs achieve, instead of the data sheet's; measured GEMMs are scaled by it"},
    {KEY(gpu_spec, multiprocessors), .kind = FIELD_INT, .min = 1, .max = 100000,
     .brief = "instead of the data sheet's: tiles of GEMMs run on this number; 'peak' is changed by itself"},
};

const struct table gpu_spec_table = {
    TABLE("gpu", "the GPU, and what differs from its data sheet", gpu_spec, gpu_spec_fields),
    .shorthand = "name", .bare = true,
};

const struct table gpu_table = {TABLE("gpu", "one type of GPU (a file of platforms/gpus/)", gpu, gpu_fields)};

/* What differs of what kernels depend on; NULL: nothing. */
static const struct gpu_ratios *ratios_of(struct arena *arena, const struct gpu *gpu, const struct gpu *sheet)
{
    struct gpu_ratios *ratios = ARENA_ARRAY(arena, struct gpu_ratios, 1);
    double share = gpu->matmul_efficiency / sheet->matmul_efficiency;
    bool differ;

    ratios->memory_bandwidth = gpu->memory_bandwidth * gpu->memory_efficiency /
                               (sheet->memory_bandwidth * sheet->memory_efficiency);
    ratios->multiprocessors = sheet->multiprocessors ? (double)gpu->multiprocessors / sheet->multiprocessors : 1;
    differ = ratios->memory_bandwidth != 1 || ratios->multiprocessors != 1;
    for (int dtype = 0; dtype < DTYPE_COUNT; dtype++) {
        ratios->peak[dtype] = gpu_peak(gpu, (enum dtype)dtype) / gpu_peak(sheet, (enum dtype)dtype) * share;
        differ |= ratios->peak[dtype] != 1;
    }
    return differ ? ratios : NULL;
}

/* The board's power stands in where nobody measured a node: with an eighth of their nodes H100 takes 1.28 and A100 1.23 times its
 * board's 700 and 400 W while it computes, and both 0.4 times while they wait (their files' power). Nodes cooled by air take
 * up to a fifth more, and work that does not reach the board's limit a quarter less (h100-80gb.yaml). */
static void take_board_power(struct arena *arena, struct gpu *gpu)
{
    const double board = gpu->board_power;

    if (gpu->power || !(board > 0))
        return;
    gpu->power = ARENA_ARRAY(arena, struct gpu_power, 1);
    *gpu->power = (struct gpu_power){.idle = 0.4 * board, .compute = 1.25 * board, .communication = 1.25 * board};
    gpu->power_error = 0.25;
}

/* The rule above gives a node's other parts a quarter of each board. They take up to 195 W a GPU (H100's 895 W of its board's 700,
 * and 271 W of a board that waits with some 70), whatever the board. */
double gpu_power_error(const struct gpu *gpu, double watts)
{
    return gpu->power->node ? gpu->power_error : fmax(gpu->power_error, (195 - 0.25 * gpu->board_power) / watts);
}

static const struct data_kind gpu_files = {"platforms/gpus", "GPU", NULL};

/* Reads a file whose `name` is another's: that GPU's keys, replaced by its own. */
static int load_based(struct arena *arena, const struct node *root, struct gpu *gpu, struct error *err)
{
    const struct node *name = node_get(root, "name"), *base;
    const char *path = name->kind == NODE_SCALAR ? data_resolve(arena, &gpu_files, name->text, name->loc, err) : NULL;
    struct gpu sheet;

    if (name->kind != NODE_SCALAR)
        return error_add(err, EXIT_INPUT, name->loc, "gpu: name: expected a name of platforms/gpus/ or a path");
    if (!path || conf_shared(arena, path, &base, err))
        return -1;
    if (has_base(base))
        return error_add(err, EXIT_INPUT, name->loc, "gpu: name: '%s' is itself based on another GPU; expected that one",
                         name->text);
    if (field_load(arena, &gpu_table, path, &sheet, err) ||
        field_parse(arena, &gpu_table, node_merge(arena, base, root), gpu, err))
        return -1;
    gpu->base = data_is_path(name->text) ? path : data_stem(arena, path);
    gpu->changed = ratios_of(arena, gpu, &sheet);
    if (gpu->changed && !node_get(root, "power"))
        gpu->power = NULL;
    if (gpu->changed && !node_get(root, "unvectorized_rate"))
        gpu->unvectorized_rate *= gpu->changed->multiprocessors;
    return 0;
}

int gpu_load(struct arena *arena, const char *name, struct loc loc, struct gpu *gpu, struct error *err)
{
    const char *path = data_resolve(arena, &gpu_files, name, loc, err);
    const struct node *root;

    if (!path || conf_shared(arena, path, &root, err))
        return -1;
    if (has_base(root) ? load_based(arena, root, gpu, err) : field_load(arena, &gpu_table, path, gpu, err))
        return -1;
    take_board_power(arena, gpu);
    gpu->name = data_stem(arena, path);
    if (!gpu->title)
        gpu->title = gpu->name;
    return 0;
}

static void replace(double *value, double by)
{
    *value = isnan(by) ? *value : by;
}

void gpu_change(struct arena *arena, const struct gpu_spec *spec, struct gpu *gpu)
{
    const struct gpu sheet = *gpu;
    const struct gpu_ratios *own;
    struct gpu_ratios *changed;

    replace(&gpu->memory, spec->memory);
    if (isnan(spec->memory_bandwidth) && isnan(spec->matmul_efficiency) && !spec->peak && !spec->multiprocessors)
        return;
    replace(&gpu->memory_bandwidth, spec->memory_bandwidth);
    replace(&gpu->matmul_efficiency, spec->matmul_efficiency);
    for (size_t i = 0; spec->peak && i < COUNT(changed_rates_fields); i++) {
        size_t at = changed_rates_fields[i].offset;

        replace((double *)((char *)&gpu->peak + at), *(const double *)((const char *)spec->peak + at));
    }
    gpu->multiprocessors = spec->multiprocessors ? spec->multiprocessors : gpu->multiprocessors;
    own = ratios_of(arena, gpu, &sheet);
    changed = ARENA_ARRAY(arena, struct gpu_ratios, 1);
    *changed = own ? *own : (struct gpu_ratios){.memory_bandwidth = 1, .multiprocessors = 1};
    for (int dtype = 0; dtype < DTYPE_COUNT; dtype++)
        changed->peak[dtype] = (own ? own->peak[dtype] : 1) * (sheet.changed ? sheet.changed->peak[dtype] : 1);
    gpu->unvectorized_rate *= changed->multiprocessors;
    changed->memory_bandwidth *= sheet.changed ? sheet.changed->memory_bandwidth : 1;
    changed->multiprocessors *= sheet.changed ? sheet.changed->multiprocessors : 1;
    gpu->changed = changed;
}

const char *gpu_changes(struct arena *arena, const struct gpu_spec *spec)
{
    const struct node *dump = field_dump(arena, &gpu_spec_table, spec);
    const char *text = "";

    for (size_t i = 0; dump->kind == NODE_MAPPING && i < dump->count; i++)
        if (strcmp(dump->keys[i], "name"))
            text = arena_printf(arena, "%s%s%s: %s", text, *text ? ", " : "", dump->keys[i],
                                node_flow(arena, dump->items[i]));
    return text;
}

double gpu_rate(const struct gpu *gpu, enum dtype dtype)
{
    const struct gpu_rates *peak = &gpu->peak;
    const double rates[DTYPE_COUNT] = {
        [DTYPE_FP32] = peak->fp32, [DTYPE_TF32] = peak->tf32,   [DTYPE_FP16] = peak->fp16,
        [DTYPE_BF16] = peak->bf16, [DTYPE_FP8] = peak->fp8,     [DTYPE_FP8_BLOCK] = peak->fp8,
        [DTYPE_MXFP8] = peak->fp8, [DTYPE_NVFP4] = peak->nvfp4,
    };

    return rates[dtype];
}

double gpu_peak(const struct gpu *gpu, enum dtype dtype)
{
    double rate = gpu_rate(gpu, dtype);

    return rate > 0 ? rate : gpu->peak.fp32;
}
