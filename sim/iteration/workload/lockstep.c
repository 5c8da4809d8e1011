#include "workload/lockstep.h"

#include "scenario/scenario.h"

bool lockstep_possible(const struct workload *workload)
{
    const struct scenario *scenario = workload->scenario;

    return scenario->simulation.jitter == 0 && !scenario->cluster.ideal && !workload->alike.private_links &&
           workload->alike.replicas > 1;
}

double lockstep_shortens(const struct workload *workload)
{
    return lockstep_possible(workload) ? 5 * LOCKSTEP_JITTER : 0;
}
