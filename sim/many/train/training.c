#include "train/training.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/progress.h"
#include "base/units.h"
#include "config/conf.h"
#include "hardware/cluster.h"
#include "run/energy.h"
#include "scenario/train_section.h"
#include "train/closed_form.h"
#include "train/course.h"
#include "train/course_steps.h"

/* Failures that all trials may have together, a million of which take less than a second. */
enum { MOST_FAILURES = 2000000000 };

static const struct stretch *main_stretch(const struct steps *steps)
{
    const struct stretch *main = steps->stretches.items;

    for (size_t i = 1; i < steps->stretches.count; i++) {
        const struct stretch *other = &steps->stretches.items[i];

        if (other->steps * steps_of(steps, other)->seconds > main->steps * steps_of(steps, main)->seconds)
            main = other;
    }
    return main;
}

static struct optimum optimum_of(const struct training *training, double interval)
{
    double survival = failures_survival(&training->failures, training->cost.load, training->mtbf);

    return (struct optimum){interval, 1 / closed_form_wall(interval, training->cost.block,
                                                           -training->mtbf * log(survival), training->mtbf)};
}

/* The scenario's interval, or the interval with the most goodput; and the closed forms for comparison. */
static void choose_interval(struct training *training)
{
    const struct step *step = steps_of(&training->steps, training->main);
    double block = training->cost.block, mtbf = training->mtbf, seconds;

    training->every = training->scenario->train->checkpoint->interval;
    if (training->failures.count && training->failures.shape == 1 && !training->failures.trace) {
        training->young = optimum_of(training, closed_form_young(block, mtbf));
        training->daly = optimum_of(training, closed_form_daly(block, mtbf));
        training->exact = optimum_of(training, closed_form_exact(block, mtbf));
    }
    if (training->every.automatic && isinf(mtbf))
        training->every.steps = INFINITY;
    else if (training->every.automatic)
        training->every.seconds = closed_form_beside(block, training->cost.write, step->seconds, mtbf);
    seconds = isnan(training->every.steps) ?
                  fmax(1, ceil(training->every.seconds / step->seconds - 0.5)) * step->seconds :
                  training->every.steps * step->seconds;
    if (!isnan(training->exact.interval))
        training->chosen = optimum_of(training, seconds);
}

static int check_spares(const struct training *training, struct error *err)
{
    const struct spares_spec *spares = training->scenario->train->spares;
    int nodes = steps_of(&training->steps, training->main)->nodes;

    if (!spares || spares->nodes <= nodes)
        return 0;
    return error_clash(err, node_loc(spares->node, "nodes"),
                       "train: spares: %d spare nodes are more than the %d that train", spares->nodes, nodes);
}

/* A training is refused if its mean wall time is TRIAL_HOPELESS times the time of its steps. */
static int check_progress(const struct training *training, struct error *err)
{
    const struct failures *failures = &training->failures;
    double wall = (training_keeps_work(training) ? failures_step_wall : failures_wall)(failures, &training->course);
    const struct step *step = steps_of(&training->steps, training->main);
    double interval = isnan(training->every.steps) ? training->every.seconds : training->every.steps * step->seconds;
    char mtbf[48], every[48], recovery[48];

    if (training->failures.trace)
        return 0;
    if (wall < TRIAL_HOPELESS * training->course.useful &&
        wall / training->mtbf * (double)training->options.trials > MOST_FAILURES)
        return error_clash(err, training->scenario->train->failures->node->loc,
                           "train: %zu trials have about %.3g failures each; "
                           "expected at most %d in all: try fewer --trials",
                           training->options.trials, wall / training->mtbf, MOST_FAILURES);
    if (wall < TRIAL_HOPELESS * training->course.useful)
        return 0;
    return error_clash(
        err, training->scenario->train->failures->node->loc,
        "train: the training cannot progress: there is a failure each %s, a checkpoint each %s of work, and a "
        "recovery takes %s; the wall time would be more than %d times the time of the steps",
        unit_format_short(UNIT_TIME, training->mtbf, mtbf, sizeof mtbf),
        unit_format_short(UNIT_TIME, fmin(interval, training->course.useful), every, sizeof every),
        unit_format_short(UNIT_TIME, training->recovery, recovery, sizeof recovery), TRIAL_HOPELESS);
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double quantile(const double *sorted, size_t count, double share)
{
    size_t rank = (size_t)ceil(share * (double)count);

    return sorted[rank ? rank - 1 : 0];
}

/* The mean and the quantiles of one value of the trials that finished. Sorts the values. */
static struct estimate estimate_of(double *values, size_t count)
{
    double sum = 0;

    if (!count || isnan(values[0]))
        return (struct estimate){NAN, NAN, NAN, NAN};
    array_sort(values, count, sizeof *values, ascending);
    for (size_t i = 0; i < count; i++)
        sum += values[i];
    return (struct estimate){sum / (double)count, quantile(values, count, 0.1), quantile(values, count, 0.5),
                             quantile(values, count, 0.9)};
}

/* Dollars. */
static double price_of(const struct training *training, const struct trial *trial)
{
    return training->scenario->price * training_paid(training, trial) / SECONDS_AN_HOUR;
}

double training_energy(const struct training *training, const struct trial *trial)
{
    const struct spares_spec *spares = training->spares;
    int warm = spares && spares->warm ? spares->nodes : 0;
    int gpus = warm * cluster_node_gpus(&training->scenario->cluster, 0);
    double spare = warm ? energy_power(training->scenario, gpus, warm, (struct occupation){0, 0}) : 0;

    return trial->joules + spare * trial->wall;
}

static double energy_of(const struct training *training, const struct trial *trial)
{
    return energy_pue(training->scenario) * training_energy(training, trial);
}

static double days_of(const struct training *training, const struct trial *trial)
{
    return (void)training, trial->wall / SECONDS_A_DAY;
}

static double goodput_of(const struct training *training, const struct trial *trial)
{
    return training->course.useful / trial->wall;
}

static double gpu_hours_of(const struct training *training, const struct trial *trial)
{
    return (void)training, trial->gpu_seconds / SECONDS_AN_HOUR;
}

static struct estimate estimate(const struct training *training, size_t count, double *values,
                                double (*value)(const struct training *training, const struct trial *trial))
{
    size_t finished = 0;

    for (size_t i = 0; i < count; i++)
        if (training->trials[i].end == TRIAL_FINISHED)
            values[finished++] = value(training, &training->trials[i]);
    return estimate_of(values, finished);
}

/* The mean goodput is useful time over mean wall time, which the closed form has. Its standard error is the mean wall
 * time's, to first order. */
static void estimate_goodput(struct training *training, size_t count, double *values)
{
    double mean, squares = 0, finished = (double)training->ended[TRIAL_FINISHED];

    training->goodput = estimate(training, count, values, goodput_of);
    mean = training->days.mean * SECONDS_A_DAY;
    training->goodput.mean = training->course.useful / mean;
    for (size_t i = 0; i < count; i++)
        if (training->trials[i].end == TRIAL_FINISHED)
            squares += (training->trials[i].wall - mean) * (training->trials[i].wall - mean);
    training->goodput_error = finished > 1 ? training->goodput.mean / mean * sqrt(squares / (finished - 1) / finished) :
                                             0;
}

static void estimate_passed(struct training *training, size_t count, double *values)
{
    for (int part = 0; part <= TRIAL_PARTS; part++) {
        size_t finished = 0;

        for (size_t i = 0; i < count; i++)
            if (training->trials[i].end == TRIAL_FINISHED)
                values[finished++] = training->trials[i].passed[part];
        training->passed[part] = estimate_of(values, finished);
    }
}

static void summarize(struct training *training, size_t count)
{
    double *values = xcalloc(count, sizeof *values), finished, flop_share = 0;

    for (size_t i = 0; i < count; i++)
        training->ended[training->trials[i].end]++;
    finished = (double)training->ended[TRIAL_FINISHED];
    training->days = estimate(training, count, values, days_of);
    estimate_goodput(training, count, values);
    training->gpu_hours = estimate(training, count, values, gpu_hours_of);
    training->price = estimate(training, count, values, price_of);
    training->energy = estimate(training, count, values, energy_of);
    estimate_passed(training, count, values);
    free(values);
    for (size_t i = 0; i < count; i++) {
        const struct trial *trial = &training->trials[i];

        if (trial->end != TRIAL_FINISHED)
            continue;
        training->failed += trial->failures / finished;
        training->lost += trial->nodes_lost / finished;
        training->memory_lost += trial->memory_lost / finished;
        for (int loss = 0; loss < LOSS_COUNT; loss++)
            training->losses[loss] += trial->losses[loss] / finished;
    }
    for (size_t i = 0; i < training->steps.stretches.count; i++) {
        const struct stretch *stretch = &training->steps.stretches.items[i];
        const struct step *step = steps_of(&training->steps, stretch);

        training->tokens += stretch->steps * step->tokens;
        training->samples += stretch->steps * step->samples;
        training->mfu += stretch->steps * step->seconds * step->gpus;
        flop_share += stretch->steps * step->seconds * step->gpus * step->mfu;
    }
    training->mfu = flop_share / training->mfu;
    training->mfu_all_in = flop_share / (training->gpu_hours.mean * SECONDS_AN_HOUR);
}

/* Steps, checkpoints and failures, before any trial. */
static int prepare(struct training *training, const struct run *run, struct error *err)
{
    const struct scenario *scenario = training->scenario;
    const struct step *step;
    bool checkpoints = scenario->train->checkpoint != NULL;

    if (failures_init(&training->failures, scenario, err) || steps_init(&training->steps, scenario, run, err))
        return -1;
    training->main = main_stretch(&training->steps);
    step = steps_of(&training->steps, training->main);
    if (check_spares(training, err) ||
        (checkpoints && checkpoint_cost(scenario, &training->steps, step, &training->cost, err)))
        return -1;
    training->mtbf = failures_mtbf(&training->failures, step->nodes);
    training->recovery = failures_recovery(&training->failures, training->cost.load);
    if (checkpoints)
        choose_interval(training);
    return course_init(&training->course, scenario, &training->steps, checkpoints ? &training->every : NULL, err);
}

int training_init(struct training *training, const struct scenario *scenario, struct training_options options,
                  struct error *err)
{
    return training_init_with(training, scenario, NULL, options, err);
}

int training_init_with(struct training *training, const struct scenario *scenario, const struct run *run,
                       struct training_options options, struct error *err)
{
    size_t count;
    struct trial_rules rules;

    *training = (struct training){.scenario = scenario, .options = options, .expected_wall = NAN};
    training->young = training->daly = training->exact = training->chosen = (struct optimum){NAN, NAN};
    if (scenario->train && scenario->train->spares) {
        training->spared = *scenario->train->spares;
        training->spares = &training->spared;
    }
    if (!training_says_amount(scenario->train))
        return error_add(err, EXIT_INPUT, scenario->node->loc,
                         "missing section 'train', which says how long the model is "
                         "trained; try 'train: {tokens: 15 T}' (dtsim help training)");
    if (prepare(training, run, err) || check_progress(training, err))
        return -1;
    if (training->failures.shape == 1 && !training->failures.trace && !training->spares && !training_rules(training).copies)
        training->expected_wall = failures_wall(&training->failures, &training->course);
    count = training->options.trials = training->failures.count ? options.trials : 1;
    training->trials = xcalloc(count, sizeof *training->trials);
    if (spares_choose(training, err))
        return -1;
    rules = training_rules(training);
    if (trials_run(training->trials, count, &rules, options.jobs, scenario->progress, err))
        return -1;
    summarize(training, count);
    return 0;
}

void training_release(struct training *training)
{
    steps_release(&training->steps);
    course_release(&training->course);
    free(training->trials);
    training->trials = NULL;
}
