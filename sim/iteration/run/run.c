#include "run/run.h"

#include "base/base.h"
#include "base/progress.h"
#include "engine/jitter.h"
#include "workload/lockstep.h"
#include "steady/rounding.h"
#include "steady/steady.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "alike/alike.h"
#include "auto/auto.h"
#include "collective/measure.h"
#include "lower/lower.h"
#include "run/certainty.h"
#include "scenario/settled.h"

struct simulate_options simulate_options_of(const struct scenario *scenario)
{
    return (struct simulate_options){.engine = (enum engine)scenario->simulation.engine};
}

struct simulate_options simulate_numbers_of(const struct scenario *scenario)
{
    struct simulate_options options = simulate_options_of(scenario);

    options.numbers = true;
    return options;
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
struct noise { double jitter; long long seed; };

/* What is simulated: a workload, on the network of the options. */
struct job {
    const struct workload *workload;
    struct shorter *shorter;         /* which it is of a longer one; NULL: it is the whole workload */
    struct simulate_options options;
};

/* Changes the program as it is asked for, and replays it. `loads`: as program_what_if has them. */
static int play(const struct job *job, struct program *program, struct noise noise, const struct loads *loads,
                struct timeline *timeline, struct error *err)
{
    program_what_if(program, job->options.what_ifs, loads);
    if (job->options.what == LOWER_ITERATION)
        jitter_apply(program, noise.jitter, noise.seed);
    timeline_init(timeline, program);
    if (job->shorter)
        return steady_replay(job->options.engine, program, timeline, job->shorter, err);
    return replay(job->options.engine, program, &job->workload->scenario->cluster, timeline, err);
}

/* Where the time goes in a replay of the same program with other what-ifs and jitter. */
static int replay_variant(const struct job *job, const struct program *plain, struct noise noise,
                          const struct loads *loads, struct metrics *metrics, struct error *err)
{
    struct program program = program_copy(plain);
    struct timeline timeline = {0};
    int rc = play(job, &program, noise, loads, &timeline, err);

    if (!rc) {
        metrics_init_seconds(metrics, job->workload, &timeline);
        rc = progress_check(program.progress, err);
    }
    timeline_release(&timeline);
    program_release(&program);
    return rc;
}

/* Whether fewer micro-batches might tell as much. */
static bool may_be_shorter(const struct workload *workload)
{
    return workload->plan.micro_batches > 1 && !workload->alike.reasons[ALIKE_MICRO_BATCHES];
}

/* Where the time goes in the job's program, balanced: of a shorter workload, if one tells the same. */
static int replay_balanced(const struct job *job, const struct program *plain, struct noise noise,
                           const struct loads *loads, struct metrics *metrics, struct error *err)
{
    struct job balanced = *job;
    struct shorter shorter = {0};
    int rc = UNSTEADY;

    balanced.options.what_ifs |= WHAT_IF_BALANCED;
    balanced.options.links = false;
    while (!job->shorter && noise.jitter == 0 && rc == UNSTEADY && may_be_shorter(job->workload) && shorter_next(&shorter, job->workload)) {
        struct run run = {0};

        balanced.workload = &shorter.workload;
        balanced.shorter = &shorter;
        rc = build(balanced.workload, balanced.options, &run, err);
        if (!rc)
            rc = replay_variant(&balanced, &run.lowered.program, noise, loads, metrics, err);
        run_release(&run);
    }
    shorter_release(&shorter);
    balanced.workload = job->workload;
    balanced.shorter = job->shorter;
    return rc > 0 ? replay_variant(&balanced, plain, noise, loads, metrics, err) : rc;
}

/* What stages that differ and jitter add, each found where there is any. For a difference to simgrid, fast is as good:
 * its times are the same. */
static int find_causes(const struct job *job, struct run *run, const struct program *plain, struct noise noise,
                       struct error *err)
{
    struct metrics *metrics = &run->metrics, other = {0};
    struct loads *loads = program_loads(plain, &run->timeline);
    struct job variant = *job;
    int rc = 0;

    if (variant.options.engine == ENGINE_SIMGRID)
        variant.options.engine = ENGINE_FAST;
    metrics->imbalance = metrics->jitter = 0;
    if (program_uneven(plain, loads) && !(rc = replay_balanced(&variant, plain, noise, loads, &other, err)))
        metrics->imbalance = metrics->seconds[ACCOUNT_BUBBLE] - other.seconds[ACCOUNT_BUBBLE];
    metrics_release(&other);
    if (!rc && job->workload->scenario->simulation.jitter > 0 && !(rc = replay_variant(&variant, plain, (struct noise){0}, NULL, &other, err)))
        metrics->jitter = metrics->iteration_time - other.iteration_time;
    metrics_release(&other);
    loads_release(loads);
    if (rc)
        metrics->imbalance = metrics->jitter = NAN;
    return rc;
}

/* The time of an iteration with a seed. */
struct replayed { double time; long long seed; };

static int by_time(const void *a, const void *b)
{
    const struct replayed *x = a, *y = b;

    return x->time != y->time ? (x->time > y->time) - (x->time < y->time) : (x->seed > y->seed) - (x->seed < y->seed);
}

/* Of `count` ascending ones; `percent`: of them that do not exceed it, at least. */
static struct replayed quantile(const struct replayed *replays, int count, int percent)
{
    return replays[(percent * count + 99) / 100 - 1];
}

/* Replays with all seeds; the median one's noise and time, and the quantiles. */
static int replay_seeds(const struct job *job, const struct program *plain, int count, struct noise *noise,
                        double quantiles[2], double *median, struct error *err)
{
    struct replayed *replays = xcalloc((size_t)count, sizeof *replays);
    int rc = 0;

    for (int i = 0; i < count && !rc; i++) {
        struct noise own = {noise->jitter, noise->seed + i};
        struct program program = program_copy(plain);
        struct timeline timeline = {0};

        rc = play(job, &program, own, NULL, &timeline, err);
        replays[i] = (struct replayed){rc ? 0 : metrics_iteration_time(job->workload, &timeline), own.seed};
        timeline_release(&timeline);
        program_release(&program);
    }
    array_sort(replays, (size_t)count, sizeof *replays, by_time);
    quantiles[0] = quantile(replays, count, 10).time;
    quantiles[1] = quantile(replays, count, 90).time;
    noise->seed = quantile(replays, count, 50).seed;
    *median = quantile(replays, count, 50).time;
    free(replays);
    return rc;
}

/* How much longer a replay takes whose kernels differ a little, as a share of the run's time; 0: no flows share links.
 * For simgrid, fast is as good. */
static int find_moved(const struct job *job, const struct program *plain, const struct run *run, double *moved,
                      struct error *err)
{
    const struct scenario *scenario = job->workload->scenario;
    double time = metrics_iteration_time(job->workload, &run->timeline);
    struct job fast = *job;
    struct program program;
    struct timeline timeline = {0};
    int rc;

    *moved = 0;
    if (!timeline_shares_links(&run->timeline, &scenario->cluster))
        return 0;
    program = program_copy(plain);
    fast.options.engine = ENGINE_FAST;
    rc = play(&fast, &program, (struct noise){LOCKSTEP_DIFFERENCE, scenario->simulation.seed}, NULL, &timeline, err);
    if (!rc && time > 0)
        *moved = metrics_iteration_time(job->workload, &timeline) / time - 1;
    timeline_release(&timeline);
    program_release(&program);
    return rc;
}

/* Replaces the run's replay, where it is an unstable one of replicas in lockstep, by the median one of several with jitter:
 * sets `noise`, the quantiles and `lockstep` (s: of the replay that is replaced; NaN: none is). */
static int play_apart(const struct job *job, const struct program *plain, struct run *run, struct noise *noise,
                      double quantiles[2], double *lockstep, struct error *err)
{
    double time = metrics_iteration_time(job->workload, &run->timeline), moved, found[2], median;
    struct noise apart = {LOCKSTEP_JITTER, noise->seed};

    if (find_moved(job, plain, run, &moved, err))
        return -1;
    if (fabs(moved) <= LOCKSTEP_GROWN)
        return 0;
    if (replay_seeds(job, plain, LOCKSTEP_REPLAYS, &apart, found, &median, err))
        return -1;
    if (fabs(moved) <= LOCKSTEP_MOVED && fabs(median / time - 1) <= LOCKSTEP_MOVED)
        return 0;
    *noise = apart;
    *lockstep = time;
    memcpy(quantiles, found, sizeof found);
    timeline_release(&run->timeline);
    program_release(&run->lowered.program);
    run->lowered.program = program_copy(plain);
    return play(job, &run->lowered.program, *noise, NULL, &run->timeline, err);
}

/* The metrics, or none where the budget is spent before they are complete. */
static int count(const struct scenario *scenario, struct run *run, struct error *err)
{
    metrics_init(&run->metrics, run->workload, &run->timeline);
    if (!progress_check(scenario->progress, err))
        return 0;
    metrics_release(&run->metrics);
    return -1;
}

/* UNSTEADY or UNPREDICTABLE: as play() has them. */
static int simulate_job(const struct job *job, struct run *run, struct error *err)
{
    const struct scenario *scenario = job->workload->scenario;
    const struct simulation_spec *spec = &scenario->simulation;
    bool whole = job->options.what == LOWER_ITERATION, repeats = whole && spec->repeat > 1;
    bool random = repeats && spec->jitter > 0;
    bool locks = whole && !job->shorter && job->options.engine != ENGINE_IDEAL && lockstep_possible(job->workload);
    bool changes = job->options.what_ifs || spec->jitter > 0 || locks;
    struct noise noise = {spec->jitter, spec->seed};
    double quantiles[2] = {NAN, NAN}, lockstep = NAN, median;
    struct program copy = {0};
    const struct program *plain = &run->lowered.program;
    int rc;

    if (build(job->workload, job->options, run, err))
        return -1;
    if (changes && (random || locks || (whole && job->options.causes))) {
        copy = program_copy(&run->lowered.program);
        plain = &copy;
    }
    rc = random ? replay_seeds(job, plain, spec->repeat, &noise, quantiles, &median, err) : 0;
    if (!rc)
        rc = play(job, &run->lowered.program, noise, NULL, &run->timeline, err);
    if (!rc && locks)
        rc = play_apart(job, plain, run, &noise, quantiles, &lockstep, err);
    if (!rc && whole)
        rc = count(scenario, run, err);
    if (repeats && !random && isnan(lockstep))               /* nothing is random: all replays would take the same time */
        quantiles[0] = quantiles[1] = run->metrics.iteration_time;
    run->metrics.iteration_time_p10 = quantiles[0];
    run->metrics.iteration_time_p90 = quantiles[1];
    run->metrics.lockstep = lockstep;
    certainty_spread(&run->metrics);
    run->seed = noise.seed;
    if (!rc && job->options.causes && whole)
        rc = find_causes(job, run, plain, noise, err);
    program_release(&copy);
    return rc;
}

/* A shorter workload, if one tells the same, or else the whole one. */
static int simulate_shortest(const struct workload *workload, struct simulate_options options, struct run *run,
                             struct error *err)
{
    struct shorter shorter = {0};
    const struct workload *whole = run->workload;
    bool may = options.numbers && !options.links && !options.what_ifs && may_be_shorter(workload);
    uint32_t why = WHY_ROWS;
    int rc = UNSTEADY;

    while (rc == UNSTEADY && may && shorter_next(&shorter, workload)) {
        why = WHY_UNSTEADY;
        rc = simulate_job(&(struct job){&shorter.workload, &shorter, options}, run, err);
        if (rc > 0) {
            run_release(run);
            run->workload = whole;
        }
    }
    shorter_release(&shorter);
    if (rc <= 0)
        return rc;
    rc = simulate_job(&(struct job){workload, NULL, options}, run, err);
    if (may)
        run->lowered.alike.reasons[ALIKE_MICRO_BATCHES] = why;
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
    struct scenario free_network;
    struct workload there = *workload;

    *run = (struct run){.workload = workload};
    if (options.free_network && !workload->scenario->cluster.ideal) {
        free_network = scenario_settled(workload->scenario, (struct settled){.free_network = true});
        there.scenario = &free_network;
        alike_make(there.scenario, there.stages, &there.alike);
    }
    if (progress_check(there.scenario->progress, err))
        return -1;
    if (options.memory)
        metrics_init_memory(&run->metrics, workload);
    else if (simulate_shortest(&there, options, run, err))
        return -1;
    return check_metrics(run, err);
}

int run_verify(const struct run *run, enum engine engine, double *difference, size_t *met, struct error *err)
{
    struct timeline timeline;
    int rc;

    timeline_init(&timeline, &run->lowered.program);
    rc = replay(engine, &run->lowered.program, &run->workload->scenario->cluster, &timeline, err);
    if (!rc)
        *difference = timeline_difference(&run->timeline, &timeline);
    *met = timeline.met + run->timeline.met;
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
