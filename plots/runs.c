/* What charts of several runs share: names that tell the runs apart, and rows of sweeps as runs. */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "rows.h"

static bool is_shared(const struct chart *chart, int run)
{
    for (int i = 0; i < chart->ninputs; i++)
        if (i != run && strcmp(chart->runs[i].name, chart->runs[run].name) == 0)
            return true;
    return false;
}

const char *noted(const struct chart *chart, const char *note)
{
    const char *model = chart->runs[0].model;

    for (int i = 1; i < chart->ninputs; i++)
        if (strcmp(chart->runs[i].model, model))
            model = "";
    if (*model && *note)
        return arena_printf(chart->arena, "%s; %s", model, note);
    return *model ? model : *note ? note : NULL;
}

/* How many bytes all labels begin with alike, up to the end of a word, so that enough of each remains to read. */
static size_t common_start(const char *const *labels, int count)
{
    enum { REMAIN = 6 };
    size_t length = 0, word = 0;

    for (;; length++) {
        for (int i = 0; i < count; i++)
            if (labels[i][length] != labels[0][length] || strlen(labels[i] + length) <= REMAIN)
                return word;
        if (strchr(" ,;/_-", labels[0][length]))
            word = length + 1;
    }
}

/* Labels that are too long lose the words with which all begin. */
static void shorten(struct arena *arena, const char **labels, int count)
{
    enum { SHORT = 28 };
    size_t start = count > 1 ? common_start(labels, count) : 0;
    bool all_short = true;

    for (int i = 0; i < count; i++)
        all_short &= strlen(labels[i]) <= SHORT;
    for (int i = 0; i < count && start && !all_short; i++)
        labels[i] = arena_printf(arena, "… %s", labels[i] + start);
}

const char *const *run_labels(const struct chart *chart)
{
    enum { LONGEST = 48 };
    const char **labels = ARENA_ARRAY(chart->arena, const char *, chart->ninputs + 1);
    int count = chart->ninputs;

    for (int i = 0; i < count; i++)
        labels[i] = chart->look->nlabels ? chart->look->labels[i] :
                    is_shared(chart, i) ? last_part(chart->arena, chart->inputs[i]) : chart->runs[i].name;
    if (!chart->look->nlabels)
        shorten(chart->arena, labels, count);
    for (int i = 0; i < count; i++) {
        labels[i] = text_clean(chart->arena, labels[i], LONGEST);
        if (strcmp(chart->format, "svg") != 0)
            labels[i] = text_drawable(chart->arena, labels[i]);
    }
    return labels;
}

/* What the sweep sets, as a scenario has it: "batch.global" is a member of `batch`. */
static json_t *scenario_of(const struct chart *chart, json_t *row)
{
    json_t *scenario = json_object(), *value;
    const char *key;

    json_object_foreach(json_object_get(row, "point"), key, value) {
        const char *rest = key, *dot;
        json_t *at = scenario;

        for (; (dot = strchr(rest, '.')); rest = dot + 1) {
            const char *name = arena_strndup(chart->arena, rest, (size_t)(dot - rest));

            if (!json_is_object(json_object_get(at, name)))
                json_object_set_new(at, name, json_object());
            at = json_object_get(at, name);
        }
        json_object_set(at, rest, value);
    }
    return scenario;
}

/* A row as result.json would have it. The samples of an iteration are what its throughput makes in its time. */
static json_t *result_of(const struct chart *chart, json_t *row)
{
    const char *label = row_label(chart, row, NULL);
    json_t *scenario = scenario_of(chart, row), *result = json_deep_copy(json_object_get(row, "metrics")), *batch;
    double samples = row_number(row, "samples_per_s") * row_number(row, "iteration_time_s");

    if (!json_is_object(json_object_get(scenario, "batch")))
        json_object_set_new(scenario, "batch", json_object());
    batch = json_object_get(scenario, "batch");
    if (!json_object_get(batch, "global") && samples >= 1)
        json_object_set_new(batch, "global", json_integer((json_int_t)llround(samples)));
    json_object_set_new(scenario, "name", json_string(*label ? label : sweep_title(chart)));
    json_object_set_new(result, "scenario", scenario);
    json_object_set(result, "point", json_object_get(row, "point"));
    return result;
}

int rows_as_runs(struct chart *chart, struct headline **runs)
{
    size_t count = json_array_size(chart->rows->rows);
    const char **names = ARENA_ARRAY(chart->arena, const char *, count + 1);
    int failed = 0, kept = 0;

    *runs = xcalloc(count + 1, sizeof **runs);
    for (size_t i = 0; i < count; i++) {
        json_t *row = json_array_get(chart->rows->rows, i);

        if (strcmp(row_status(row), "ok"))
            continue;
        failed |= headline_of(chart->arena, result_of(chart, row), chart->dir, &(*runs)[kept], chart->err);
        names[kept] = failed ? "" : (*runs)[kept].name;
        kept++;
    }
    chart->inputs = names;
    chart->ninputs = kept;
    chart->runs = *runs;
    if (!kept)
        failed = error_add(chart->err, EXIT_INPUT, (struct loc){.file = chart->dir}, "no row ran: nothing to draw");
    return failed ? -1 : 0;
}
