#include "run/run.h"

#include "base/progress.h"
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
    measure.progress = workload->scenario->progress;
    measure.counts = options.links;
    if (workload->scenario->arena.cache && !options.links)
        measure.cache = workload->scenario->arena.cache;
    rc = lower(workload, options.what, &measure, &run->lowered, err);
    if (!rc && options.links)
        links_count(&run->links, workload, &run->lowered, &measure);
    measure_release(&measure);
    return rc;
}

/* The random numbers of a replay. */
struct luck { double jitter; long long seed; };

/* Changes the program as it is asked for, and replays it. */
static int play(const struct scenario *scenario, struct program *program, struct simulate_options options,
                struct luck luck, struct timeline *timeline, struct error *err)
{
    program_what_if(program, options.what_ifs);
    if (options.what == LOWER_ITERATION)
        jitter_apply(program, luck.jitter, luck.seed);
    timeline_init(timeline, program);
    return replay(options.engine, program, &scenario->cluster, timeline, err);
}

/* Where the time goes in a replay of the same program with other what-ifs and jitter. */
static int replay_again(const struct workload *workload, const struct program *plain, struct simulate_options options,
                        struct luck luck, struct metrics *metrics, struct error *err)
{
    struct program program = program_copy(plain);
    struct timeline timeline = {0};
    int rc = play(workload->scenario, &program, options, luck, &timeline, err);

    if (!rc) {
        metrics_init_seconds(metrics, workload, &timeline);
        rc = progress_check(program.progress, err);
    }
    timeline_release(&timeline);
    program_release(&program);
    return rc;
}

/* What stages that differ and jitter add, each found where there is any. For a difference to simgrid, fast is as good:
 * its times are the same. */
static int find_causes(const struct workload *workload, struct run *run, const struct program *plain,
                       struct simulate_options options, struct luck luck, struct error *err)
{
    struct metrics *metrics = &run->metrics, other = {0};
    struct simulate_options balanced = options;
    int rc = 0;

    if (options.engine == ENGINE_SIMGRID)
        balanced.engine = options.engine = ENGINE_FAST;
    metrics->imbalance = metrics->jitter = 0;
    balanced.what_ifs |= WHAT_IF_BALANCED;
    if (program_uneven(plain) && !(rc = replay_again(workload, plain, balanced, luck, &other, err)))
        metrics->imbalance = metrics->seconds[ACCOUNT_BUBBLE] - other.seconds[ACCOUNT_BUBBLE];
    metrics_release(&other);
    if (!rc && luck.jitter > 0 && !(rc = replay_again(workload, plain, options, (struct luck){0}, &other, err)))
        metrics->jitter = metrics->iteration_time - other.iteration_time;
    metrics_release(&other);
    if (rc)
        metrics->imbalance = metrics->jitter = NAN;
    return rc;
}

/* The time of an iteration with a seed. */
struct draw { double time; long long seed; };

static int by_time(const void *a, const void *b)
{
    const struct draw *x = a, *y = b;

    return x->time != y->time ? (x->time > y->time) - (x->time < y->time) : (x->seed > y->seed) - (x->seed < y->seed);
}

/* Of `count` ascending ones; `percent`: of them that do not exceed it, at least. */
static struct draw quantile(const struct draw *draws, int count, int percent)
{
    return draws[(percent * count + 99) / 100 - 1];
}

/* Replays with all seeds; the median one's luck, and the quantiles. */
static int draw_all(const struct workload *workload, const struct program *plain, struct simulate_options options,
                    int count, struct luck *luck, double quantiles[2], struct error *err)
{
    struct draw *draws = xcalloc((size_t)count, sizeof *draws);
    int rc = 0;

    for (int i = 0; i < count && !rc; i++) {
        struct luck own = {luck->jitter, luck->seed + i};
        struct program program = program_copy(plain);
        struct timeline timeline = {0};

        rc = play(workload->scenario, &program, options, own, &timeline, err);
        draws[i] = (struct draw){rc ? 0 : metrics_iteration_time(workload, &timeline), own.seed};
        timeline_release(&timeline);
        program_release(&program);
    }
    qsort(draws, (size_t)count, sizeof *draws, by_time);
    quantiles[0] = quantile(draws, count, 10).time;
    quantiles[1] = quantile(draws, count, 90).time;
    luck->seed = quantile(draws, count, 50).seed;
    free(draws);
    return rc;
}

/* The metrics, or none where the budget is spent before they are complete. */
static int count(const struct scenario *scenario, bool whole, struct run *run, struct error *err)
{
    (whole ? metrics_init : metrics_init_memory)(&run->metrics, run->workload, &run->timeline);
    if (!progress_check(scenario->progress, err))
        return 0;
    metrics_release(&run->metrics);
    return -1;
}

/* `there`: the workload on the network of the options. */
static int simulate_there(const struct workload *there, struct simulate_options options, struct run *run,
                          struct error *err)
{
    const struct simulation_spec *spec = &there->scenario->simulation;
    bool whole = options.what == LOWER_ITERATION, repeats = whole && spec->repeat > 1;
    bool draws = repeats && spec->jitter > 0, changes = options.what_ifs || spec->jitter > 0;
    struct luck luck = {spec->jitter, spec->seed};
    double quantiles[2] = {NAN, NAN};
    struct program copy = {0};
    const struct program *plain = &run->lowered.program;
    int rc;

    if (build(there, options, run, err))
        return -1;
    if (changes && (draws || (whole && options.causes))) {
        copy = program_copy(&run->lowered.program);
        plain = &copy;
    }
    rc = draws ? draw_all(there, plain, options, spec->repeat, &luck, quantiles, err) : 0;
    if (!rc)
        rc = play(there->scenario, &run->lowered.program, options, luck, &run->timeline, err);
    if (!rc)
        rc = count(there->scenario, whole, run, err);
    if (repeats && !draws)               /* nothing is random: all replays would take the same time */
        quantiles[0] = quantiles[1] = run->metrics.iteration_time;
    run->metrics.iteration_time_p10 = quantiles[0];
    run->metrics.iteration_time_p90 = quantiles[1];
    run->seed = luck.seed;
    if (!rc && options.causes && whole)
        rc = find_causes(there, run, plain, options, luck, err);
    program_release(&copy);
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
    if (progress_check(scenario.progress, err) || simulate_there(&there, options, run, err))
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
    return simulate(workload, options, run, err) ? -1 : memory_check(run, !options.no_advice, err);
}
