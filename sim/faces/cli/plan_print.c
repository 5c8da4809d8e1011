#include "cli/plan_print.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/words.h"
#include "config/conf.h"
#include "plan/space.h"
#include "results/results.h"
#include "results/results_table.h"
#include "run/energy.h"
#include "run/automatic_axis.h"
#include "run/values.h"
#include "sweep/points.h"

static void print_axes(const struct space *space, FILE *out)
{
    int longest = 0;

    for (size_t i = 0; i < space->naxes; i++)
        longest = (int)strlen(space->axes[i].path) > longest ? (int)strlen(space->axes[i].path) : longest;
    fputs(space->naxes ? "searched\n" : "searched: nothing; the scenario says all\n", out);
    for (size_t i = 0; i < space->naxes; i++)
        fprintf(out, "  %-*s  %s%s%s\n", longest, space->axes[i].path, space->axes[i].values,
                space->axes[i].why ? "  " : "", space->axes[i].why ? space->axes[i].why : "");
    if (space->software)
        fprintf(out, "assumed: software %s, as the scenario names none; 'software:' names another ('dtsim list "
                     "software')\n", space->software);
    else if (space->software_by_zero)
        fputs("assumed: the usual software of each ZeRO stage, as the scenario names none; 'software:' names one ('dtsim list "
              "software')\n", out);
}

/* How many points all rules drop that have the words of this one; 0 where an earlier rule has them, which counts them. */
static uint64_t rules_dropped(const struct space *space, size_t rule)
{
    uint64_t dropped = 0;

    for (size_t i = 0; i < space->nrules; i++)
        if (!strcmp(space->rules[i].why, space->rules[rule].why)) {
            if (i < rule)
                return 0;
            dropped += space->selection.dropped[i];
        }
    return dropped;
}

/* "1,234 combinations: 900 against a rule, 3 refused, ...", and which rules. */
static void print_counts(const struct space *space, const struct plan_outcome *outcome, FILE *out)
{
    const struct plan_counts *counts = &outcome->counts;

    fprintf(out, "%llu combination%s = %llu against a rule + %zu refused + %llu do not fit + %zu surely slower + "
                 "%zu replayed", (unsigned long long)counts->considered, counts->considered == 1 ? "" : "s",
            (unsigned long long)counts->by_rule, counts->refused, (unsigned long long)counts->memory, counts->pruned, counts->replayed);
    if (counts->outside)
        fprintf(out, " + %zu outside the limits", counts->outside);
    if (counts->failed)
        fprintf(out, " + %zu failed", counts->failed);
    if (counts->left)
        fprintf(out, " + %zu not reached", counts->left);
    fputc('\n', out);
    for (size_t i = 0; i < space->nrules; i++) {
        uint64_t dropped = rules_dropped(space, i);

        if (dropped)
            fprintf(out, "  %llu: %s\n", (unsigned long long)dropped, space->rules[i].why);
    }
    for (size_t i = 0; i < outcome->refusals.count; i++) {
        fprintf(out, "  %zu: %s, such as: ", outcome->refusals.items[i].count, outcome->refusals.items[i].rule);
        text_write(TEXT_LINE, outcome->refusals.items[i].example, out);
        fputc('\n', out);
    }
}

/* Adds the key's column where some row has a value, each once. */
static void add_column(const struct results *results, const char *name, int *columns, size_t *count)
{
    int key = results_find(results, name);

    for (size_t i = 0; i < *count; i++)
        if (columns[i] == key)
            return;
    if (key >= 0 && results->keys.items[key].number)
        columns[(*count)++] = key;
}

/* The columns: the row's place, the axes that have several values, and what choices are made by. */
static size_t columns_of(const struct space *space, const struct results *results, int *columns)
{
    static const char *const metrics[] = {
        "iteration_time_s", "tokens_per_s", "mfu", "peak_memory_bytes", "fits_probability", "gpus", "days", "training_cost",
        "verified_iteration_time_s",
    }, *const bought[] = {
        "iteration_time_s", "tokens_per_s", "expected_error_share", "cost_per_million_tokens", "kwh_per_million_tokens",
    };
    size_t count = 0;
    int key = results_find(results, "rank");

    if (key >= 0)
        columns[count++] = key;
    for (size_t i = 0; i < space->naxes; i++) {
        key = results_find(results, space->axes[i].path);
        if (key >= 0 && space->axes[i].several)
            columns[count++] = key;
    }
    for (size_t i = 0; i < space->goal.nobjectives; i++)
        add_column(results, space->goal.objectives[i].name, columns, &count);
    for (size_t i = 0; i < space->goal.nlimits; i++)
        add_column(results, space->goal.limits[i].name, columns, &count);
    for (size_t i = 0; i < COUNT(bought) && plan_compares(results); i++)
        add_column(results, bought[i], columns, &count);
    for (size_t i = 0; i < COUNT(metrics); i++)
        add_column(results, metrics[i], columns, &count);
    return count;
}

/* What the shown rows do not say of money and power, and what their power stands on. */
static void print_unknown(const struct results *results, size_t shown, FILE *out)
{
    size_t priceless = 0, powerless = 0;
    double error = 0;

    for (size_t i = 0; i < shown; i++) {
        const json_t *metrics = json_object_get(results->rows.items[i], "metrics");

        priceless += !json_is_number(json_object_get(metrics, "cost"));
        powerless += !json_is_number(json_object_get(metrics, "energy_j"));
        error = fmax(error, json_number_value(json_object_get(metrics, "energy_error_share")));
    }
    if (priceless)
        fprintf(out, "no price is known of %zu of these: --set price='{NAME: 2.50 $/h, ...}', by the names of platforms or GPUs, gives $\n", priceless);
    if (powerless)
        fprintf(out, "no power is known of %zu of these: their GPU's file says none, or no GPU is named\n", powerless);
    if (powerless < shown)
        fprintf(out, "kWh: of all nodes, times %g for cooling and switches where train.energy.pue says no other", ENERGY_PUE);
    if (powerless < shown && error > 0)
        fprintf(out, "; within %.0f %%, as nodes, waits and facilities differ", 100 * error);
    fputs(powerless < shown ? "\n" : "", out);
}

/* The compared hardware whose row is not shown. */
static void print_hidden(const struct results *results, size_t shown, FILE *out)
{
    struct arena arena = {0};
    bool *hidden = ARENA_ARRAY(&arena, bool, results->rows.count + 1);

    for (size_t i = shown; i < results->rows.count; i++)
        hidden[i] = true;
    if (shown < results->rows.count) {
        fprintf(out, "not shown: %zu more; --top %zu shows them: ", results->rows.count - shown, results->rows.count);
        text_write(TEXT_LINE, plan_hardware(&arena, results, hidden), out);
        fputc('\n', out);
    }
    arena_release(&arena);
}

void plan_print(const struct space *space, const struct plan_options *options, const struct plan_outcome *outcome,
                const struct results *results, bool front, FILE *out)
{
    size_t shown = plan_shown(options, results);
    int *columns = results ? xcalloc(results->keys.count + 1, sizeof *columns) : NULL;

    if (shown) {
        const struct results_look look = {
            .columns = columns, .count = columns_of(space, results, columns), .most = shown,
        };

        fputs(plan_compares(results) ? "the best of each\n" :
              front && !space->goal.nobjectives ? "the fastest of each number of GPUs\n" : "", out);
        results_print(results, &look, out);
        if (plan_compares(results)) {
            print_hidden(results, shown, out);
            print_unknown(results, shown, out);
        }
        fputc('\n', out);
    }
    plan_conclude(space, options, outcome, results, front, out);
    if (shown) {
        fputs("scenarios: ", out);
        text_write(TEXT_LINE, options->folder, out);
        fprintf(out, "/rank-01.yaml%s%s\n", shown > 1 ? " and so on" : "",
                options->beside ? "; the folder above it keeps a better result of an earlier plan" : "");
    }
    fputc('\n', out);
    print_axes(space, out);
    print_counts(space, outcome, out);
    free(columns);
}
