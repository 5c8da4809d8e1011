#include "run/run.h"

#include "engine/jitter.h"
#include "run/memory_advice.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct simulate_options simulate_options_of(const struct scenario *scenario)
{
    return (struct simulate_options){.engine = (enum engine)scenario->simulation.engine};
}

static int build(const struct workload *workload, struct simulate_options options, struct run *run, struct error *err)
{
    struct measure measure;
    int rc;

    measure_init(&measure, options.engine, &workload->scenario->cluster);
    rc = lower(workload, options.what, &measure, &run->lowered, err);
    if (!rc && options.links)
        links_count(&run->links, workload, &run->lowered, &measure);
    measure_release(&measure);
    return rc;
}

/* Changes the program as it is asked for, and replays it. */
static int play(const struct scenario *scenario, struct program *program, struct simulate_options options,
                double jitter, struct timeline *timeline, struct error *err)
{
    program_what_if(program, options.what_ifs);
    if (options.what == LOWER_ITERATION)
        jitter_apply(program, jitter, scenario->simulation.seed);
    timeline_init(timeline, program);
    return replay(options.engine, program, &scenario->cluster, timeline, err);
}

/* Where the time goes in a replay of the same program with other what-ifs and jitter. `plain`: its operations as they
 * were lowered. */
static int replay_again(const struct workload *workload, const struct run *run, const struct op *plain,
                        struct simulate_options options, double jitter, struct metrics *metrics, struct error *err)
{
    struct program program = run->lowered.program;
    struct timeline timeline = {0};
    size_t bytes = program.ops.count * sizeof *plain;
    int rc;

    program.ops.items = xcalloc(1, bytes + 1);
    memcpy(program.ops.items, plain, bytes);
    rc = play(workload->scenario, &program, options, jitter, &timeline, err);
    if (!rc)
        metrics_init_seconds(metrics, run->workload, &timeline);
    timeline_release(&timeline);
    free(program.ops.items);
    return rc;
}

/* What stages that differ and jitter add, each found where there is any. For a difference to simgrid, fast is as good:
 * its times are the same. */
static int find_causes(const struct workload *workload, struct run *run, const struct op *plain,
                       struct simulate_options options, struct error *err)
{
    struct metrics *metrics = &run->metrics, other = {0};
    struct program lowered = run->lowered.program;
    double jitter = workload->scenario->simulation.jitter;
    struct simulate_options balanced = options;
    int rc = 0;

    if (options.engine == ENGINE_SIMGRID)
        balanced.engine = options.engine = ENGINE_FAST;
    lowered.ops.items = (struct op *)plain;
    metrics->imbalance = metrics->jitter = 0;
    balanced.what_ifs |= WHAT_IF_BALANCED;
    if (program_uneven(&lowered) && !(rc = replay_again(workload, run, plain, balanced, jitter, &other, err)))
        metrics->imbalance = metrics->seconds[ACCOUNT_BUBBLE] - other.seconds[ACCOUNT_BUBBLE];
    metrics_release(&other);
    if (!rc && jitter > 0 && !(rc = replay_again(workload, run, plain, options, 0, &other, err)))
        metrics->jitter = metrics->iteration_time - other.iteration_time;
    metrics_release(&other);
    return rc;
}

/* `there`: the workload on the network of the options. */
static int simulate_there(const struct workload *there, struct simulate_options options, struct run *run,
                          struct error *err)
{
    bool whole = options.what == LOWER_ITERATION;
    struct op *plain = NULL;
    int rc;

    if (build(there, options, run, err))
        return -1;
    if (whole && options.causes) {
        plain = xcalloc(run->lowered.program.ops.count + 1, sizeof *plain);
        memcpy(plain, run->lowered.program.ops.items, run->lowered.program.ops.count * sizeof *plain);
    }
    rc = play(there->scenario, &run->lowered.program, options, there->scenario->simulation.jitter, &run->timeline, err);
    if (!rc)
        (whole ? metrics_init : metrics_init_memory)(&run->metrics, run->workload, &run->lowered, &run->timeline);
    if (!rc && plain)
        rc = find_causes(there, run, plain, options, err);
    free(plain);
    return rc;
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
    if (simulate_there(&there, options, run, err))
        return -1;
    return check_metrics(run, err);
}

int run_verify(const struct run *run, enum engine engine, double *difference, struct error *err)
{
    struct timeline timeline;
    int rc;

    timeline_init(&timeline, &run->lowered.program);
    rc = replay(engine, &run->lowered.program, &run->workload->scenario->cluster, &timeline, err);
    if (!rc)
        *difference = timeline_difference(&run->timeline, &timeline);
    timeline_release(&timeline);
    return rc;
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
