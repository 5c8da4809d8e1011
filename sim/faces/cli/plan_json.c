/* A plan for programs: its counts, what is known, and its rows or their places. */
#include "cli/plan_print.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "config/conf.h"
#include "files/folder.h"
#include "plan/space.h"
#include "report/result_keys.h"
#include "results/results.h"
#include "store/store.h"
#include "sweep/points.h"

/* What `dtsim help result` says of them. */
static const struct result_key keys[] = {
    {"status", "proven, not proven or none feasible"},
    {"gap_share", "not proven: share of the time by which what was not reached or failed may be faster, at most; else null"},
    {"counts.considered", "combinations of the axes; the sum of all the others"},
    {"counts.by_rule", "dropped by what axes must keep together ('rules')"},
    {"counts.refused", "no scenarios, or not what the framework's release has ('refusals')"},
    {"counts.memory", "they do not fit"},
    {"counts.pruned", "surely slower than the rows that are shown: not replayed"},
    {"counts.replayed", "they ran, fit and keep the limits"},
    {"counts.outside", "they miss a limit of --subject-to"},
    {"counts.failed", "rows that ended with an error, a crash or a timeout"},
    {"counts.left", "not reached within --time-limit"},
    {"verified.best", "of the rows that are shown: to be verified on simgrid"},
    {"verified.failed", "of verified.best: could not be verified"},
    {"verified.left", "of verified.best: not reached within --time-limit; null: none began"},
    {"verified.reason", "why the first failed verification failed; else null"},
    {"assumed_software", "of all configurations, as the scenario names none; null: it does, or none is assumed"},
    {"axes.*", "the values of an axis"},
    {"axis_reasons.*", "why an auto axis has these"},
    {"held.*", "the values of a key with an auto that was not searched, though other values may change the result"},
    {"rules", "[{rule, where: what must hold, points: dropped by it}] of those that drop any"},
    {"failures", "[{point: its values of the axes, status: as rows have it, reason}] of counts.failed; they are in no proof"},
    {"refusals", "[{rule: as errors have it, points, example: a message}]"},
    {"front", "whether the rows are a Pareto front: no other row is better in all objectives"},
    {"tied.at_least", "replayed configurations that share the first place; null: a front"},
    {"tied.at_most", "the same, also counting configurations that were not replayed and whose bounds allow it"},
    {"conclusions", "sentences: why the first is faster than the second, what is proven"},
    {"rows", "of --json: what is shown, as 'dtsim results --json' prints it, with in_framework and metrics"},
    {"folder", "where rank-01.yaml and so on stand"},
    {"shown, name", "of plan.json: how many rows are shown; the scenario's name"},
    {"first", "of plan.json: {metric, value, model, gpu, gpus, samples} of the first row; a later search in this folder whose "
              "first row is not as good leaves these files and writes its own into DIR/2"},
    {"places", "of plan.json: [{id: of a row, rank, shared}], best first"},
    {"ranked, tie", "of plan.json: the metric that orders rows, and what it means that they share a place"},
};

void plan_keys_print(FILE *out)
{
    fputs("\nplan.json in the folder of dtsim plan, and what its --json prints\n\n", out);
    for (size_t i = 0; i < COUNT(keys); i++)
        fprintf(out, "  %-40s %s\n", keys[i].key, keys[i].brief);
}

/* The values of each axis, and why these. */
static void put_axes(json_t *json, const struct space *space)
{
    json_t *axes = json_object(), *reasons = json_object();

    for (size_t i = 0; i < space->naxes; i++) {
        json_put(axes, space->axes[i].path, json_words(space->axes[i].values));
        if (space->axes[i].why)
            json_put(reasons, space->axes[i].path, json_words(space->axes[i].why));
    }
    json_put(json, "axes", axes);
    json_put(json, "axis_reasons", reasons);
}

static json_t *counts_json(const struct plan_counts *counts)
{
    return json_pack(
        "{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "considered", (json_int_t)counts->considered, "by_rule",
        (json_int_t)counts->by_rule, "refused", (json_int_t)counts->refused, "memory", (json_int_t)counts->memory,
        "pruned", (json_int_t)counts->pruned, "replayed", (json_int_t)counts->replayed, "outside",
        (json_int_t)counts->outside, "failed", (json_int_t)counts->failed, "left", (json_int_t)counts->left);
}

static json_t *verified_json(const struct plan_outcome *outcome)
{
    const struct sweep_verified *verified = &outcome->verified;

    return json_pack("{s:I, s:I, s:o, s:o}", "best", (json_int_t)verified->best, "failed", (json_int_t)verified->failed,
                     "left", outcome->unverified ? json_null() :
                     json_integer((json_int_t)(verified->chosen - verified->done)), "reason", verified->failed ? json_words(verified->why) : json_null());
}

static json_t *rules_json(const struct space *space)
{
    json_t *rules = json_array();

    for (size_t i = 0; i < space->nrules; i++)
        if (space->selection.dropped[i])
            json_append(rules, json_pack("{s:s, s:s, s:I}", "rule", space->rules[i].why, "where",
                                         space->rules[i].expression, "points", (json_int_t)space->selection.dropped[i]));
    return rules;
}

static json_t *refusals_json(const struct plan_outcome *outcome)
{
    json_t *refusals = json_array();

    for (size_t i = 0; i < outcome->refusals.count; i++) {
        const struct plan_refusal *refusal = &outcome->refusals.items[i];
        json_t *json = json_object();

        json_put(json, "rule", json_words(refusal->rule));
        json_put(json, "points", json_integer((json_int_t)refusal->count));
        json_put(json, "example", json_words(refusal->example));
        json_append(refusals, json);
    }
    return refusals;
}

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

static json_t *failures_json(const struct space *space, const struct plan_outcome *outcome)
{
    json_t *failures = json_array();

    for (size_t i = 0; i < outcome->failures.count; i++) {
        const struct plan_failure *failure = &outcome->failures.items[i];
        json_t *json = json_object(), *values = json_object();
        struct arena arena = {0};
        struct error err = {0};
        struct point point = {0};

        if (!point_make(&space->sweep.points, failure->number, &arena, &point, &err))
            for (size_t v = 0; v < point.count; v++)
                json_put(values, point.items[v].name, json_words(node_flow(&arena, point.items[v].node)));
        json_put(json, "point", values);
        json_put(json, "status", json_words(failure->status));
        json_put(json, "reason", json_words(failure->reason));
        json_append(failures, json);
        error_release(&err);
        arena_release(&arena);
    }
    return failures;
}

/* The sentences that people get, an item each. */
static json_t *conclusions_json(const struct space *space, const struct plan_options *options,
                                const struct plan_outcome *outcome, const struct results *results, bool front)
{
    json_t *json = json_array();
    char *words, *line, *rest;
    size_t size;
    FILE *text = text_open(&words, &size);

    plan_conclude(space, options, outcome, results, front, text);
    text_close(text, &words);
    for (line = strtok_r(words, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        json_append(json, json_words(line));
    free(words);
    return json;
}

/* How many configurations share the first place, including ones that were not replayed. */
static json_t *tied_json(size_t tied, size_t may_tie)
{
    return json_pack("{s:I, s:I}", "at_least", (json_int_t)tied, "at_most", (json_int_t)(tied + (tied ? may_tie : 0)));
}

static json_t *plan_json(const struct space *space, const struct plan_options *options,
                         const struct plan_outcome *outcome, const struct results *results, bool front)
{
    static const char *const statuses[] = {"proven", "not proven", "none feasible"};
    json_t *json = json_object();

    json_put(json, "status", json_words(statuses[outcome->status]));
    json_put(json, "gap_share", outcome->status == PLAN_NOT_PROVEN ? json_real(outcome->gap) : json_null());
    json_put(json, "counts", counts_json(&outcome->counts));
    json_put(json, "verified", verified_json(outcome));
    json_put(json, "assumed_software", space->software ? json_words(space->software) : json_null());
    put_axes(json, space);
    json_put(json, "held", held_json(space));
    json_put(json, "rules", rules_json(space));
    json_put(json, "refusals", refusals_json(outcome));
    json_put(json, "failures", failures_json(space, outcome));
    json_put(json, "folder", json_words(options->folder));
    json_put(json, "front", json_boolean(front));
    json_put(json, "tied", front ? json_null() : tied_json(plan_tied(results), outcome->may_tie));
    json_put(json, "conclusions", conclusions_json(space, options, outcome, results, front));
    return json;
}

void plan_print_json(const struct space *space, const struct plan_options *options, const struct plan_outcome *outcome,
                     const struct results *results, bool front, FILE *out)
{
    json_t *json = plan_json(space, options, outcome, results, front), *rows = json_array();

    for (size_t i = 0; i < plan_shown(options, results); i++)
        json_array_append(rows, results->rows.items[i]);
    json_put(json, "rows", rows);
    json_line(json, out);
    fputc('\n', out);
    json_decref(json);
}

/* Why rows are shown: the key that orders them, and what it means that they share a place. */
static void put_order(json_t *json, const struct results *results)
{
    json_t *places = json_array();
    char *words;
    size_t size;
    FILE *text;

    for (size_t i = 0; results && i < results->rows.count; i++) {
        struct tie_rank rank = results_rank_of(results, i);

        json_append(places, json_pack("{s:s, s:I, s:b}", "id", store_id(results->rows.items[i]), "rank",
                                      (json_int_t)rank.rank, "shared", rank.shared));
    }
    json_put(json, "places", places);
    if (!results || results->ranked < 0 || !results->rows.count)
        return;
    text = text_open(&words, &size);
    results_explain_ranks(results, text);
    text_close(text, &words);
    json_put(json, "ranked", json_words(results->keys.items[results->ranked].name));
    json_put(json, "tie", json_words(words));
    free(words);
}

/* The first row's number and work, by which a later search compares its own; null: there is none, or a front. */
static json_t *first_json(const struct results *results, bool front)
{
    const json_t *row = results && results->rows.count && results->ranked >= 0 && !front ? results->rows.items[0] : NULL;
    const json_t *metrics = json_object_get(row, "metrics"), *batch = json_object_get(metrics, "samples_per_s");
    const char *name = row ? results->keys.items[results->ranked].name : "";
    json_t *json = json_object();

    if (!row)
        return json_null();
    json_put(json, "metric", json_words(name));
    json_put(json, "value", json_real(json_number_value(results_json(results, 0, results->ranked))));
    for (size_t i = 0; i < 2; i++)
        json_object_set(json, (const char *[]){"model", "gpu"}[i], json_object_get(row, (const char *[]){"model", "gpu"}[i]));
    json_put(json, "samples", json_integer(llround(json_number_value(batch) *
                                                   json_number_value(json_object_get(metrics, "iteration_time_s")))));
    json_put(json, "gpus", json_deep_copy(results_json(results, 0, results_find(results, "gpus"))));
    return json;
}

static void write_summary(const void *context, FILE *out)
{
    json_line(context, out);
    putc('\n', out);
}

int plan_write_summary(const struct space *space, const struct plan_options *options, const struct plan_outcome *outcome,
                       const struct results *results, bool front, struct error *err)
{
    json_t *json = plan_json(space, options, outcome, results, front);
    char *path = xprintf("%s/plan.json", options->folder);
    int rc = make_folder(options->folder, err);

    json_put(json, "shown", json_integer((json_int_t)plan_shown(options, results)));
    json_put(json, "name", json_words(space->sweep.name));
    json_put(json, "first", first_json(results, front));
    put_order(json, results);
    rc = rc || file_replace(path, write_summary, json, err) ? -1 : 0;
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
