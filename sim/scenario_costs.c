/* Which costs a scenario uses: what is measured where there is something, and the result says so. */
#include <string.h>

#include "data.h"
#include "scenario.h"

static const char folder[] = "calibration/data";

static struct loc costs_loc(const struct scenario *scenario, const char *key)
{
    return node_loc(scenario->costs.node ? scenario->costs.node : scenario->node, key);
}

/* The GPU's own profile, or NULL. A GPU of one's own file is another one, whatever that is called. */
static const char *own_profile(struct scenario *scenario)
{
    const char *gpu = scenario->cluster.gpu_name;

    return gpu && !data_is_path(gpu) && data_file(&scenario->arena, folder, gpu) ? gpu : NULL;
}

static int report_missing(struct scenario *scenario, struct error *err)
{
    const char **names = data_names(&scenario->arena, folder), *list = "";

    for (size_t i = 0; names[i]; i++)
        list = arena_printf(&scenario->arena, "%s%s%s", list, i ? ", " : "", names[i]);
    return error_add(err, EXIT_INPUT, costs_loc(scenario, "gpu"),
                     "costs: gpu: no kernels of '%s' have been measured; expected 'roofline', or a profile: a path or "
                     "one of %s", scenario->cluster.gpu.name, list);
}

static int load(struct scenario *scenario, struct error *err)
{
    struct costs_spec *costs = &scenario->costs;
    struct profile *profile = ARENA_ARRAY(&scenario->arena, struct profile, 1);
    struct loc loc = costs_loc(scenario, "profile");

    if (profile_load(&scenario->arena, costs->profile, loc, profile, err))
        return -1;
    if (data_is_path(costs->profile))
        costs->profile =
            data_absolute(&scenario->arena, data_beside(&scenario->arena, loc.file, costs->profile));
    costs->loaded = profile;
    return 0;
}

int scenario_resolve_costs(struct scenario *scenario, struct error *err)
{
    struct costs_spec *costs = &scenario->costs;

    if (costs->gpu == COST_ROOFLINE && costs->profile)
        return error_add(err, EXIT_INPUT, costs_loc(scenario, "profile"),
                         "costs: profile: found '%s' beside 'gpu: roofline', which needs none; expected "
                         "'gpu: calibrated'", costs->profile);
    if (model_is_timed(&scenario->model)) {
        costs->gpu = costs->gpu == COST_AUTO ? COST_ROOFLINE : costs->gpu;     /* of no use: times are given */
        return 0;
    }
    if (costs->gpu != COST_ROOFLINE && !costs->profile)
        costs->profile = own_profile(scenario);
    if (costs->gpu == COST_CALIBRATED && !costs->profile)
        return report_missing(scenario, err);
    costs->gpu = costs->profile ? COST_CALIBRATED : COST_ROOFLINE;
    return costs->profile ? load(scenario, err) : 0;
}

struct cost scenario_cost(const struct scenario *scenario, const struct kernel *kernel)
{
    struct cost_model model = {
        .source = (enum cost_source)scenario->costs.gpu, .gpu = &scenario->cluster.gpu,
        .attention = (enum attention_generation)scenario->costs.attention, .profile = scenario->costs.loaded,
        .unaligned_batches = (enum unaligned_batches)scenario->costs.unaligned_batches,
    };

    return model_is_timed(&scenario->model) ? (struct cost){0} : cost_kernel(&model, kernel);
}
