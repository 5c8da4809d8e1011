#include "energy/energy.h"

#include <math.h>

double energy_power(const struct scenario *scenario, int gpus, int nodes, struct occupation occupation)
{
    const struct energy_spec *said = scenario->train ? scenario->train->energy : NULL;
    const struct gpu_power *power = said ? said->gpu : NULL;

    if (!power && cluster_gpu_name(&scenario->cluster, 0))
        power = cluster_sheet(&scenario->cluster, 0)->power;
    if (!power)
        return NAN;
    return gpus * (power->idle + occupation.compute * (power->compute - power->idle) +
                   occupation.communication * (power->communication - power->idle)) +
           (said && said->gpu ? nodes * said->host : 0);
}

double energy_pue(const struct scenario *scenario)
{
    return scenario->train && scenario->train->energy ? scenario->train->energy->pue : 1;
}

int energy_nodes(const struct scenario *scenario)
{
    int nodes = 0, last = -1;

    for (int i = 0; i < scenario_gpus(scenario); i++) {
        int node = cluster_node_of(&scenario->cluster, layout_nth_gpu(&scenario->layout, i));

        nodes += node != last;
        last = node;
    }
    return nodes;
}
