#include "validate/validation.h"

#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/cache.h"
#include "process/child.h"
#include "run/metrics.h"
#include "scenario/scenario.h"

struct running {
    struct validation *validation;
    const struct validation_options *options;
    size_t *rows;                    /* the selected rows */
    struct error *err;
};

/* Simulates a row, in a process of its own. */
static void run_row(void *context, size_t index)
{
    struct running *running = context;
    struct validation *validation = running->validation;
    size_t row = running->rows[index];

    outcome_find(&validation->outcomes[row], validation->paper, row, validation->is_plain, running->options);
}

static void row_ended(void *context, size_t index, const struct error *err)
{
    struct running *running = context;
    size_t row = running->rows[index];
    struct outcome *outcome = &running->validation->outcomes[row];
    const struct paper_row *of = &running->validation->paper->rows[row];

    if (err->count)                      /* its process ended without an answer */
        outcome_fail(outcome, err);
    for (int i = 0; i < outcome->nmessages; i++) {
        struct loc loc = {outcome->messages[i].file, outcome->messages[i].line, outcome->messages[i].column};

        /* A message with a place of its own is added once, not once per row. */
        if (*loc.file && loc.line)
            error_add(running->err, outcome->messages[i].code, loc, "%s", outcome->messages[i].text);
        else
            error_add(running->err, outcome->messages[i].code, of->node->loc, "row '%s': %s", of->id,
                      outcome->messages[i].text);
    }
    running->err->system |= outcome->unread || err->count;
    running->validation->failed += !outcome->simulated;
}

static int select_rows(struct validation *validation, const char *ids, struct error *err)
{
    const struct paper *paper = validation->paper;

    for (size_t i = 0; !ids && i < paper->nrows; i++)
        validation->outcomes[i].selected = true;
    for (const char *at = ids; at && *at; at += strcspn(at, ",") + (at[strcspn(at, ",")] == ',')) {
        size_t length = strcspn(at, ","), i = 0;

        while (i < paper->nrows && (strlen(paper->rows[i].id) != length || strncmp(paper->rows[i].id, at, length)))
            i++;
        if (i == paper->nrows)
            return error_add(err, EXIT_USAGE, (struct loc){.file = paper->file}, "--rows: there is no row '%.*s'",
                             (int)length, at);
        validation->outcomes[i].selected = true;
    }
    return 0;
}

double validation_predicted(const struct validation *validation, size_t row, size_t column)
{
    const struct column *of = &validation->paper->columns[column];
    const struct outcome *outcome = &validation->outcomes[row];
    const struct outcome *other = &validation->outcomes[validation->paper->rows[row].relative];

    if (!outcome->simulated || (of->ratio && (other == outcome || !other->simulated)))
        return NAN;
    return metric_value(&outcome->metrics, of->metric) / (of->ratio ? metric_value(&other->metrics, of->metric) : 1);
}

double validation_error(const struct validation *validation, size_t row, size_t column)
{
    double measured = validation->paper->rows[row].measured[column];
    double found = validation_predicted(validation, row, column);

    switch (validation->paper->columns[column].metric->kind) {
    case METRIC_SHARE:
        return validation->paper->columns[column].ratio ? found / measured - 1 : found - measured;
    case METRIC_RATE:
        return measured / found - 1;
    case METRIC_TIME:
    case METRIC_BYTES:
        return found / measured - 1;
    }
    BUG("a metric of no kind");
}

double validation_relative_error(const struct validation *validation, size_t row)
{
    size_t other = validation->paper->rows[row].relative, column = validation->first;

    if (other == row)
        return NAN;
    return (1 + validation_error(validation, row, column)) / (1 + validation_error(validation, other, column)) - 1;
}

static void count_error(struct summary *summary, size_t row, double error)
{
    if (isnan(error))
        return;
    if (!summary->count || fabs(error) > fabs(summary->max)) {
        summary->max = error;
        summary->worst = row;
    }
    summary->count++;
    summary->mean += fabs(error);
    summary->bias += error;
}

static void finish_summary(struct summary *summary)
{
    summary->mean = summary->count ? summary->mean / (double)summary->count : NAN;
    summary->bias = summary->count ? summary->bias / (double)summary->count : NAN;
}

/* Whether the row is the first of its group. */
static bool opens_group(const struct paper *paper, size_t row)
{
    for (size_t i = 0; i < row; i++)
        if (!strcmp(paper->rows[i].group, paper->rows[row].group))
            return false;
    return true;
}

/* Rounds numbers to nine digits, so that numbers which differ only by rounding have one rank. */
static void round_digits(double *values, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        double unit = values[i] != 0 ? pow(10, floor(log10(fabs(values[i]))) - 8) : 1;

        values[i] = round(values[i] / unit) * unit;
    }
}

static bool all_alike(const double *values, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (values[i] != values[0])
            return false;
    return true;
}

/* Spearman's rank correlation of measured and predicted values within a group; 0 if all predictions are equal. NaN if
 * the group has fewer than three rows, or if all measured values are equal. */
static double group_rank(const struct validation *validation, const char *group, size_t column)
{
    const struct paper *paper = validation->paper;
    double *numbers = xcalloc(paper->nrows * 4, sizeof *numbers), *measured = numbers, *found = numbers + paper->nrows;
    double rank = NAN;
    size_t n = 0;

    for (size_t i = 0; i < paper->nrows; i++)
        if (!strcmp(paper->rows[i].group, group) && !isnan(validation_error(validation, i, column))) {
            measured[n] = paper->rows[i].measured[column];
            found[n++] = validation_predicted(validation, i, column);
        }
    round_digits(found, n);
    if (n >= 3 && !all_alike(measured, n))
        rank = all_alike(found, n) ? 0 : gsl_stats_spearman(measured, 1, found, 1, n, numbers + 2 * paper->nrows);
    free(numbers);
    return rank;
}

static void rank_groups(const struct validation *validation, size_t column, struct summary *summary)
{
    const struct paper *paper = validation->paper;

    for (size_t i = 0; i < paper->nrows; i++) {
        double rank = opens_group(paper, i) ? group_rank(validation, paper->rows[i].group, column) : NAN;

        if (isnan(rank))
            continue;
        summary->rank += rank;
        summary->groups++;
    }
    summary->rank = summary->groups ? summary->rank / (double)summary->groups : NAN;
}

static void count_largest(struct validation *validation, size_t row)
{
    const struct outcome *outcome = &validation->outcomes[row];

    if (validation->is_plain || !validation->paper->largest || validation->paper->rows[row].oom || !outcome->simulated)
        return;
    validation->largest[0]++;
    validation->largest[1] += outcome->fits && !outcome->fits_twice;
}

static void summarize(struct validation *validation)
{
    const struct paper *paper = validation->paper;

    for (size_t c = 0; c < paper->ncolumns; c++) {
        struct summary *summary = &validation->summaries[c];

        if (paper->columns[c].kind != COLUMN_MEASURED)
            continue;
        for (size_t i = 0; i < paper->nrows; i++)
            count_error(summary, i, validation_error(validation, i, c));
        finish_summary(summary);
        rank_groups(validation, c, summary);
    }
    for (size_t i = 0; i < paper->nrows; i++) {
        count_error(&validation->relative, i, validation_relative_error(validation, i));
        if (validation->outcomes[i].simulated && (validation->outcomes[i].limited || paper->rows[i].oom))
            validation->memory[paper->rows[i].oom][!validation->outcomes[i].fits]++;
        count_largest(validation, i);
    }
    finish_summary(&validation->relative);
}

/* Reads one row's scenario, so that the processes of all rows find in the cache what it names. */
static void fill_cache(const struct paper *paper, size_t row, const struct validation_options *options)
{
    struct scenario scenario;
    struct error ignored = {0};

    paper_scenario(paper, row, false, options->sets, options->nsets, &scenario, &ignored);
    scenario_release(&scenario);
    error_release(&ignored);
}

/* Simulates rows, by their numbers, each in a process of its own. */
static void run_rows(struct running *running, size_t count)
{
    struct paper *paper = running->validation->paper;
    struct cache cache;

    cache_init(&cache, CACHE_BYTES);
    paper->arena.cache = &cache;
    if (count)
        fill_cache(paper, running->rows[0], running->options);
    child_each(run_row, row_ended, running, count, running->options->jobs, "the simulation");
    paper->arena.cache = NULL;
    cache_release(&cache);
}

static int simulate_rows(struct validation *validation, const struct validation_options *options, struct error *err)
{
    struct running running = {validation, options, NULL, err};
    struct paper *paper = validation->paper;
    size_t count = 0;

    validation->outcomes = child_share(paper->nrows * sizeof *validation->outcomes);
    if (!validation->outcomes)
        return error_add(err, EXIT_UNEXPECTED, (struct loc){.file = paper->file}, "no memory to share");
    validation->partial = options->rows != NULL;
    if (select_rows(validation, options->rows, err))
        return -1;
    while (paper->columns[validation->first].kind != COLUMN_MEASURED)
        validation->first++;
    validation->summaries = ARENA_ARRAY(&paper->arena, struct summary, paper->ncolumns);
    running.rows = xcalloc(paper->nrows, sizeof *running.rows);
    for (size_t i = 0; i < paper->nrows; i++)
        if (validation->outcomes[i].selected)
            running.rows[count++] = i;
    run_rows(&running, count);
    free(running.rows);
    summarize(validation);
    return 0;
}

int validation_init(struct validation *validation, struct paper *paper, const struct validation_options *options,
                    struct error *err)
{
    struct error found = {0};
    int rc;

    *validation = (struct validation){.paper = paper};
    rc = simulate_rows(validation, options, err);
    if (!rc && !options->configured) {
        validation->plain = ARENA_ARRAY(&paper->arena, struct validation, 1);
        *validation->plain = (struct validation){.paper = paper, .is_plain = true};
        rc = simulate_rows(validation->plain, options, &found) || error_pass_system(&found, err) ? -1 : 0;
    }
    error_release(&found);
    return rc;
}

void validation_release(struct validation *validation)
{
    if (validation->plain)
        validation_release(validation->plain);
    if (validation->outcomes)
        child_unshare(validation->outcomes, validation->paper->nrows * sizeof *validation->outcomes);
    *validation = (struct validation){0};
}

size_t validation_bars(const struct validation *validation, struct bar_result results[BARS])
{
    const struct bars *bars = &validation->paper->bars;
    const struct summary *summary = &validation->summaries[validation->first];
    const struct bar_result all[BARS] = {
        {"mean", 100 * summary->mean, bars->mean, false, false},
        {"max", 100 * fabs(summary->max), bars->max, false, false},
        {"bias", 100 * fabs(summary->bias), bars->bias, false, false},
        {"rank", summary->rank, bars->rank, true, false},
        {"memory", (double)(validation->memory[0][1] + validation->memory[1][0]), bars->memory, false, false},
        {"largest", 100.0 * (double)validation->largest[1] / (double)validation->largest[0], bars->largest, true,
         false},
    };
    size_t count = 0;

    for (size_t i = 0; i < BARS && !validation->partial; i++) {
        if (isnan(all[i].limit))
            continue;
        results[count] = all[i];
        results[count].passed =
            all[i].least ? all[i].value >= all[i].limit - 1e-9 : all[i].value <= all[i].limit + 1e-9;
        count++;
    }
    return count;
}
