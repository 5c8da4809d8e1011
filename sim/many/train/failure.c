#include "train/failure.h"

#include <math.h>

#include "base/random.h"
#include "base/units.h"
#include "train/course.h"

static double either(double own, double usual)
{
    return isnan(own) ? usual : own;
}

static void add(struct failures *failures, const struct restart_spec *restart, const struct cause_spec *cause)
{
    struct cause *new = &failures->causes[failures->count++];

    *new = (struct cause){
        .name = cause->name, .rate = cause->per_node_day / SECONDS_A_DAY, .loses_node = cause->loses_node,
        .detect = either(cause->detect, restart->detect), .replace = either(cause->replace, restart->replace),
        .init = either(cause->init, restart->init),
    };
    if (!new->loses_node && isnan(cause->replace))
        new->replace = 0;
    failures->rate += new->rate;
}

int failures_init(struct failures *failures, const struct scenario *scenario, struct error *err)
{
    const struct training_spec *train = scenario->train;
    const struct failures_spec *spec = train->failures;
    const struct failures_file *named = spec ? spec->named : NULL;
    const struct list *causes = named ? &named->causes : spec ? &spec->causes : NULL;
    struct cause_spec all = {.name = "node failure", .loses_node = true, .detect = NAN, .replace = NAN, .init = NAN};

    *failures = (struct failures){.shape = spec ? spec->shape : 1};
    if (!spec)
        return 0;
    all.per_node_day = named ? named->per_node_day : spec->per_node_day;
    if (all.per_node_day == 0)
        return 0;
    if (spec->traced)
        all = (struct cause_spec){.name = "trace", .per_node_day = 1, .loses_node = true, .detect = NAN, .replace = NAN,
                                  .init = NAN};
    failures->trace = spec->traced;
    if (!train->checkpoint || !train->restart)
        return error_add(err, EXIT_INPUT, spec->node->loc, "train: failures: section '%s' is missing: %s",
                         train->checkpoint ? "restart" : "checkpoint", train->checkpoint ?
                         "a failure takes the time of 'detect', 'replace' and 'init'" :
                         "a failure loses all work since the last checkpoint");
    if (causes->count > FAILURE_CAUSES)
        return error_add(err, EXIT_INPUT, spec->node->loc, "train: failures: causes: found %zu; expected at most %d",
                         causes->count, FAILURE_CAUSES);
    if (!causes->count)
        add(failures, train->restart, &all);
    for (size_t i = 0; i < causes->count; i++)
        add(failures, train->restart, (const struct cause_spec *)causes->items + i);
    if (failures->rate == 0)
        failures->count = 0;
    return 0;
}

double failures_mtbf(const struct failures *failures, int nodes)
{
    if (failures->trace)
        return failures->trace->mtbf;
    return failures->count ? 1 / (failures->rate * nodes) : INFINITY;
}

double failures_recovery(const struct failures *failures, double load)
{
    double sum = 0;

    for (size_t i = 0; i < failures->count; i++) {
        const struct cause *cause = &failures->causes[i];

        sum += cause->rate * (cause->detect + cause->replace + cause->init + load);
    }
    return failures->count ? sum / failures->rate : 0;
}

double failures_survival(const struct failures *failures, double load, double mtbf)
{
    double sum = 0;

    for (size_t i = 0; i < failures->count; i++) {
        const struct cause *cause = &failures->causes[i];

        sum += cause->rate * exp(-(cause->detect + cause->replace + cause->init + load) / mtbf);
    }
    return failures->count ? sum / failures->rate : 1;
}

double failures_wall(const struct failures *failures, const struct course *course)
{
    double wall = 0;

    if (!failures->count)
        return course->end;
    for (size_t i = 1; i < course->marks.count; i++) {
        const struct mark *from = &course->marks.items[i - 1], *to = from + 1;
        const struct zone *zone = course_zone(course, from->safe);
        double mtbf = failures_mtbf(failures, zone->nodes),
               survival = failures_survival(failures, zone->cost.load, mtbf);
        double first = -expm1(-(to->safe - from->safe) / mtbf);

        wall += first * mtbf / survival * exp((to->safe - from->resumes) / mtbf);
    }
    return wall;
}

double failures_step_wall(const struct failures *failures, const struct course *course)
{
    const struct zone *zone = course->zones.items;
    double mtbf = failures_mtbf(failures, zone->nodes), survival = 0;

    if (!failures->count)
        return course->end;
    for (size_t i = 0; i < failures->count; i++)
        survival += failures->causes[i].rate / failures->rate *
                    exp(-(failures->causes[i].detect + zone->reroute) / mtbf);
    return course->end * mtbf / survival * expm1(course->step / mtbf) / course->step;
}

double random_failures_share(struct random_failures *random)
{
    return random_share(random->seed, random->index++);
}

void random_failures_next(struct random_failures *random, const struct failures *failures)
{
    double exponential = -log1p(-random_failures_share(random));

    random->left = failures->shape == 1 ? exponential :
                 pow(exponential, 1 / failures->shape) / tgamma(1 + 1 / failures->shape);
}

const struct cause *random_failures_cause(struct random_failures *random, const struct failures *failures)
{
    double rest = random_failures_share(random) * failures->rate;
    size_t i = 0;

    for (; i + 1 < failures->count && rest >= failures->causes[i].rate; i++)
        rest -= failures->causes[i].rate;
    return &failures->causes[i];
}
