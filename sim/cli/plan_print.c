#include "cli/plan_print.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "files/folder.h"
#include "scenario/scenario.h"

static size_t shown_of(const struct plan_options *options, const struct results *results)
{
    return !results ? 0 : results->rows.count < options->top ? results->rows.count : options->top;
}

static void print_axes(const struct space *space, FILE *out)
{
    int longest = 0;

    for (size_t i = 0; i < space->naxes; i++)
        longest = (int)strlen(space->axes[i].path) > longest ? (int)strlen(space->axes[i].path) : longest;
    fputs(space->naxes ? "searched\n" : "searched: nothing; the scenario says all\n", out);
    for (size_t i = 0; i < space->naxes; i++)
        fprintf(out, "  %-*s  %s%s%s\n", longest, space->axes[i].path, space->axes[i].values,
                space->axes[i].why ? "  " : "", space->axes[i].why ? space->axes[i].why : "");
}

/* "1,234 combinations: 900 against a rule, 3 refused, ...", and which rules. */
static void print_counts(const struct space *space, const struct plan_outcome *outcome, FILE *out)
{
    const struct plan_counts *counts = &outcome->counts;

    fprintf(out, "%llu combination%s = %llu against a rule + %zu refused + %zu do not fit + %zu surely slower + "
                 "%zu replayed", (unsigned long long)counts->considered, counts->considered == 1 ? "" : "s",
            (unsigned long long)counts->by_rule, counts->refused, counts->memory, counts->pruned, counts->replayed);
    if (counts->failed)
        fprintf(out, " + %zu failed", counts->failed);
    if (counts->left)
        fprintf(out, " + %zu not reached", counts->left);
    fputc('\n', out);
    for (size_t i = 0; i < space->nrules; i++)
        if (space->selection.dropped[i])
            fprintf(out, "  %llu: %s\n", (unsigned long long)space->selection.dropped[i], space->rules[i].why);
    for (size_t i = 0; i < outcome->refusals.count; i++) {
        fprintf(out, "  %zu: %s, such as: ", outcome->refusals.items[i].count, outcome->refusals.items[i].rule);
        text_write(TEXT_LINE, outcome->refusals.items[i].example, out);
        fputc('\n', out);
    }
}

/* The columns: rank, the axes that have several values, and what choices are made by. */
static size_t columns_of(const struct space *space, const struct results *results, int *columns)
{
    static const char *const metrics[] = {
        "iteration_time_s", "tokens_per_s", "mfu", "peak_memory_bytes", "gpus", "verified_iteration_time_s",
    };
    size_t count = 0;
    int key = results_find(results, "rank");

    if (key >= 0)
        columns[count++] = key;
    for (size_t i = 0; i < space->naxes; i++) {
        key = results_find(results, space->axes[i].path);
        if (key >= 0 && strchr(space->axes[i].values, ','))
            columns[count++] = key;
    }
    for (size_t i = 0; i < COUNT(metrics); i++) {
        key = results_find(results, metrics[i]);
        if (key >= 0 && results->keys.items[key].number)
            columns[count++] = key;
    }
    return count;
}

static double metric(const json_t *row, const char *name)
{
    const json_t *value = json_object_get(json_object_get(row, "metrics"), name);

    return json_is_number(value) ? json_number_value(value) : NAN;
}

/* Where the second one loses and wins: the differences of the breakdown that are a hundredth of the time or more. */
static void print_why(const json_t *first, const json_t *second, FILE *out)
{
    double time = metric(first, "iteration_time_s"), other = metric(second, "iteration_time_s");
    const json_t *breakdown = json_object_get(json_object_get(first, "metrics"), "breakdown_s"), *value;
    const char *key;
    char text[48], words[48];
    int said = 0;

    fprintf(out, "the first is %.2g %% faster than the second:", 100 * (other / time - 1));
    json_object_foreach((json_t *)breakdown, key, value) {
        const json_t *its = json_object_get(json_object_get(json_object_get(second, "metrics"), "breakdown_s"), key);
        double more = json_number_value(its) - json_number_value(value);

        if (fabs(more) < 0.01 * time)
            continue;
        snprintf(words, sizeof words, "%s", key);
        for (char *at = words; (at = strchr(at, '_'));)
            *at = ' ';
        fprintf(out, "%s %s %s %s", said++ ? "," : "", unit_format_short(UNIT_TIME, fabs(more), text, sizeof text),
                more > 0 ? "less" : "more", words);
    }
    fputs(said ? "\n" : " no part of the time differs by a hundredth\n", out);
}

/* The configuration that lacks the least memory, and what would give it more. */
static void print_nearest(const struct space *space, const struct plan_outcome *outcome, FILE *out)
{
    struct arena arena = {0};
    struct error err = {0};
    struct point point;
    char text[48];

    if (isinf(outcome->nearest.lacks) || point_make(&space->sweep.points, outcome->nearest.number, &arena, &point, &err))
        return;
    fprintf(out, "nearest: a GPU lacks at least %s with",
            unit_format_short(UNIT_BYTES, outcome->nearest.lacks, text, sizeof text));
    for (size_t i = 0; i < point.count; i++) {
        fputs(i ? ", " : " ", out);
        text_write(TEXT_LINE, point.items[i].name, out);
        fputc(' ', out);
        text_write(TEXT_LINE, node_flow(&arena, point.items[i].node), out);
    }
    fputs("; try more --gpus, --set strategy.zero=1,2,3, --set memory.recompute=full, or a 'memory.offload'\n", out);
    error_release(&err);
    arena_release(&arena);
}

static void print_status(const struct plan_options *options, const struct plan_outcome *outcome,
                         const struct results *results, bool front, FILE *out)
{
    size_t shown = shown_of(options, results), tied = 0;

    for (size_t i = 0; results && i < results->rows.count; i++)
        tied += results_rank_of(results, i).rank == 1;
    if (outcome->status == PLAN_NONE_FEASIBLE)
        fputs("none feasible: no configuration of these axes runs and fits\n", out);
    else if (outcome->status == PLAN_PROVEN && front)
        fputs("proven: each is the fastest of these axes in this simulator on its number of GPUs; numbers of GPUs on which "
              "fewer are faster are left out\n", out);
    else if (outcome->status == PLAN_PROVEN)
        fprintf(out, "proven: no other configuration of these axes is faster in this simulator than the %s\n",
                shown == 1 ? "one above" : "last one above");
    else
        fprintf(out, "not proven: %zu configurations were not reached; the fastest of them is at most %.2g %% faster "
                     "than the first above\n", outcome->counts.left, 100 * outcome->gap);
    if (tied > 1 && !front)
        fprintf(out, "%zu configurations tie with the first: they differ by less than the expected error of their ratio%s\n",
                tied, tied > shown ? "; 'dtsim results' shows them all" : "");
}

void plan_print(const struct space *space, const struct plan_options *options, const struct plan_outcome *outcome,
                const struct results *results, bool front, FILE *out)
{
    size_t shown = shown_of(options, results);
    int *columns = results ? xcalloc(results->keys.count + 1, sizeof *columns) : NULL;

    print_axes(space, out);
    print_counts(space, outcome, out);
    if (shown) {
        size_t count = columns_of(space, results, columns);

        fputs(front ? "\nthe fastest of each number of GPUs\n" : "\n", out);
        results_print(results, FORMAT_TEXT, columns, count, shown, out);
        fputc('\n', out);
        if (shown > 1 && !front)
            print_why(results->rows.items[0], results->rows.items[1], out);
    }
    print_status(options, outcome, results, front, out);
    if (outcome->status == PLAN_NONE_FEASIBLE)
        print_nearest(space, outcome, out);
    if (shown) {
        fputs("scenarios: ", out);
        text_write(TEXT_LINE, options->folder, out);
        fprintf(out, "/rank-01.yaml%s\n", shown > 1 ? " and so on" : "");
    }
    free(columns);
}

void plan_print_json(const struct space *space, const struct plan_options *options, const struct plan_outcome *outcome,
                     const struct results *results, FILE *out)
{
    static const char *const statuses[] = {"proven", "not proven", "none feasible"};
    const struct plan_counts *counts = &outcome->counts;
    json_t *json = json_object(), *axes = json_object(), *rules = json_array(), *rows = json_array();

    for (size_t i = 0; i < space->naxes; i++)
        json_put(axes, space->axes[i].path, json_words(space->axes[i].values));
    for (size_t i = 0; i < space->nrules; i++)
        json_append(rules, json_pack("{s:s, s:s, s:I}", "rule", space->rules[i].why, "where",
                                               space->rules[i].expression, "points",
                                               (json_int_t)space->selection.dropped[i]));
    for (size_t i = 0; i < shown_of(options, results); i++)
        json_array_append(rows, results->rows.items[i]);
    json_put(json, "status", json_words(statuses[outcome->status]));
    json_put(json, "gap_share", outcome->status == PLAN_NOT_PROVEN ? json_real(outcome->gap) : json_null());
    json_put(json, "counts", json_pack(
        "{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "considered", (json_int_t)counts->considered, "by_rule",
        (json_int_t)counts->by_rule, "refused", (json_int_t)counts->refused, "memory", (json_int_t)counts->memory,
        "pruned", (json_int_t)counts->pruned, "replayed", (json_int_t)counts->replayed, "failed",
        (json_int_t)counts->failed, "left", (json_int_t)counts->left));
    json_put(json, "axes", axes);
    json_put(json, "rules", rules);
    json_put(json, "rows", rows);
    json_line(json, out);
    fputc('\n', out);
    json_decref(json);
}

static uint64_t number_of(const struct plan_outcome *outcome, const json_t *row)
{
    for (size_t i = 0; i < outcome->located.count; i++)
        if (strcmp(outcome->located.items[i].id, store_id(row)) == 0)
            return outcome->located.items[i].number;
    BUG_IF(true);
    return 0;
}

struct ranked { const struct node *root; size_t rank; };

static void write_ranked(const void *context, FILE *out)
{
    const struct ranked *ranked = context;

    fprintf(out, "# rank %zu of 'dtsim plan'; every default is written down\n", ranked->rank);
    node_print(ranked->root, out);
}

static int write_scenario(const struct space *space, uint64_t number, const char *path, size_t rank, struct error *err)
{
    const char *const engine[] = {"simulation.engine=fast"};
    struct arena arena = {0}, dumped = {0};
    struct scenario scenario = {0};
    struct point point;
    int rc = point_make(&space->sweep.points, number, &arena, &point, err) ||
             scenario_read(&arena, point.root, engine, 1, space->sweep.points.name, &scenario, err) ? -1 : 0;

    if (!rc) {
        const struct ranked ranked = {scenario_dump(&dumped, &scenario), rank};

        rc = file_replace(path, write_ranked, &ranked, err);
    }
    arena_release(&dumped);
    scenario_release(&scenario);
    arena_release(&arena);
    return rc;
}

int plan_write_scenarios(const struct space *space, const struct plan_options *options,
                         const struct plan_outcome *outcome, const struct results *results, struct error *err)
{
    struct arena arena = {0};
    int rc = 0;

    for (size_t i = 0; i < shown_of(options, results) && !rc; i++)
        rc = write_scenario(space, number_of(outcome, results->rows.items[i]),
                            arena_printf(&arena, "%s/rank-%02zu.yaml", options->folder, i + 1), i + 1, err);
    arena_release(&arena);
    return rc;
}
