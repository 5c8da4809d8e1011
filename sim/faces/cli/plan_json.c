/* A plan for programs: its counts, what is known, and its rows or their places. */
#include "cli/plan_print.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "config/conf.h"
#include "files/folder.h"
#include "plan/space.h"
#include "results/results.h"
#include "store/store.h"
#include "sweep/points.h"
#include "view/view.h"

/* All that is known of a plan. */
struct told {
    const struct space *space;
    const struct plan_options *options;
    const struct plan_outcome *outcome;
    const struct results *results;
    bool front;
};

/* The values of each axis, or why it has these. */
static json_t *axes_json(const struct space *space, bool reasons)
{
    json_t *axes = json_object();

    for (size_t i = 0; i < space->naxes; i++)
        if (!reasons || space->axes[i].why)
            json_put(axes, space->axes[i].path, json_words(reasons ? space->axes[i].why : space->axes[i].values));
    return axes;
}

#define COUNTS(ROW) \
    ROW(considered, json_count(it->considered), "combinations of the axes; the sum of all the others") \
    ROW(by_rule, json_count(it->by_rule), "dropped by what axes must keep together ('rules')") \
    ROW(refused, json_count(it->refused), "no scenarios, or not what the framework's release has ('refusals')") \
    ROW(memory, json_count(it->memory), "they do not fit") \
    ROW(pruned, json_count(it->pruned), "surely slower than the rows that are shown: not replayed") \
    ROW(replayed, json_count(it->replayed), "they ran, fit and keep the limits") \
    ROW(outside, json_count(it->outside), "they miss a limit of --subject-to") \
    ROW(failed, json_count(it->failed), "rows that ended with an error, a crash or a timeout") \
    ROW(left, json_count(it->left), "not reached within --time-limit")
VIEW(counts_view, struct plan_counts, it, COUNTS)

#define VERIFIED(ROW) \
    ROW(best, json_count(it->verified.best), "of the rows that are shown: to be verified on simgrid") \
    ROW(failed, json_count(it->verified.failed), "of best: could not be verified") \
    ROW(left, it->unverified ? json_null() : json_count(it->verified.chosen - it->verified.done), \
        "of best: not reached within --time-limit; null: none began") \
    ROW(reason, it->verified.failed ? json_words(it->verified.why) : json_null(), \
        "why the first failed verification failed; else null")
VIEW(verified_view, struct plan_outcome, it, VERIFIED)

#define RULE(ROW) \
    ROW(rule, it->selection.dropped[i] ? json_words(it->rules[i].why) : NULL, "why it holds") \
    ROW(where, it->selection.dropped[i] ? json_words(it->rules[i].expression) : NULL, "what must hold") \
    ROW(points, it->selection.dropped[i] ? json_count(it->selection.dropped[i]) : NULL, "dropped by it")
VIEW(rule_view, struct space, it, RULE)

#define REFUSAL(ROW) \
    ROW(rule, json_words(it->rule), "as errors have it") \
    ROW(points, json_count(it->count), "refused by it") \
    ROW(example, json_words(it->example), "a message")
VIEW(refusal_view, struct plan_refusal, it, REFUSAL)

static json_t *held_json(const struct space *space)
{
    json_t *json = json_object();

    for (size_t i = 0; i < space->nheld; i++) {
        json_t *values = json_array();

        for (size_t v = 0; v < space->held[i].found.count; v++)
            json_append(values, json_words(space->held[i].found.items[v]));
        if (space_holds(&space->held[i]))
            json_put(json, space->held[i].path, values);
        else
            json_decref(values);
    }
    return json;
}

static json_t *failed_point(const struct told *told, uint64_t number)
{
    json_t *values = json_object();
    struct arena arena = {0};
    struct error err = {0};
    struct point point = {0};

    if (!point_make(&told->space->sweep.points, number, &arena, &point, &err))
        for (size_t v = 0; v < point.count; v++)
            json_put(values, point.items[v].name, json_words(node_flow(&arena, point.items[v].node)));
    error_release(&err);
    arena_release(&arena);
    return values;
}

#define FAILURE(ROW) \
    ROW(point, failed_point(it, it->outcome->failures.items[i].number), "its values of the axes", .form = VIEW_MAP) \
    ROW(status, json_words(it->outcome->failures.items[i].status), "as rows have it") \
    ROW(reason, json_words(it->outcome->failures.items[i].reason), "the same")
VIEW(failure_view, struct told, it, FAILURE)

/* The sentences that people get, an item each. */
static json_t *conclusions_json(const struct told *told)
{
    json_t *json = json_array();
    char *words, *line, *rest;
    size_t size;
    FILE *text = text_open(&words, &size);

    plan_conclude(told->space, told->options, told->outcome, told->results, told->front, text);
    text_close(text, &words);
    for (line = strtok_r(words, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        json_append(json, json_words(line));
    free(words);
    return json;
}

#define TIED(ROW) \
    ROW(at_least, json_count(plan_tied(it->results)), "replayed configurations that share the first place") \
    ROW(at_most, json_count(plan_tied(it->results) + (plan_tied(it->results) ? it->outcome->may_tie : 0)), \
        "the same, also counting configurations that were not replayed and whose bounds allow it")
VIEW(tied_view, struct told, it, TIED)

static const char *const statuses[] = {"proven", "not proven", "none feasible"};

#define PLAN(ROW) \
    ROW(status, json_words(statuses[it->outcome->status]), "proven, not proven or none feasible") \
    ROW(gap_share, it->outcome->status == PLAN_NOT_PROVEN ? json_real(it->outcome->gap) : json_null(), \
        "not proven: share of the time by which what was not reached or failed may be faster, at most; else null") \
    ROW(counts, view_json(&counts_view, &it->outcome->counts), "configurations, by what became of them", .of = &counts_view) \
    ROW(verified, view_json(&verified_view, it->outcome), "rows on simgrid", .of = &verified_view) \
    ROW(assumed_software, json_words_or_null(it->space->software), \
        "of all configurations, as the scenario names none; null: it does, or none is assumed") \
    ROW(axes, axes_json(it->space, false), "the values of an axis", .form = VIEW_MAP) \
    ROW(axis_reasons, axes_json(it->space, true), "why an auto axis has these", .form = VIEW_MAP) \
    ROW(held, held_json(it->space), \
        "the values of a key with an auto that was not searched, though other values may change the result", .form = VIEW_MAP) \
    ROW(rules, view_each(&rule_view, it->space, it->space->nrules), "those that drop any", .form = VIEW_LIST, .of = &rule_view) \
    ROW(refusals, view_list(&refusal_view, it->outcome->refusals.items, it->outcome->refusals.count, \
        sizeof *it->outcome->refusals.items), "of counts.refused", .form = VIEW_LIST, .of = &refusal_view) \
    ROW(failures, view_each(&failure_view, it, it->outcome->failures.count), "of counts.failed; they are in no proof", .form = VIEW_LIST, .of = &failure_view) \
    ROW(folder, json_words(it->options->folder), "where rank-01.yaml and so on stand") \
    ROW(front, json_boolean(it->front), "whether the rows are a Pareto front: no other row is better in all objectives") \
    ROW(tied, it->front ? json_null() : view_json(&tied_view, it), "null: a front", .of = &tied_view) \
    ROW(conclusions, conclusions_json(it), "sentences: why the first is faster than the second, what is proven")
VIEW(plan_view, struct told, it, PLAN)

static json_t *shown_json(const struct told *told)
{
    json_t *rows = json_array();

    for (size_t i = 0; i < plan_shown(told->options, told->results); i++)
        json_array_append(rows, told->results->rows.items[i]);
    return rows;
}

#define ROWS_SHOWN(ROW) \
    ROW(rows, shown_json(it), "of --json: what is shown, as 'dtsim results --json' prints it, with in_framework and metrics")
VIEW(rows_view, struct told, it, ROWS_SHOWN)

#define PLACE(ROW) \
    ROW(id, json_words(store_id(it->rows.items[i])), "of a row") \
    ROW(rank, json_count(results_rank_of(it, i).rank), "its place, from 1") \
    ROW(shared, json_boolean(results_rank_of(it, i).shared), "whether others have it too")
VIEW(place_view, struct results, it, PLACE)

/* NULL: nothing orders the rows. */
static const char *ranked_by(const struct results *results)
{
    return results && results->ranked >= 0 && results->rows.count ? results->keys.items[results->ranked].name : NULL;
}

static json_t *tie_json(const struct results *results)
{
    char *words;
    size_t size;
    FILE *text = text_open(&words, &size);
    json_t *json;

    results_explain_ranks(results, text);
    text_close(text, &words);
    json = json_words(words);
    free(words);
    return json;
}

static json_t *metric_json(const struct results *results, const char *name)
{
    return json_object_get(json_object_get(results->rows.items[0], "metrics"), name);
}

#define FIRST(ROW) \
    ROW(metric, json_words(ranked_by(it)), "that orders rows") \
    ROW(value, json_real(json_number_value(results_json(it, 0, it->ranked))), "its value") \
    ROW(model, json_incref(json_object_get(it->rows.items[0], "model")), "as in result.json") \
    ROW(gpu, json_incref(json_object_get(it->rows.items[0], "gpu")), "as in result.json") \
    ROW(samples, json_integer(llround(json_number_value(metric_json(it, "samples_per_s")) * \
                                      json_number_value(metric_json(it, "iteration_time_s")))), "of an iteration") \
    ROW(gpus, json_deep_copy(results_json(it, 0, results_find(it, "gpus"))), "of the scenario")
VIEW(first_view, struct results, it, FIRST)

/* The first row's number and work, by which a later search compares its own; null: there is none, or a front. */
static json_t *first_json(const struct results *results, bool front)
{
    return ranked_by(results) && !front ? view_json(&first_view, results) : json_null();
}

#define SUMMARY(ROW) \
    ROW(shown, json_count(plan_shown(it->options, it->results)), "of plan.json: how many rows are shown") \
    ROW(name, json_words(it->space->sweep.name), "of plan.json: of the scenario") \
    ROW(first, first_json(it->results, it->front), "of plan.json: of the first row; a later search in this folder whose first " \
        "row is not as good leaves these files and writes its own into DIR/2", .of = &first_view) \
    ROW(places, view_each(&place_view, it->results, it->results ? it->results->rows.count : 0), "of plan.json: of rows, best first", .form = VIEW_LIST, .of = &place_view) \
    ROW(ranked, ranked_by(it->results) ? json_words(ranked_by(it->results)) : NULL, \
        "of plan.json: the metric that orders rows") \
    ROW(tie, ranked_by(it->results) ? tie_json(it->results) : NULL, "of plan.json: what it means that rows share a place")
VIEW(summary_view, struct told, it, SUMMARY)

void plan_help(FILE *out)
{
    fputs("\nplan.json in the folder of dtsim plan, and what its --json prints\n\n", out);
    view_help(&plan_view, "", out);
    view_help(&rows_view, "", out);
    view_help(&summary_view, "", out);
}

static void write_line(const void *context, FILE *out)
{
    json_line(context, out);
    putc('\n', out);
}

void plan_print_json(const struct space *space, const struct plan_options *options, const struct plan_outcome *outcome,
                     const struct results *results, bool front, FILE *out)
{
    struct told told = {space, options, outcome, results, front};
    json_t *json = view_json(&plan_view, &told);

    view_put(&rows_view, &told, json);
    write_line(json, out);
    json_decref(json);
}

int plan_write_summary(const struct space *space, const struct plan_options *options, const struct plan_outcome *outcome,
                       const struct results *results, bool front, struct error *err)
{
    struct told told = {space, options, outcome, results, front};
    json_t *json = view_json(&plan_view, &told);
    char *path = xprintf("%s/plan.json", options->folder);
    int rc = make_folder(options->folder, err);

    view_put(&summary_view, &told, json);
    rc = rc || file_replace(path, write_line, json, err) ? -1 : 0;
    free(path);
    json_decref(json);
    return rc;
}

/* Whether the first row of an earlier search is of the same work as this one's, and better. */
static bool is_better(const json_t *earlier, const json_t *first)
{
    static const char *const work[] = {"metric", "model", "gpu", "gpus", "samples"};
    double value = json_number_value(json_object_get(earlier, "value"));
    double own = json_number_value(json_object_get(first, "value"));
    const char *metric = json_string_value(json_object_get(earlier, "metric"));

    if (!json_is_object(earlier) || !metric)
        return false;
    if (!json_is_object(first))
        return true;             /* any is better than none */
    for (size_t i = 0; i < COUNT(work); i++)
        if (!json_equal(json_object_get(earlier, work[i]), json_object_get(first, work[i])))
            return false;
    return results_wants_most(metric) ? value > own : value < own;
}

const char *plan_place(struct arena *arena, const char *folder, const struct results *results, bool front)
{
    json_t *first = first_json(results, front);
    const char *place = folder;
    bool better = true;

    for (int number = 2; better; number++) {
        json_t *earlier = json_load_file(arena_printf(arena, "%s/plan.json", place), 0, NULL);

        better = is_better(json_object_get(earlier, "first"), first);
        json_decref(earlier);
        place = better ? arena_printf(arena, "%s/%d", folder, number) : place;
    }
    json_decref(first);
    return place;
}
