/* Which costs a scenario uses: what is measured where there is something, and the result says so. */
#include <stddef.h>
#include <string.h>

#include "files/data.h"
#include "scenario/scenario_internal.h"

static const char folder[] = "calibration/data";

static struct loc costs_loc(const struct scenario *scenario, const char *key)
{
    return node_loc(scenario->costs.node ? scenario->costs.node : scenario->node, key);
}

/* The GPU's own profile, or NULL. A GPU of one's own file is another one, whatever that is called. */
static int find_own(struct scenario *scenario, const char **profile, struct error *err)
{
    const char *gpu = cluster_gpu_name(&scenario->cluster, 0), *path = NULL;
    int rc = gpu && !data_is_path(gpu) ? data_file(&scenario->arena, folder, gpu, &path, err) : 0;

    *profile = path ? gpu : NULL;
    return rc;
}

static int report_missing(struct scenario *scenario, struct error *err)
{
    const char **names = data_names(&scenario->arena, folder, err), *list = "";

    if (!names)
        return -1;
    for (size_t i = 0; names[i]; i++)
        list = arena_printf(&scenario->arena, "%s%s%s", list, i ? ", " : "", names[i]);
    return error_clash(err, costs_loc(scenario, "gpu"),
                       "costs: gpu: no kernels of '%s' have been measured; expected 'roofline', or a profile: a path "
                       "or one of %s", cluster_sheet(&scenario->cluster, 0)->name, list);
}

/* FLOP/s of a product that is large in every way; the record's own rate is where none of any size quite arrives. */
static double reached(const struct matmul_record *record, int sms, enum dtype dtype)
{
    const struct product large = {1, 8192, 8192, 8192, LAYOUT_NT, dtype_bytes(dtype), FORM_MATMUL, {0, 0}};

    return 2 * large.m * large.n * large.k / matmul_seconds(&record->fit, sms, &large);
}

/* Products faster than the data sheet allows are those of another GPU, or of a wrong profile. A tenth is the clock that
 * a chip may boost to above the one of the data sheet. */
static int check_rates(const struct scenario *scenario, const struct profile *profile, struct error *err)
{
    const struct gpu *gpu = cluster_sheet(&scenario->cluster, 0);
    const struct matmul_record *records = profile->matmul.items;
    const double tolerance = 1.1;

    for (size_t i = 0; i < profile->matmul.count; i++)
        for (size_t k = 0; k < records[i].dtypes.count; k++) {
            int dtype = ((const int *)records[i].dtypes.items)[k];
            double rate = reached(&records[i], profile->sms, (enum dtype)dtype);
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

static int load(struct scenario *scenario, struct error *err)
{
    struct costs_spec *costs = &scenario->costs;
    struct profile *profile = ARENA_ARRAY(&scenario->arena, struct profile, 1);
    struct loc loc = costs_loc(scenario, "profile");
    const char *own;
    bool is_own;

    if (find_own(scenario, &own, err) || profile_load(&scenario->arena, costs->profile, loc, profile, err))
        return -1;
    is_own = own && strcmp(own, costs->profile) == 0;
    if (data_is_path(costs->profile) &&
        !(costs->profile = data_absolute(&scenario->arena, data_beside(&scenario->arena, loc.file, costs->profile),
                                         err)))
        return -1;
    costs->loaded = profile;
    profile->changed = is_own ? cluster_sheet(&scenario->cluster, 0)->changed : NULL;
    return check_rates(scenario, profile, err);
}

static struct cost_model model_of(struct scenario *scenario)
{
    const struct costs_spec *costs = &scenario->costs;
    struct gpu *gpu = ARENA_ARRAY(&scenario->arena, struct gpu, 1);

    *gpu = *cluster_sheet(&scenario->cluster, 0);
    return (struct cost_model){
        .source = (enum cost_source)costs->gpu, .attention = (enum attention_generation)costs->attention, .gpu = gpu,
        .profile = costs->loaded, .unaligned_batches = (enum unaligned_batches)costs->unaligned_batches,
    };
}

int scenario_resolve_costs(struct scenario *scenario, struct error *err)
{
    struct costs_spec *costs = &scenario->costs;

    if (costs->gpu == COST_ROOFLINE && costs->profile)
        return error_clash(err, costs_loc(scenario, "profile"),
                           "costs: profile: found '%s' beside 'gpu: roofline', which needs none; expected "
                           "'gpu: calibrated'", costs->profile);
    if (model_is_timed(&scenario->model)) {
        costs->gpu = costs->gpu == COST_AUTO ? COST_ROOFLINE : costs->gpu;     /* of no use: times are given */
        costs->given = true;
        return 0;
    }
    if (costs->gpu != COST_ROOFLINE && !costs->profile && find_own(scenario, &costs->profile, err))
        return -1;
    if (costs->gpu == COST_CALIBRATED && !costs->profile)
        return report_missing(scenario, err);
    costs->gpu = costs->profile ? COST_CALIBRATED : COST_ROOFLINE;
    if (costs->profile && load(scenario, err))
        return -1;
    costs->model = model_of(scenario);
    return 0;
}
