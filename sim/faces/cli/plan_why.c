/* Why the first row of a plan is the first, axis by axis. */
#include "cli/plan_print.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/text.h"
#include "base/units.h"
#include "base/words.h"
#include "hardware/cluster.h"
#include "plan/space.h"
#include "results/results.h"
#include "results/results_table.h"
#include "run/attempt.h"
#include "scenario/scenario.h"

static double metric(const json_t *row, const char *name)
{
    const json_t *value = json_object_get(json_object_get(row, "metrics"), name);

    return json_is_number(value) ? json_number_value(value) : NAN;
}

static void print_value(const json_t *value, FILE *out)
{
    char *text = json_is_string(value) ? NULL : json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);

    text_write(TEXT_LINE, text ? text : json_string_value(value) ? json_string_value(value) : "none", out);
    free(text);
}

/* Whether an earlier row of the first place has the same value. */
static bool is_said(const struct results *results, size_t row, int key)
{
    for (size_t i = 0; i < row; i++)
        if (results_rank_of(results, i).rank == 1 && json_equal(results_json(results, i, key), results_json(results, row, key)))
            return true;
    return false;
}

/* The values that the rows of the first place have. */
static size_t values_of(const struct results *results, int key)
{
    size_t count = 0;

    for (size_t i = 0; i < results->rows.count; i++)
        count += results_rank_of(results, i).rank == 1 && !is_said(results, i, key);
    return count;
}

/* "no difference that could be told: CP 4 or 2, chunks 8, 4 or 5". */
static void print_open(const struct space *space, const struct results *results, FILE *out)
{
    struct arena arena = {0};
    const char *before = "no difference that could be told: ";

    for (size_t a = 0; a < space->naxes; a++) {
        int key = results_find(results, space->axes[a].path);
        size_t count = key < 0 ? 0 : values_of(results, key), said = 0;

        if (count < 2)
            continue;
        fprintf(out, "%s%s ", before, words_of(&arena, space->axes[a].path));
        for (size_t i = 0; i < results->rows.count; i++)
            if (results_rank_of(results, i).rank == 1 && !is_said(results, i, key)) {
                fputs(!said ? "" : said + 1 == count ? " or " : ", ", out);
                print_value(results_json(results, i, key), out);
                said++;
            }
        before = "; ";
    }
    fputs(*before == ';' ? "\n" : "", out);
    arena_release(&arena);
}

/* What the rows are ordered by. */
static struct objective objective_of(const struct space *space)
{
    return space->goal.nobjectives ? space->goal.objectives[0] : (struct objective){"iteration_time_s", false};
}

/* The best row, the first in their order, that has another value; the number of rows: none has. */
static size_t best_other(const struct results *results, int key, struct objective by)
{
    size_t best = results->rows.count;

    for (size_t i = 1; i < results->rows.count; i++) {
        double own = metric(results->rows.items[i], by.name);
        double other = best < results->rows.count ? metric(results->rows.items[best], by.name) : by.most ? -INFINITY : INFINITY;

        if (!json_equal(results_json(results, i, key), results_json(results, 0, key)) && (by.most ? own > other : own < other))
            best = i;
    }
    return best;
}

/* "567.3 ms, 2.1 % slower", or "$ in all 80316, 2.1 % more". */
static void print_other(double value, double first, struct objective by, FILE *out)
{
    struct arena arena = {0};
    bool time = !strcmp(by.name, "iteration_time_s");
    char text[48], share[48];

    if (time)
        fprintf(out, ": %s", unit_format_short(UNIT_TIME, value, text, sizeof text));
    else
        fprintf(out, ": %s %.5g", words_of(&arena, by.name), value);
    fprintf(out, ", %s %s\n", percent_text(fabs(value / first - 1), share, sizeof share),
            value < first ? time ? "faster" : "less" : time ? "slower" : "more");
    arena_release(&arena);
}

/* A line for each axis: what its second best value costs, with the best of all others. */
static void print_seconds(const struct space *space, const struct plan_outcome *outcome, const struct results *results, FILE *out)
{
    struct objective by = objective_of(space);
    struct arena arena = {0};

    fputs("the first, and each axis at its best other value with whatever goes with that:\n", out);
    for (size_t a = 0; a < space->naxes; a++) {
        int key = results_find(results, space->axes[a].path);
        size_t other = key < 0 ? 0 : best_other(results, key, by);

        if (key < 0 || !space->axes[a].several)
            continue;
        fprintf(out, "  %s ", words_of(&arena, space->axes[a].path));
        print_value(results_json(results, 0, key), out);
        if (other == results->rows.count) {
            fprintf(out, ": every other value is %s than all rows that were replayed, or cannot be%s\n",
                    strcmp(by.name, "iteration_time_s") ? "worse" : "slower", outcome->numberless ? ", or has no number" : "");
            continue;
        }
        fputs(", not ", out);
        print_value(results_json(results, other, key), out);
        print_other(metric(results->rows.items[other], by.name), metric(results->rows.items[0], by.name), by, out);
    }
    arena_release(&arena);
}

/* What a GPU with a tenth less memory would be given: the fastest of the rows that then fit. */
static void print_less_memory(const struct results *results, FILE *out)
{
    size_t best = results->rows.count;
    char time[48];

    for (size_t i = 0; i < results->rows.count; i++) {
        const json_t *row = results->rows.items[i];
        double peak = metric(row, "peak_memory_bytes"), limit = peak + metric(row, "memory_margin_bytes");

        if (peak <= 0.9 * limit && (best == results->rows.count || metric(row, "iteration_time_s") <
                                    metric(results->rows.items[best], "iteration_time_s")))
            best = i;
    }
    if (isnan(metric(results->rows.items[0], "memory_margin_bytes")))
        return;
    if (best == 0)
        fputs("with a tenth less memory: the same\n", out);
    else if (best == results->rows.count)
        fputs("with a tenth less memory: none of the rows that were replayed fits\n", out);
    else
        fprintf(out, "with a tenth less memory: row %zu, %s\n", best + 1,
                unit_format_short(UNIT_TIME, metric(results->rows.items[best], "iteration_time_s"), time, sizeof time));
}

/* s of an iteration of a shown row's scenario, with NICs of a share of their bandwidth; where nodes are of several kinds instead
 * with layers divided by their speed (*splits). NaN: it is not known. */
static double seconds_on(const char *path, double share, bool *splits)
{
    struct error err = {0};
    struct scenario scenario = {0};
    struct attempt attempt = {.of = &scenario};
    char rate[48];
    double seconds = NAN, bandwidth;

    if (!scenario_load(path, NULL, 0, NULL, &scenario, &err)) {
        *splits = cluster_kinds(&scenario.cluster) > 1 && scenario.parallelism.pipeline > 1 && !scenario.parallelism.split.node;
        attempt.anyway = !*splits;
        if (*splits)
            attempt_set(&attempt, "strategy.split=auto");
        else if (cluster_kinds(&scenario.cluster) == 1 && scenario.cluster.nodes > 1 &&
                 (bandwidth = cluster_bandwidth(&scenario.cluster, 0, false)) > 0)
            attempt_set(&attempt, "cluster.network.bandwidth=%s", unit_format(UNIT_BANDWIDTH, share * bandwidth, rate, sizeof rate));
        if (attempt.nsets && !attempt_run(&attempt, simulate_numbers_of(&scenario)))
            seconds = attempt.run.metrics.iteration_time;
    }
    attempt_end(&attempt, &err);
    scenario_release(&scenario);
    error_release(&err);
    return seconds;
}

void plan_halve(const char *folder, size_t shown, struct plan_outcome *outcome)
{
    struct arena arena = {0};

    outcome->halved.seconds = outcome->halved.first = NAN;
    for (size_t i = 0; i < shown && (i == 0 || !isnan(outcome->halved.first)); i++) {
        double seconds = seconds_on(arena_printf(&arena, PLAN_RANKED, folder, i + 1), 0.5, &outcome->halved.splits);

        if (i == 0)
            outcome->halved.first = seconds;
        if (i == 0 || seconds < outcome->halved.seconds) {
            outcome->halved.row = i;
            outcome->halved.seconds = seconds;
        }
    }
    arena_release(&arena);
}

/* What a network half as fast would be given: another row where that is faster by more than is told apart (plan_order). */
static void print_halved(const struct plan_outcome *outcome, FILE *out)
{
    char time[48], first[48];

    if (isnan(outcome->halved.first))
        return;
    unit_format_short(UNIT_TIME, outcome->halved.seconds, time, sizeof time);
    unit_format_short(UNIT_TIME, outcome->halved.first, first, sizeof first);
    if (outcome->halved.splits)
        fprintf(out, "with layers by the speed of the nodes (--set strategy.split=auto): row %zu of those above, %s\n",
                outcome->halved.row + 1, time);
    else if (outcome->halved.seconds >= outcome->halved.first * (1 - PLAN_NEAR))
        fprintf(out, "with a network half as fast: the same, %s\n", first);
    else
        fprintf(out, "with a network half as fast: row %zu of those above, %s; the first then takes %s\n", outcome->halved.row + 1,
                time, first);
}

void plan_explain(const struct space *space, const struct plan_outcome *outcome, const struct results *results, FILE *out)
{
    double fits = metric(results->rows.items[0], "fits_probability");
    bool timed = !isnan(metric(results->rows.items[0], "iteration_time_s"));

    print_open(space, results, out);
    if (fits < PLAN_LIKELY)
        fprintf(out, "the first may not fit: of predictions like this one %.0f of 100 do; --subject-to fits_probability=%g "
                "leaves such rows out\n", 100 * fits, PLAN_LIKELY);
    if (timed && results->rows.count > 1 && !space_asks_largest(space))
        print_seconds(space, outcome, results, out);
    if (timed) {
        print_less_memory(results, out);
        print_halved(outcome, out);
    }
}
