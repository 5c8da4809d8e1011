#include "run/energy.h"

#include <math.h>
#include <stdlib.h>

#include "base/base.h"
#include "config/conf.h"
#include "hardware/cluster.h"
#include "layout/layout.h"
#include "scenario/scenario.h"

static double power_of(const struct gpu_power *power, struct occupation occupation)
{
    return power->idle + occupation.compute * (power->compute - power->idle) +
           occupation.communication * (power->communication - power->idle);
}

static const struct energy_spec *energy_spec_of(const struct scenario *scenario)
{
    return scenario->train ? scenario->train->energy : NULL;
}

/* W of one GPU of a kind of node. */
static double gpu_power(const struct scenario *scenario, int kind, struct occupation occupation)
{
    const struct energy_spec *spec = energy_spec_of(scenario);
    const struct gpu_power *power = spec ? spec->gpu : NULL;
    int gpu = cluster_kind_gpu(&scenario->cluster, kind);

    if (!power && cluster_gpu_name(&scenario->cluster, gpu))
        power = cluster_sheet(&scenario->cluster, gpu)->power;
    return power ? power_of(power, occupation) : NAN;
}

/* GPUs of the kind that are paid and do nothing. */
static int idle_gpus(const struct scenario *scenario, int kind)
{
    const struct cluster *cluster = &scenario->cluster;
    int idle = -(int)layout_kind_seats(&scenario->layout, kind);

    if (scenario_paid_gpus(scenario) == scenario_gpus(scenario))
        return 0;
    for (int i = 0; i < cluster_parts(cluster); i++)
        if (cluster_part(cluster, i).kind == kind)
            idle += cluster_part(cluster, i).nodes * cluster_node_gpus(cluster, cluster_part(cluster, i).first);
    return idle;
}

/* The share that the power of a kind's GPUs may be off, each doing so; 0: the scenario says it. Where nobody told communication from
 * computation, a GPU that waits for others may take as little as one that idles. */
static double kind_error(const struct scenario *scenario, int kind, struct occupation occupation)
{
    int gpu = cluster_kind_gpu(&scenario->cluster, kind);
    const struct gpu *sheet = cluster_sheet(&scenario->cluster, gpu);
    double watts = gpu_power(scenario, kind, occupation), waits = 0;

    if ((energy_spec_of(scenario) && energy_spec_of(scenario)->gpu) || isnan(watts))
        return 0;
    if (sheet->power->communication >= sheet->power->compute)
        waits = occupation.communication * (sheet->power->communication - sheet->power->idle) / watts;
    return gpu_power_error(sheet, watts) + waits;
}

double energy_error(const struct scenario *scenario, struct occupation occupation)
{
    const struct energy_spec *spec = energy_spec_of(scenario);
    const double facility = spec && node_get(spec->node, "pue") ? 0 : ENERGY_PUE_MOST / ENERGY_PUE - 1;
    double own = 0;

    for (int kind = 0; kind < cluster_kinds(&scenario->cluster); kind++) {
        if (layout_kind_seats(&scenario->layout, kind) > 0)
            own = fmax(own, kind_error(scenario, kind, occupation));
        if (idle_gpus(scenario, kind) > 0)
            own = fmax(own, kind_error(scenario, kind, (struct occupation){0, 0}));
    }
    return own > 0 || facility > 0 ? (1 + own) * (1 + facility) - 1 : NAN;
}

/* W of a node besides its GPUs. */
static double host_power(const struct scenario *scenario)
{
    const struct energy_spec *spec = energy_spec_of(scenario);

    return spec && spec->gpu ? spec->host : 0;
}

/* The mean of the kinds, by their seats; NaN where one of them is not known. */
double energy_power(const struct scenario *scenario, int gpus, int nodes, struct occupation occupation)
{
    double mean = 0, seats = 0;

    for (int kind = 0; kind < cluster_kinds(&scenario->cluster); kind++) {
        double own = layout_kind_seats(&scenario->layout, kind);

        seats += own;
        mean += own > 0 ? (gpu_power(scenario, kind, occupation) - mean) * (own / seats) : 0;
    }
    return gpus * mean + nodes * host_power(scenario);
}

double energy_ranks_power(const struct scenario *scenario, const struct occupation *ranks, int count)
{
    int stages = scenario->parallelism.pipeline;
    double sum = 0;

    for (int r = 0; r < count; r++)
        for (int t = 0; t < scenario_tensor(scenario, r % stages) && scenario_has_rank(scenario, r); t++)
            sum += gpu_power(scenario, scenario_seat(scenario, t, r / stages, r % stages).kind, ranks[r]);
    return sum * scenario_replicas(scenario) * stages / count + energy_nodes(scenario) * host_power(scenario);
}

double energy_idle_power(const struct scenario *scenario)
{
    const struct cluster *cluster = &scenario->cluster;
    double sum = 0;

    for (int kind = 0; kind < cluster_kinds(cluster); kind++) {
        int idle = idle_gpus(scenario, kind);

        if (idle > 0)
            sum += idle * gpu_power(scenario, kind, (struct occupation){0, 0});
    }
    return scenario_paid_gpus(scenario) == scenario_gpus(scenario) ? 0 :
           sum + (cluster->nodes - energy_nodes(scenario)) * host_power(scenario);
}

double energy_pue(const struct scenario *scenario)
{
    return energy_spec_of(scenario) ? energy_spec_of(scenario)->pue : ENERGY_PUE;
}

int energy_nodes(const struct scenario *scenario)
{
    const struct cluster *cluster = &scenario->cluster;
    bool *has = xcalloc((size_t)cluster->nodes + 1, sizeof *has);
    int nodes = 0;

    for (int i = 0; i < scenario_gpus(scenario); i++) {
        int node = cluster_node_of(cluster, layout_nth_gpu(&scenario->layout, i));

        nodes += !has[node];
        has[node] = true;
    }
    free(has);
    return nodes;
}
