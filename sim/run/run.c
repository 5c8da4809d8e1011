#include "run/run.h"

#include "engine/jitter.h"
#include "lower/workload.h"
#include "run/memory_advice.h"

#include <string.h>

int run_simulate(struct run *run, struct scenario *scenario, struct error *err)
{
    struct measure measure;
    int rc;

    *run = (struct run){.scenario = scenario};
    if (stages_build(scenario, &run->stages, err))
        return -1;
    measure_init(&measure, (enum engine)scenario->simulation.engine, &scenario->cluster);
    rc = lower(scenario, run->stages, LOWER_ITERATION, &measure, &run->lowered, err);
    if (!rc) {
        jitter_apply(&run->lowered.program, scenario->simulation.jitter, scenario->simulation.seed);
        timeline_init(&run->timeline, &run->lowered.program);
        rc = replay((enum engine)scenario->simulation.engine, &run->lowered.program, &scenario->cluster,
                    &run->timeline, err);
    }
    if (!rc)
        metrics_init(&run->metrics, scenario, run->stages, &run->lowered, &run->timeline);
    measure_release(&measure);
    return rc;
}

int run_init(struct run *run, struct scenario *scenario, struct error *err)
{
    if (!run_simulate(run, scenario, err))
        return memory_check(&run->metrics, scenario, err);
    memory_advise(scenario, err);
    return -1;
}

void run_release(struct run *run)
{
    metrics_release(&run->metrics);
    timeline_release(&run->timeline);
    lowered_release(&run->lowered);
    memset(run, 0, sizeof *run);
}
