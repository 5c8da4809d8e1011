#include "plan/goal.h"

#include <math.h>
#include <string.h>

#include "base/base.h"
#include "base/units.h"
#include "config/conf.h"
#include "config/field.h"
#include "results/results_table.h"
#include "run/metrics.h"
#include "train/row_metrics.h"

/* Values of rows that are no metrics of a run. */
static const char *const others[] = {"gpus", "cost", "gpu_hours", "memory_margin_bytes"};

static const char *metric_name(size_t i, const void *context)
{
    (void)context;
    if (i < COUNT(others))
        return others[i];
    return metric_at(i - COUNT(others)) ? metric_at(i - COUNT(others))->name : NULL;
}

/* These and, as 'dtsim train' calls them, those of a training. */
static const char *any_name(size_t i, const void *context)
{
    size_t count = 0;

    while (metric_name(count, context))
        count++;
    return i < count ? metric_name(i, context) : training_metric_at(i - count);
}

/* Refuses a metric that no row would have. */
static int check_needs(const char *key, const char *text, struct loc loc, struct goal_needs needs, struct error *err)
{
    if (!strcmp(text, "cost") && !needs.priced)
        return error_add(err, EXIT_INPUT, loc, "plan: %s: cost needs a price; expected 'price: 2.50 $/h' in the "
                         "scenario, or --set price='2.50 $/h'", key);
    if (!strcmp(text, "energy_j") && needs.powerless && !*needs.powerless)
        return error_add(err, EXIT_INPUT, loc, "plan: %s: energy_j needs the power of GPUs, and the cluster names none; "
                         "expected cluster.gpu, or train.energy with 'gpu' and 'node'", key);
    if (!strcmp(text, "energy_j") && needs.powerless)
        return error_add(err, EXIT_INPUT, loc, "plan: %s: energy_j needs the power of %s, whose file does not say "
                         "'power'; expected it there ('dtsim help gpu'), or train.energy with 'gpu' and 'node' in the "
                         "scenario", key, needs.powerless);
    return 0;
}

/* The name of the metric in rows: of a training, where the scenario has one and its name fits, else of an iteration. NULL
 * after an error. */
static const char *row_name(const char *key, const char *text, struct loc loc, struct goal_needs needs, struct error *err)
{
    const char *meant, *own = training_metric(text);

    if (own && needs.trained)
        return strstr(own, "cost") && check_needs(key, "cost", loc, needs, err) ? NULL : own;
    for (size_t i = 0; metric_name(i, NULL); i++)
        if (!strcmp(metric_name(i, NULL), text))
            return check_needs(key, text, loc, needs, err) ? NULL : text;
    if (own) {
        error_add(err, EXIT_INPUT, loc, "plan: %s: %s is of a training, and the scenario has none; expected its section 'train', "
                  "such as --set train.tokens='1 T'", key, text);
        return NULL;
    }
    meant = nearest(text, needs.trained ? any_name : metric_name, NULL);
    error_add(err, EXIT_INPUT, loc, "plan: %s: there is no metric '%s'; %s%s%s", key, text,
                     meant ? "did you mean '" : "expected one such as iteration_time_s, gpus or cost",
                     meant ? meant : "", meant ? "'?" : "");
    return NULL;
}

static int add_objective(const struct node *name, struct goal_needs needs, struct goal *goal, struct error *err)
{
    if (name->kind != NODE_SCALAR || node_is_null(name))
        return error_add(err, EXIT_INPUT, name->loc, "plan: objective: expected the name of a metric such as "
                         "iteration_time_s, gpus or cost");
    if (goal->nobjectives == GOAL_OBJECTIVES)
        return error_add(err, EXIT_INPUT, name->loc, "plan: objective: more than %d metrics", GOAL_OBJECTIVES);
    const char *metric = row_name("objective", name->text, name->loc, needs, err);
    if (!metric)
        return -1;
    for (size_t i = 0; i < goal->nobjectives; i++)
        if (!strcmp(goal->objectives[i].name, metric))
            return error_add(err, EXIT_INPUT, name->loc, "plan: objective: '%s' stands there twice", name->text);
    goal->objectives[goal->nobjectives++] = (struct objective){metric, results_wants_most(metric)};
    return 0;
}

/* The unit of a metric's value, from the end of its name. */
static enum unit unit_of(const char *name)
{
    size_t length = strlen(name);
    bool rate = strstr(name, "_per_s") != NULL;

    if (!rate && length > 2 && !strcmp(name + length - 2, "_s"))
        return UNIT_TIME;
    return strstr(name, "bytes") ? UNIT_BYTES : UNIT_NUMBER;
}

static int add_limit(const char *name, struct loc loc, const struct node *value, struct goal_needs needs,
                     struct goal *goal, struct error *err)
{
    struct goal_limit *limit = &goal->limits[goal->nlimits];
    char why[256];

    if (goal->nlimits == GOAL_LIMITS)
        return error_add(err, EXIT_INPUT, loc, "plan: subject_to: more than %d metrics", GOAL_LIMITS);
    if (!(name = row_name("subject_to", name, loc, needs, err)))
        return -1;
    *limit = (struct goal_limit){name, results_wants_most(name), 0};
    if (value->kind != NODE_SCALAR)
        return error_add(err, EXIT_INPUT, value->loc, "plan: subject_to: %s: expected %s", name,
                         unit_expectation(unit_of(name)));
    if (unit_parse(unit_of(name), value->text, &limit->value, why, sizeof why))
        return error_add(err, EXIT_INPUT, value->loc, "plan: subject_to: %s: %s", name, why);
    goal->nlimits++;
    return 0;
}

int goal_read(const struct node *objective, const struct node *subject_to, struct goal_needs needs, struct goal *goal,
              struct error *err)
{
    int rc = 0;

    *goal = (struct goal){.steady = needs.steady, .same_steps = needs.same_steps};
    if (objective && objective->kind == NODE_SEQUENCE && !objective->count)
        rc = error_add(err, EXIT_INPUT, objective->loc, "plan: objective: found an empty list; expected metrics such as "
                       "iteration_time_s, gpus or cost, or the key left out");
    if (objective && objective->kind != NODE_SEQUENCE)
        rc = add_objective(objective, needs, goal, err);
    for (size_t i = 0; objective && objective->kind == NODE_SEQUENCE && i < objective->count; i++)
        rc = add_objective(objective->items[i], needs, goal, err) ? -1 : rc;
    if (subject_to && subject_to->kind != NODE_MAPPING)
        return error_add(err, EXIT_INPUT, subject_to->loc, "plan: subject_to: expected limits of metrics such as "
                         "{iteration_time_s: 12 s}");
    for (size_t i = 0; subject_to && i < subject_to->count; i++)
        rc = add_limit(subject_to->keys[i], subject_to->key_locs[i], subject_to->items[i], needs, goal, err) ? -1 : rc;
    return rc;
}

int goal_limits(struct arena *arena, const char *text, struct node **limits, struct error *err)
{
    struct loc loc = {.file = "--subject-to"};
    char *rest = arena_strdup(arena, text);

    *limits = node_mapping(arena);
    (*limits)->loc = loc;
    for (char *one; (one = strsep(&rest, ","));) {
        char *equals = strchr(one, '=');
        struct node *value;

        if (!equals || equals == one || !equals[1])
            return error_add(err, EXIT_USAGE, loc, "expected METRIC=VALUE such as iteration_time_s=12s, found '%s'", one);
        *equals = '\0';
        value = node_scalar(arena, equals + 1, false);
        value->loc = loc;
        if (node_get(*limits, one))
            return error_add(err, EXIT_USAGE, loc, "'%s' stands there twice", one);
        node_put(arena, *limits, one, value);
        (*limits)->key_locs[(*limits)->count - 1] = loc;
    }
    return 0;
}

double goal_longest(const struct goal *goal)
{
    for (size_t i = 0; i < goal->nlimits; i++)
        if (!strcmp(goal->limits[i].name, "iteration_time_s"))
            return goal->limits[i].value;
    return INFINITY;
}

/* Metrics of a training that grow with its wall time, by the begin of their names; the metric of an iteration whose sum over all
 * steps they cannot go below, and how many of its units make one of theirs. */
static const struct growing { const char *begin, *iteration; double units; } growing[] = {
    {"days", "iteration_time_s", SECONDS_A_DAY}, {"training_gpu_hours", "gpu_hours", 1}, {"training_cost", "cost", 1},
};

static const struct growing *growing_of(const char *name)
{
    for (size_t i = 0; i < COUNT(growing); i++)
        if (!strncmp(name, growing[i].begin, strlen(growing[i].begin)))
            return &growing[i];
    return NULL;
}

bool goal_trains(const struct goal *goal)
{
    bool trains = false;

    for (size_t i = 0; i < goal->nobjectives; i++)
        trains |= training_metric(goal->objectives[i].name) == goal->objectives[i].name;
    for (size_t i = 0; i < goal->nlimits; i++)
        trains |= training_metric(goal->limits[i].name) == goal->limits[i].name;
    return trains;
}

bool goal_is_timely(const struct goal *goal)
{
    static const char timely[] = "iteration_time_s samples_per_s tokens_per_s tokens_per_s_per_gpu gpus cost gpu_hours";

    for (size_t i = 0; i < goal->nobjectives; i++)
        if (!word_in(timely, goal->objectives[i].name) && !(goal->steady && growing_of(goal->objectives[i].name)))
            return false;
    return true;
}

static double number_of(const json_t *metrics, const char *name)
{
    const json_t *value = json_object_get(metrics, name);

    return json_is_number(value) ? json_number_value(value) : NAN;
}

double goal_longest_step(const struct goal *goal, const json_t *metrics)
{
    double steps = number_of(metrics, "training_steps"), longest = INFINITY;

    for (size_t i = 0; i < goal->nlimits && goal->steady && goal->same_steps; i++)
        if (growing_of(goal->limits[i].name) == growing && steps > 0)
            longest = fmin(longest, goal->limits[i].value * SECONDS_A_DAY / steps);
    return longest;
}

double goal_seconds(const struct goal *goal, const json_t *metrics)
{
    double seconds = number_of(metrics, "iteration_time_s"), steps = number_of(metrics, "training_steps"), longest = seconds;

    for (size_t i = 0; i < goal->nobjectives; i++) {
        const char *name = goal->objectives[i].name;
        const struct growing *grows = growing_of(name);

        if (grows)      /* fmax ignores NaN */
            longest = fmax(longest, seconds * number_of(metrics, name) * grows->units / (steps * number_of(metrics, grows->iteration)));
    }
    return longest;
}

double goal_miss(const struct goal *goal, const json_t *row, const struct goal_limit **limit, double *value)
{
    double most = 0;

    for (size_t i = 0; i < goal->nlimits; i++) {
        const struct goal_limit *kept = &goal->limits[i];
        double found = number_of(json_object_get(row, "metrics"), kept->name);
        double over = kept->most ? kept->value - found : found - kept->value;

        if (over <= 0)
            continue;
        over = isnan(over) ? INFINITY : over / fmax(fabs(kept->value), 1e-300);
        if (over > most)
            most = over, *limit = kept, *value = found;
    }
    return most;
}
