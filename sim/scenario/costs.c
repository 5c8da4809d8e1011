/* Which costs a scenario uses: what is measured where there is something, and the result says so; and what an optimizer
 * that computes needs. */
#include <stddef.h>
#include <string.h>

#include "base/base.h"
#include "base/units.h"
#include "config/conf.h"
#include "files/data.h"
#include "hardware/cluster.h"
#include "hardware/gpu.h"
#include "kernels/profile.h"
#include "layout/layout.h"
#include "model/model.h"
#include "scenario/scenario_internal.h"

static const char folder[] = "calibration/data";

static struct loc costs_loc(const struct scenario *scenario, const char *key)
{
    return node_loc(scenario->costs.node ? scenario->costs.node : scenario->node, key);
}

/* The own profile of a kind's GPU, or of the GPU that it is based on; or NULL. A GPU of one's own file is another one,
 * whatever that is called. */
static int find_own(struct scenario *scenario, int kind, const char **profile, struct error *err)
{
    int first = cluster_kind_gpu(&scenario->cluster, kind);
    const char *base = cluster_sheet(&scenario->cluster, first)->base, *path = NULL;
    const char *gpu = base ? base : cluster_gpu_name(&scenario->cluster, first);
    int rc = gpu && !data_is_path(gpu) ? data_file(&scenario->arena, folder, gpu, &path, err) : 0;

    *profile = path ? gpu : NULL;
    return rc;
}

static int report_missing(struct scenario *scenario, const struct gpu *sheet, struct error *err)
{
    const char **names = data_names(&scenario->arena, folder, err), *list = "";

    if (!names)
        return -1;
    for (size_t i = 0; names[i]; i++)
        list = arena_printf(&scenario->arena, "%s%s%s", list, i ? ", " : "", names[i]);
    return error_clash(err, costs_loc(scenario, "gpu"),
                       "costs: gpu: no kernels of '%s' have been measured; expected 'roofline', or a profile: a path "
                       "or one of %s", sheet->name, list);
}

/* FLOP/s of a product that is large in every way; the record's own rate is where none of any size quite arrives. */
static double reached(const struct profile *profile, const struct matmul_record *record, enum dtype dtype)
{
    const struct product large = {1, 8192, 8192, 8192, LAYOUT_NT, dtype_bytes(dtype), FORM_MATMUL, {0, 0}};

    return 2 * large.m * large.n * large.k / matmul_remembered(profile->cache, &record->fit, profile->sms, &large);
}

/* Products faster than the data sheet allows come from another GPU or a wrong profile. A chip may boost to a clock a
 * tenth above the data sheet's. */
static int check_rates(const struct scenario *scenario, const struct gpu *gpu, const struct profile *profile,
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
                return error_clash(err, costs_loc(scenario, "profile"),
                                   "costs: profile: GEMMs of '%s' reach %s in %s, and the data sheet of %s says %s; "
                                   "expected a profile of that GPU", profile->name,
                                   unit_format_short(UNIT_FLOP_RATE, rate, has, sizeof has), dtype_names[dtype],
                                   gpu->title, unit_format_short(UNIT_FLOP_RATE, most, may, sizeof may));
        }
    return 0;
}

/* Reads the profile that is said, or else `own`. */
static int load(struct scenario *scenario, const char *own, struct kernel_costs *kernels, struct error *err)
{
    const char *said = scenario->costs.profile, *name = said ? said : own;
    struct profile *profile = ARENA_ARRAY(&scenario->arena, struct profile, 1);
    const struct gpu *sheet = kernels->model.gpu;
    struct loc loc = costs_loc(scenario, "profile");

    if (profile_load(&scenario->arena, name, loc, profile, err))
        return -1;
    profile->changed = own && strcmp(own, name) == 0 ? sheet->changed : NULL;
    if (data_is_path(name) && (!(name = data_relative(&scenario->arena, loc, name, err)) ||
                               !(name = data_absolute(&scenario->arena, name, err))))
        return -1;
    kernels->profile = name;
    kernels->model.profile = profile;
    return check_rates(scenario, sheet, profile, err);
}

static int resolve_kind(struct scenario *scenario, int kind, struct error *err)
{
    const struct costs_spec *costs = &scenario->costs;
    struct kernel_costs *kernels = &scenario->kernels[kind];
    struct gpu *gpu = ARENA_ARRAY(&scenario->arena, struct gpu, 1);
    const char *own = NULL;

    *gpu = *cluster_sheet(&scenario->cluster, cluster_kind_gpu(&scenario->cluster, kind));
    kernels->model.gpu = gpu;
    if (costs->gpu == COST_ROOFLINE)
        return 0;
    if (find_own(scenario, kind, &own, err))
        return -1;
    if (!own && !costs->profile)
        return costs->gpu == COST_CALIBRATED ? report_missing(scenario, gpu, err) : 0;
    kernels->model.source = COST_CALIBRATED;
    return load(scenario, own, kernels, err);
}

int scenario_resolve_costs(struct scenario *scenario, struct error *err)
{
    const struct costs_spec *costs = &scenario->costs;
    bool given = model_is_timed(&scenario->model);
    int rc = 0;

    if (costs->gpu == COST_ROOFLINE && costs->profile)
        return error_clash(err, costs_loc(scenario, "profile"),
                           "costs: profile: found '%s' and 'gpu: roofline', which needs none; expected "
                           "'gpu: calibrated'", costs->profile);
    for (int kind = 0; !rc && kind < cluster_kinds(&scenario->cluster); kind++) {
        scenario->kernels[kind] = (struct kernel_costs){
            .model = {
                .source = given && costs->gpu != COST_AUTO ? (enum cost_source)costs->gpu : COST_ROOFLINE,
                .attention = (enum attention_generation)costs->attention,
                .unaligned_batches = (enum unaligned_batches)costs->unaligned_batches,
            },
            .host_launch = costs->host_launch, .launch_blocking = costs->launch_blocking,
            .graphs = (enum cuda_graphs)costs->cuda_graphs, .speed = costs->speed,
            .given = given,
        };
        rc = given ? 0 : resolve_kind(scenario, kind, err);
    }
    return rc;
}

const struct kernel_costs *scenario_first_costs(const struct scenario *scenario)
{
    return &scenario->kernels[scenario_seat(scenario, 0, 0, 0).kind];
}

bool scenario_names_gpus(const struct scenario *scenario)
{
    bool named = true;

    for (int kind = 0; kind < cluster_kinds(&scenario->cluster); kind++)
        named &= cluster_gpu_name(&scenario->cluster, cluster_kind_gpu(&scenario->cluster, kind)) != NULL;
    return named;
}

const char *scenario_gpu_names(struct arena *arena, const struct scenario *scenario, int rank)
{
    unsigned kinds = rank < 0 ? ~0u : layout_kinds(&scenario->layout, rank);
    const char *names = NULL;

    for (int kind = 0; kind < cluster_kinds(&scenario->cluster); kind++) {
        const char *name = cluster_gpu_name(&scenario->cluster, cluster_kind_gpu(&scenario->cluster, kind));

        if (name && kinds >> kind & 1 && layout_kind_seats(&scenario->layout, kind) > 0 &&
            (!names || !strstr(names, name)))
            names = names ? arena_printf(arena, "%s + %s", names, name) : name;
    }
    return names;
}

double scenario_mean_peak(const struct scenario *scenario, enum dtype products)
{
    double mean = 0, seats = 0;

    for (int kind = 0; kind < cluster_kinds(&scenario->cluster); kind++) {
        double own = layout_kind_seats(&scenario->layout, kind);
        double peak = gpu_peak(cluster_sheet(&scenario->cluster, cluster_kind_gpu(&scenario->cluster, kind)), products);

        seats += own;
        mean += own > 0 ? (peak - mean) * (own / seats) : 0;     /* of one kind its very peak */
    }
    return mean;
}

struct costs_spec scenario_resolved_costs(const struct scenario *scenario)
{
    struct costs_spec costs = scenario->costs;

    if (cluster_kinds(&scenario->cluster) > 1)
        return costs;
    costs.gpu = (int)scenario->kernels[0].model.source;
    if (!scenario->kernels[0].given)
        costs.profile = scenario->kernels[0].profile;
    return costs;
}

/* Megatron Core's layer-wise optimizer and DeepSpeed's ZeRO 1 and 2 hand out whole matrices; those that divide weights
 * (DeepSpeed's stage3.py, torchtitan's flex_shard, microsoft/dion) gather each matrix in ways of their own, which are
 * not simulated. */
int muon_check(const struct scenario *scenario, struct error *err)
{
    const struct memory_spec *memory = &scenario->memory;
    const struct loc loc = node_loc(memory->node, "optimizer");
    int rc = 0;

    if (memory->precision.optimizer != OPTIMIZER_MUON)
        return 0;
    if (!scenario->model.transformer)
        rc = error_clash(err, loc, "memory: optimizer: muon: needs a transformer; this model says nothing of its "
                         "matrices");
    if (scenario->parallelism.zero == 3)
        rc = error_clash(err, loc, "memory: optimizer: muon: orthogonalizes whole matrices, and strategy: zero: 3 "
                         "divides them among replicas, whose gathers in an update are not simulated; expected zero 0 to 2");
    if (memory->precision.master == MASTER_REMAINDERS || memory->precision.master == MASTER_HALF)
        rc = error_clash(err, loc, "memory: optimizer: muon: no release has it with 'master: %s' (Megatron Core: the "
                         "precision-aware optimizer is Adam's); expected master fp32 or none",
                         memory->precision.master == MASTER_HALF ? "half" : "remainders");
    return rc;
}
