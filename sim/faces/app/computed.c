#include "app/computed.h"

#include <stdlib.h>
#include <string.h>

#include "app/question.h"
#include "auto/auto.h"
#include "base/base.h"
#include "base/progress.h"
#include "config/conf.h"
#include "files/json.h"
#include "page/page.h"
#include "report/outcome.h"
#include "report/result.h"
#include "run/memory_advice.h"
#include "scenario/scenario.h"
#include "serve/requested.h"
#include "store/tie.h"
#include "tables/recorded.h"
#include "tables/tables.h"
#include "workload/workload.h"

struct computing {
    struct question question;
    struct requested is;
};

char *computed_errors(const struct error *err)
{
    json_t *errors = errors_json(err);
    char *text = json_text(errors);

    json_decref(errors);
    return text;
}

/* The scenario as it was written, with its changes. Of a scenario of the tour whose order is in a file beside it, the first
 * line says where that is. */
static json_t *yaml_of(const struct computing *computing)
{
    const struct node *written = computing->is.scenario.node, *file = node_at(written, "strategy.schedule.csv");
    char *text = NULL;
    size_t size;
    FILE *out = text_open(&text, &size);
    json_t *json;

    if (file && file->text && file->loc.file)
        fprintf(out, "# %s stands beside %s: put this file there\n", file->text, file->loc.file);
    node_print(written, out);
    text_close(out, &text);
    json = json_words(text);
    free(text);
    return json;
}

/* The iteration time with its errors, as tie.h asks a row for them: what ran, and its numbers. */
static struct tie_number time_of(json_t *numbers)
{
    static const char key[] = "iteration_time_s";
    static const char *const names[] = {"software", "model", "gpu"};
    json_t *row = json_object();
    struct tie_number number;

    for (size_t i = 0; i < COUNT(names); i++)
        if (json_object_get(numbers, names[i]))
            json_put(row, names[i], json_incref(json_object_get(numbers, names[i])));
    json_put(row, "metrics", json_incref(numbers));
    number = tie_number_of(row, key, json_number_value(json_object_get(numbers, key)));
    json_decref(row);
    return number;
}

/* Whether both iteration times are too near to each other to be told apart. */
static json_t *ties(json_t *numbers, const struct node *against)
{
    json_t *other = node_json(against);
    struct tie_number both[] = {time_of(numbers), time_of(other)};

    json_decref(other);
    return json_boolean(both[1].number > 0 && tie_holds(both[0], both[1]));
}

static int simulate_it(struct computing *computing)
{
    struct requested *is = &computing->is;
    const struct scenario *scenario = &is->scenario;
    bool timeline = computing->question.what == QUESTION_TIMELINE, advice = computing->question.what == QUESTION_ADVICE;
    struct simulate_options options = timeline ? simulate_options_of(scenario) : simulate_numbers_of(scenario);

    options.no_advice = !advice;
    if ((advice ? workload_init_advised : workload_init)(&is->workload, scenario, &is->err))
        return -1;
    if (memory_is_short(&is->workload)) {
        options = memory_needs;
        options.no_advice = !advice;
    }
    return simulate_advised(&is->workload, options, &is->run, &is->err);
}

/* The table that `write` makes, as a reader gets it. */
static void table_of(const struct run *run, void (*write)(const struct run *, FILE *), struct tsv *tsv)
{
    size_t size = 0;
    FILE *out = text_open(&tsv->text, &size);

    write(run, out);
    text_close(out, &tsv->text);
    tsv->end = tsv->text + size;
}

static int put_timeline(const struct run *run, json_t *answer, struct error *err)
{
    struct recorded recorded = {.dir = DROPPED};
    char *text = NULL;
    size_t size, operations = run->lowered.program.ops.count;
    FILE *out;
    int rc;

    if (operations > COMPUTED_SPANS)
        return error_add(err, EXIT_STOPPED, (struct loc){0}, "%zu operations, and the page draws %d at most; 'dtsim run -o DIR' "
                         "and 'dtsim report DIR' draw them", operations, (int)COMPUTED_SPANS);
    table_of(run, spans_write, &recorded.spans_file);
    table_of(run, groups_write, &recorded.groups_file);
    recorded.result = result_json(run);
    rc = recorded_read(&recorded, err);
    if (!rc) {
        out = text_open(&text, &size);
        page_timeline(&recorded, out);
        text_close(out, &text);
        json_put(answer, "timeline", json_string(text));
        free(text);
    }
    recorded_release(&recorded);
    return rc;
}

/* Of a scenario that does not fit, the numbers that are known: it has no times. */
static json_t *without_times(json_t *all)
{
    static const char *const names[] = {
        "peak_memory_bytes", "peak_reserved_bytes", "peak_allocated_bytes", "fits_probability", "expected_peak_memory_error_share",
        "memory_breakdown_bytes", "memory_limit_bytes", "gpus", "setup", "software", "software_assumed", "model", "gpu",
        "in_framework", "notes", "engine", "version", "scenario",
    };
    json_t *numbers = json_object();

    for (size_t i = 0; i < COUNT(names); i++)
        json_put(numbers, names[i], json_incref(json_object_get(all, names[i])));
    json_decref(all);
    return numbers;
}

static void put_numbers(const struct computing *computing, bool fits)
{
    json_t *all = result_json(&computing->is.run), *numbers = fits ? all : without_times(all);
    const struct node *against = computing->question.against.node;

    if (fits && against && against->kind == NODE_MAPPING)
        json_put(computing->is.answer, "ties", ties(numbers, against));
    json_put(computing->is.answer, "numbers", numbers);
    json_put(computing->is.answer, "yaml", yaml_of(computing));
}

void computed_write(struct cache *cache, const char *text, size_t length, struct budget budget, FILE *out)
{
    struct computing computing = {.is = requested_begin(cache)};
    struct requested *is = &computing.is;
    int rc;

    progress_begin(&is->progress, "the page's limit", budget.seconds, budget.bytes);
    is->own.progress = is->arena.progress = &is->progress;
    rc = question_read(&is->own, text, length, &computing.question, &is->err) ||
         question_scenario(&is->arena, &computing.question, &is->scenario, &is->err) || simulate_it(&computing) ? -1 : 0;
    if (!rc && computing.question.what == QUESTION_TIMELINE)
        put_timeline(&is->run, is->answer, &is->err);
    else if (is->run.metrics.ranks && computing.question.what != QUESTION_TIMELINE)
        put_numbers(&computing, !rc);
    requested_errors(is);
    json_line(is->answer, out);
    requested_release(is, cache);
}
