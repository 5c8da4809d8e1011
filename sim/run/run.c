#include "run/run.h"

#include "engine/jitter.h"
#include "run/memory_advice.h"

#include <math.h>
#include <string.h>

struct simulate_options simulate_options_of(const struct scenario *scenario)
{
    return (struct simulate_options){.engine = (enum engine)scenario->simulation.engine};
}

static int play(const struct workload *workload, struct simulate_options options, struct run *run, struct error *err)
{
    const struct simulation_spec *spec = &workload->scenario->simulation;
    const struct cluster *cluster = &workload->scenario->cluster;
    struct measure measure;
    int rc;

    measure_init(&measure, options.engine, cluster);
    rc = lower(workload, options.what, &measure, &run->lowered, err);
    if (!rc && options.links)
        links_count(&run->links, workload, &run->lowered, &measure);
    measure_release(&measure);
    if (rc)
        return rc;
    if (options.what == LOWER_ITERATION)
        jitter_apply(&run->lowered.program, spec->jitter, spec->seed);
    timeline_init(&run->timeline, &run->lowered.program);
    return replay(options.engine, &run->lowered.program, cluster, &run->timeline, err);
}

/* A number that is not finite, or a time that does not go forwards, is never a result. */
static int check_metrics(const struct run *run, struct error *err)
{
    const struct metrics *metrics = &run->metrics;
    int rc = 0;

    for (size_t i = 0; metric_at(i); i++)
        if (isinf(metric_value(metrics, metric_at(i))))
            rc = error_add(err, EXIT_UNEXPECTED, run->workload->scenario->node->loc,
                           "%s is not finite: times, bytes or rates of the scenario are too far apart to simulate",
                           metric_at(i)->name);
    if (!(metrics->iteration_time >= 0))
        rc = error_add(err, EXIT_UNEXPECTED, run->workload->scenario->node->loc,
                       "the iteration takes %g s: times of the scenario are too far apart to simulate",
                       metrics->iteration_time);
    return rc;
}

int simulate(const struct workload *workload, struct simulate_options options, struct run *run, struct error *err)
{
    struct scenario scenario = *workload->scenario;      /* the same, but for its network */
    struct workload there = *workload;

    *run = (struct run){.workload = workload};
    scenario.cluster.ideal = scenario.cluster.ideal || options.free_network;
    there.scenario = &scenario;
    if (play(&there, options, run, err))
        return -1;
    if (options.what == LOWER_ITERATION)
        metrics_init(&run->metrics, workload, &run->lowered, &run->timeline);
    else
        metrics_init_memory(&run->metrics, workload, &run->lowered, &run->timeline);
    return check_metrics(run, err);
}

void run_release(struct run *run)
{
    metrics_release(&run->metrics);
    links_release(&run->links);
    timeline_release(&run->timeline);
    lowered_release(&run->lowered);
    memset(run, 0, sizeof *run);
}

int workload_init_advised(struct workload *workload, const struct scenario *scenario, struct error *err)
{
    if (!workload_init(workload, scenario, err))
        return 0;
    memory_advise(scenario, err);
    return -1;
}

int simulate_advised(const struct workload *workload, struct simulate_options options, struct run *run,
                     struct error *err)
{
    return simulate(workload, options, run, err) ? -1 : memory_check(run, err);
}
