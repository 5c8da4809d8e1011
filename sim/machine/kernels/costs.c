#include "kernels/costs.h"

#include <stddef.h>
#include <string.h>

#include "base/base.h"
#include "base/units.h"
#include "config/conf.h"
#include "files/data.h"
#include "hardware/cluster.h"
#include "hardware/gpu.h"
#include "kernels/profile.h"

static const struct field costs_spec_fields[] = {
    {KEY(costs_spec, gpu), .kind = FIELD_CHOICE, .choices = cost_source_names, .fallback = "auto",
     .choice_briefs = NAMES("calibrated if the GPU has a profile, else roofline",
                            "a profile that is fitted to measured kernels",
                            "the GPU's data sheet and the achievable shares of its rates"),
     .brief = "source of kernel times, for models whose times are not given"},
    {KEY(costs_spec, profile), .kind = FIELD_STRING, .files = "calibration/data",
     .brief = "a name of calibration/data/ or a path; left out: the GPU's own (dtsim list profiles)"},
    {KEY(costs_spec, attention), .kind = FIELD_CHOICE, .choices = CHOICES(ATTENTIONS), .fallback = "newest",
     .choice_briefs = NAMES("the newest generation that the profile has", "memory-efficient attention of xFormers and PyTorch",
                            "FlashAttention, in Triton",
                            "FlashAttention-2", "FlashAttention-3; on Blackwell TensorRT-LLM's kernels for inference",
                            "cuDNN 9 on Hopper and Blackwell, as Transformer Engine runs it",
                            "what PyTorch's scaled_dot_product_attention (2.2 to 2.9) takes on the GPU: flash-2, before "
                            "Ampere memory-efficient", "operation by operation: flash_attention: false"),
     .brief = "which fused attention kernels run; if the profile lacks this generation, the next older one's times; a scenario "
              "that says one has flash_attention: true, unless it says false"},
    {KEY(costs_spec, host_launch), .kind = FIELD_QUANTITY, .unit = UNIT_TIME, .fallback = "55 us",
     .brief = "the host's time for each kernel, small kernels around it included; each phase of a layer takes at least "
              "the sum over its kernels; left out: the software file's, over the GPU's host_speed, or else 55 us; 0: "
              "launches are recorded (CUDA graphs)"},
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

bool costs_host_supplied(const struct costs_spec *spec)
{
    return field_supplied(&costs_table, spec, "host_launch");
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

/* ---- the costs of each kind of node: measured ones where there are any, and results say which ---- */

static const char folder[] = "calibration/data";

/* The costs that are resolved, and for which cluster. */
struct costs_of {
    struct arena *arena;
    const struct costs_spec *spec;
    const struct node *place;        /* of a message where the spec has none */
    const struct cluster *cluster;
};

static struct loc costs_loc(const struct costs_of *of, const char *key)
{
    return node_loc(of->spec->node ? of->spec->node : of->place, key);
}

/* The own profile of a kind's GPU, or of the GPU that it is based on; or NULL. A GPU of one's own file is another one,
 * whatever that is called. */
static int find_own(const struct costs_of *of, int kind, const char **profile, struct error *err)
{
    int first = cluster_kind_gpu(of->cluster, kind);
    const char *base = cluster_sheet(of->cluster, first)->base, *path = NULL;
    const char *gpu = base ? base : cluster_gpu_name(of->cluster, first);
    int rc = gpu && !data_is_path(gpu) ? data_file(of->arena, folder, gpu, &path, err) : 0;

    *profile = path ? gpu : NULL;
    return rc;
}

static int report_missing(const struct costs_of *of, const struct gpu *sheet, struct error *err)
{
    const char **names = data_names(of->arena, folder, err), *list = "";

    if (!names)
        return -1;
    for (size_t i = 0; names[i]; i++)
        list = arena_printf(of->arena, "%s%s%s", list, i ? ", " : "", names[i]);
    return error_clash(err, costs_loc(of, "gpu"),
                       "costs: gpu: no kernels of '%s' have been measured; expected 'roofline', or a profile: a path "
                       "or one of %s", sheet->name, list);
}

/* FLOP/s of a product that is large in every way; the record's own rate is where none of any size quite arrives. */
static double reached(const struct profile *profile, const struct matmul_record *record, enum dtype dtype)
{
    const struct product large = {1, 8192, 8192, 8192, LAYOUT_NT, dtype_bytes(dtype), FORM_MATMUL, {.exponent = 0}};

    return 2 * large.m * large.n * large.k / matmul_remembered(profile->cache, &record->fit, profile->sms, &large);
}

/* Products faster than the data sheet allows come from another GPU or a wrong profile. A chip may boost to a clock a
 * tenth above the data sheet's. */
static int check_rates(const struct costs_of *of, const struct gpu *gpu, const struct profile *profile,
                       struct error *err)
{
    const struct matmul_record *records = profile->matmul.items;
    const double tolerance = 1.1;

    for (size_t i = 0; i < profile->matmul.count; i++)
        for (size_t k = 0; k < records[i].dtypes.count; k++) {
            int dtype = ((const int *)records[i].dtypes.items)[k];
            double rate = reached(profile, &records[i], (enum dtype)dtype);
            double most = gpu_rate(gpu, (enum dtype)dtype) / (profile->changed ? profile->changed->peak[dtype] : 1);
            char has[48], may[48];

            if (most > 0 && rate > tolerance * most)
                return error_clash(err, costs_loc(of, "profile"),
                                   "costs: profile: GEMMs of '%s' reach %s in %s, and the data sheet of %s says %s; "
                                   "expected a profile of that GPU", profile->name,
                                   unit_format_short(UNIT_FLOP_RATE, rate, has, sizeof has), dtype_names[dtype],
                                   gpu->title, unit_format_short(UNIT_FLOP_RATE, most, may, sizeof may));
        }
    return 0;
}

/* Reads the profile that is said, or else `own`. */
static int load(const struct costs_of *of, const char *own, struct kernel_costs *kernels, struct error *err)
{
    const char *said = of->spec->profile, *name = said ? said : own;
    struct profile *profile = ARENA_ARRAY(of->arena, struct profile, 1);
    const struct gpu *sheet = kernels->model.gpu;
    struct loc loc = costs_loc(of, "profile");

    if (profile_load(of->arena, name, loc, profile, err))
        return -1;
    profile->changed = own && strcmp(own, name) == 0 ? sheet->changed : NULL;
    if (data_is_path(name) && (!(name = data_relative(of->arena, loc, name, err)) ||
                               !(name = data_absolute(of->arena, name, err))))
        return -1;
    kernels->profile = name;
    kernels->model.profile = profile;
    return check_rates(of, sheet, profile, err);
}

static int resolve_kind(const struct costs_of *of, int kind, struct kernel_costs *kernels, struct error *err)
{
    const struct costs_spec *costs = of->spec;
    struct gpu *gpu = ARENA_ARRAY(of->arena, struct gpu, 1);
    const char *own = NULL;

    *gpu = *cluster_sheet(of->cluster, cluster_kind_gpu(of->cluster, kind));
    kernels->model.gpu = gpu;
    kernels->host_launch /= costs_host_supplied(costs) ? gpu->host_speed : 1;
    kernels->model.attention = attention_called(kernels->model.attention, gpu);
    if (costs->gpu == COST_ROOFLINE)
        return 0;
    if (find_own(of, kind, &own, err))
        return -1;
    if (!own && !costs->profile)
        return costs->gpu == COST_CALIBRATED ? report_missing(of, gpu, err) : 0;
    kernels->model.source = COST_CALIBRATED;
    return load(of, own, kernels, err);
}

int costs_resolve(struct arena *arena, const struct costs_spec *spec, const struct node *place,
                  const struct cluster *cluster, bool given, struct kernel_costs *kernels, struct error *err)
{
    const struct costs_of of = {arena, spec, place, cluster};
    int rc = 0;

    if (spec->gpu == COST_ROOFLINE && spec->profile)
        return error_clash(err, costs_loc(&of, "profile"),
                           "costs: profile: found '%s' and 'gpu: roofline', which needs none; expected "
                           "'gpu: calibrated'", spec->profile);
    for (int kind = 0; !rc && kind < cluster_kinds(cluster); kind++) {
        kernels[kind] = (struct kernel_costs){
            .model = {
                .source = given && spec->gpu != COST_AUTO ? (enum cost_source)spec->gpu : COST_ROOFLINE,
                .attention = (enum attention_generation)spec->attention,
                .unaligned_batches = (enum unaligned_batches)spec->unaligned_batches,
            },
            .host_launch = spec->host_launch, .launch_blocking = spec->launch_blocking,
            .graphs = (enum cuda_graphs)spec->cuda_graphs, .speed = spec->speed,
            .given = given,
        };
        rc = given ? 0 : resolve_kind(&of, kind, &kernels[kind], err);
    }
    return rc;
}
