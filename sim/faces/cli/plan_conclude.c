/* What a plan concludes: why the first is faster, what is proven, what failed, what comes nearest. */
#include "cli/plan_print.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/words.h"
#include "config/conf.h"
#include "files/json.h"
#include "plan/space.h"
#include "results/results.h"
#include "run/automatic_axis.h"
#include "run/values.h"
#include "sweep/points.h"
#include "view/view.h"

size_t plan_shown(const struct plan_options *options, const struct results *results)
{
    return !results ? 0 : results->rows.count < options->top ? results->rows.count : options->top;
}

size_t plan_tied(const struct results *results)
{
    size_t tied = 0;

    for (size_t i = 0; results && i < results->rows.count; i++)
        tied += results_rank_of(results, i).rank == 1;
    return tied;
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

    if (!(other > time)) {
        if (other < time)
            fprintf(out, "the second is %.2g %% faster, which predictions do not tell apart\n", 100 * (time / other - 1));
        else
            fputs("the first two take the same time\n", out);
        return;
    }
    fprintf(out, "the first is %s faster than the second:", percent_text(other / time - 1, text, sizeof text));
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

/* Its values of the axes: " strategy.tensor 8, batch.micro 1". Whether it recomputes all. */
static bool print_point(const struct space *space, uint64_t number, FILE *out)
{
    struct arena arena = {0};
    struct error err = {0};
    struct point point;
    bool recomputes = false;

    if (!point_make(&space->sweep.points, number, &arena, &point, &err))
        for (size_t i = 0; i < point.count; i++) {
            const char *value = node_flow(&arena, point.items[i].node);

            fputs(i ? ", " : " ", out);
            text_write(TEXT_LINE, point.items[i].name, out);
            fputc(' ', out);
            text_write(TEXT_LINE, value, out);
            recomputes |= !strcmp(point.items[i].name, "memory.recompute") && !strcmp(value, "full");
        }
    error_release(&err);
    arena_release(&arena);
    return recomputes;
}

/* The configuration that lacks the least memory, and what would give it more. */
static void print_nearest(const struct space *space, const struct plan_outcome *outcome, FILE *out)
{
    char text[48];
    bool recomputes, divides = false;

    if (isinf(outcome->nearest.lacks))
        return;
    fprintf(out, "nearest: a GPU lacks at least %s with",
            unit_format_short(UNIT_BYTES, outcome->nearest.lacks, text, sizeof text));
    recomputes = print_point(space, outcome->nearest.number, out);
    for (size_t i = 0; i < space->naxes; i++) {
        recomputes |= !strcmp(space->axes[i].path, "memory.recompute");
        divides |= !strcmp(space->axes[i].path, "strategy.zero");
    }
    fprintf(out, "; try more --gpus,%s%s or a 'memory.offload'\n", divides ? "" : " --set strategy.zero=1,2,3,",
            recomputes ? "" : " --set memory.recompute=full,");
    if (outcome->fewest)
        fprintf(out, "%d GPUs do, and half as many do not: --gpus %d finds a configuration that fits\n", outcome->fewest,
                outcome->fewest);
}

/* Where no combination is a scenario: which values of the axes that a person listed go with the rest of it. */
static void print_going(const struct space *space, FILE *out)
{
    struct arena arena = {0};
    struct asked_values values;
    struct error ignored = {0};

    for (size_t i = 0; i < space->naxes; i++) {
        const char *path = space->axes[i].path, *before = "";

        if (space->axes[i].why || !automatic_of(path) ||
            values_ask(&arena, space->sweep.base, path, space->sweep.name, &values, &ignored) || !values.going)
            continue;
        fprintf(out, "what goes with the scenario as it is: --set %s=", path);
        for (size_t v = 0; v < values.count; v++)
            if (!values.items[v].why) {
                fprintf(out, "%s%s", before, values.items[v].value);
                before = ",";
            }
        fputc('\n', out);
    }
    error_release(&ignored);
    arena_release(&arena);
}

/* The configuration that misses a limit by the least. */
static void print_miss(const struct plan_miss *miss, FILE *out)
{
    if (isfinite(miss->share))
        fprintf(out, "nearest replayed: %s %.4g, and the limit is at %s %.4g; try more --gpus, or a "
                "wider limit\n", miss->limit->name, miss->value, miss->limit->most ? "least" : "most", miss->limit->value);
}

/* The names of what is ordered by: "iteration_time_s and gpus". */
static void print_objectives(const struct goal *goal, FILE *out)
{
    for (size_t i = 0; i < goal->nobjectives; i++)
        fprintf(out, "%s%s", !i ? "" : i + 1 < goal->nobjectives ? ", " : " and ", goal->objectives[i].name);
}

/* Whether points were left out that run here, but not by the software's release. */
static bool leaves_out(const struct space *space, const struct plan_outcome *outcome)
{
    for (size_t i = 0; i < space->nrules; i++)
        if (space->rules[i].of_release && space->selection.dropped[i])
            return true;
    for (size_t i = 0; i < outcome->refusals.count; i++)
        if (!strcmp(outcome->refusals.items[i].rule, error_kind_names[ERROR_FRAMEWORK]))
            return true;
    return false;
}

/* Configurations that cannot be ordered stand in no place of the table. */
static void print_numberless(const struct space *space, const struct plan_outcome *outcome, FILE *out)
{
    fprintf(out, "not compared: %zu configuration%s without ", outcome->numberless, outcome->numberless == 1 ? "" : "s");
    fputs(space->goal.nobjectives ? "" : "speed", out);
    print_objectives(&space->goal, out);
    fputs(*outcome->without ? ": " : "", out);
    text_write(TEXT_LINE, outcome->without, out);
    fputc('\n', out);
}

static void print_proven(const struct space *space, const struct plan_outcome *outcome, const struct results *results, size_t shown,
                         bool front, FILE *out)
{
    const struct goal *goal = &space->goal;
    bool compares = plan_compares(results);
    const char *release = leaves_out(space, outcome) ? " that the release can run" : "", *which = !outcome->numberless ? release :
                          *release ? " that the release can run and that have these numbers" : " that have these numbers";

    if (compares && !goal->nobjectives)
        fprintf(out, "proven: each is the fastest of these axes%s in this simulator on its hardware and number of GPUs\n", which);
    else if (front && !goal->nobjectives)
        fprintf(out, "proven: each is the fastest of these axes%s in this simulator on its number of GPUs; numbers of GPUs "
                "on which fewer are faster are left out\n", which);
    else if (front) {
        bool fewest = !strcmp(goal->objectives[0].name, "gpus");

        fprintf(out, compares && goal->nobjectives == 1 && !fewest ? "proven: each is the best of its hardware among the configurations "
                "of these axes%s, by " : "proven: no other configuration of these axes%s%s betters one of these in ", which,
                compares ? " on its hardware" : "");
        print_objectives(goal, out);
        fputs(goal->nobjectives == 1 && fewest ? " and speed in this simulator\n" : " in this simulator\n", out);
    } else if (goal->nobjectives) {
        fprintf(out, "proven: no other configuration of these axes%s has a better ", which);
        print_objectives(goal, out);
        fprintf(out, " in this simulator than the %s, unless it shares its place\n", shown == 1 ? "one above" : "last one above");
    } else {
        fprintf(out, "proven: no other configuration of these axes%s is faster in this simulator than the %s, unless it shares "
                "its place\n", which, shown == 1 ? "one above" : "last one above");
    }
}

/* Whether configurations run and fit, but none of them has the metrics that the goal names, so that none is shown. */
static bool is_unknown(const struct plan_outcome *outcome, size_t shown)
{
    return !shown && (outcome->counts.replayed || (outcome->counts.outside && isinf(outcome->miss.share)));
}

/* A plan, and how many of its rows are shown and tied. */
struct concluded { const struct plan_outcome *outcome; size_t shown, tied, limits; bool front; };

#define CONCLUDED(ROW) \
    ROW(run_and_fit, json_count(it->outcome->counts.replayed + it->outcome->counts.outside), NULL) \
    ROW(left, json_count(it->outcome->counts.left), NULL) ROW(failed, json_count(it->outcome->counts.failed), NULL) \
    ROW(gap, json_finite(it->outcome->gap), NULL) ROW(shown, json_count(it->shown), NULL) \
    ROW(front, json_boolean(it->front), NULL) ROW(limits, json_count(it->limits), NULL) \
    ROW(tied, json_count(it->front ? 0 : it->tied), NULL) ROW(may_tie, json_count(it->outcome->may_tie), NULL) \
    ROW(most_tied, json_count(it->tied + it->outcome->may_tie), NULL) \
    ROW(unverified, json_boolean(it->outcome->unverified), NULL) ROW(best, json_count(it->outcome->verified.best), NULL) \
    ROW(unreached, json_count(it->outcome->verified.chosen - it->outcome->verified.done), NULL) \
    ROW(unable, json_count(it->outcome->verified.failed), NULL) ROW(why, json_words(it->outcome->verified.why), NULL)
VIEW(concluded_view, struct concluded, it, CONCLUDED)

/* Rows without a number cannot be ordered by it, and keep no limit of it. */
static const char unknown[] =
    "none has a number: {run_and_fit} configurations run and fit, but a metric that was asked for is not known of any ('dtsim help "
    "result' says why a metric is null)\n", infeasible[] =
    "none feasible: no configuration of these axes runs and fits[?limits , and keeps the limits]\n", gap[] =
    "not proven:[?left  [?left=1 1 configuration was|{left} configurations were] not reached[?failed  and {failed} failed]"
    "|?failed  {failed} failed| the search was interrupted][?shown=0 ; of the others, none runs and fits|?gap<1 [?gap>0 ; the "
    "fastest of them takes at most {gap:share} less time than the first above|; none of them is faster than the first above]"
    "[?front  of as many GPUs]|; how fast the fastest of them is, is not known]\n", ties[] =
    "[?tied [?may_tie at least {tied} and at most {most_tied} configurations share the first place: they differ by less than the "
    "expected error of their ratio; --top K replays and shows more\n|?tied>1 {tied} configurations share the first place: they "
    "differ by less than the expected error of their ratio[?tied>shown ; 'dtsim results' shows them all]\n]]", unverified[] =
    "[?unverified not verified on simgrid: the search ended first\n]"
    "[?unreached not verified on simgrid: {unreached} of the {best} best; the search ended first\n]"
    "[?unable not verified on simgrid: {unable} of the {best} best: {why}\n]";

/* "held, not searched: ZeRO 0, no sequence parallelism": what another value might change. */
static void print_held(const struct space *space, FILE *out)
{
    const char *before = "held, not searched: ";
    struct arena arena = {0};

    for (size_t i = 0; i < space->nheld; i++) {
        const struct space_held *held = &space->held[i];
        const char *words = words_of(&arena, held->path), *value = held->found.count ? held->found.items[0] : "";
        bool one = held->found.count == 1, none = one && (!strcmp(value, "none") || !strcmp(value, "false"));

        if (!space_holds(held))
            continue;
        fprintf(out, "%s%s%s", before, none ? "no " : "", words);
        for (size_t v = 0; v < held->found.count && !none && (!one || strcmp(value, "true")); v++) {
            fputs(v ? " or " : " ", out);
            text_write(TEXT_LINE, held->found.items[v], out);
        }
        before = ", ";
    }
    fputs(*before == ',' ? "\n" : "", out);
    arena_release(&arena);
}

/* Rows that ended with an error, a crash or a timeout. */
static void print_failures(const struct space *space, const struct plan_outcome *outcome, FILE *out)
{
    enum { MOST_FAILURES = 10 };     /* that are named */

    for (size_t i = 0; i < outcome->failures.count && i < MOST_FAILURES; i++) {
        const struct plan_failure *failure = &outcome->failures.items[i];

        fputs("failed:", out);
        print_point(space, failure->number, out);
        fprintf(out, ": %s%s", failure->status, *failure->reason ? ": " : "");
        text_write(TEXT_LINE, failure->reason, out);
        fputs("; --retry-failed replays it\n", out);
    }
    if (outcome->failures.count > MOST_FAILURES)
        fprintf(out, "failed: %zu more\n", outcome->failures.count - MOST_FAILURES);
}

static void print_status(const struct space *space, const struct plan_options *options,
                         const struct plan_outcome *outcome, const struct results *results, bool front, FILE *out)
{
    const struct concluded concluded = {outcome, plan_shown(options, results), plan_tied(results), space->goal.nlimits, front};

    if (outcome->status == PLAN_PROVEN && !is_unknown(outcome, concluded.shown))
        print_proven(space, outcome, results, concluded.shown, front, out);
    else
        view_say(&concluded_view, &concluded, is_unknown(outcome, concluded.shown) ? unknown :
                 outcome->status == PLAN_NONE_FEASIBLE ? infeasible : gap, out);
    if (concluded.shown && outcome->numberless)
        print_numberless(space, outcome, out);
    print_held(space, out);
    print_failures(space, outcome, out);
    view_say(&concluded_view, &concluded, ties, out);
    if (!front && concluded.shown)
        plan_explain(space, outcome, results, out);
    view_say(&concluded_view, &concluded, unverified, out);
}

/* The largest micro-batch of the rows, which are all that run and fit. */
static void print_largest(const struct results *results, FILE *out)
{
    int key = results_find(results, "batch.micro");
    json_int_t most = 0;

    for (size_t i = 0; key >= 0 && i < results->rows.count; i++) {
        json_int_t value = json_integer_value(results_json(results, i, key));

        most = value > most ? value : most;
    }
    fprintf(out, "the largest micro-batch that fits: %lld\n", (long long)most);
}

static bool is_of_time(const struct goal *goal)
{
    return !goal->nobjectives || !strcmp(goal->objectives[0].name, "iteration_time_s");
}

void plan_conclude(const struct space *space, const struct plan_options *options, const struct plan_outcome *outcome,
                   const struct results *results, bool front, FILE *out)
{
    size_t shown = plan_shown(options, results);

    if (shown > 1 && !front && is_of_time(&space->goal))
        print_why(results->rows.items[0], results->rows.items[1], out);
    print_status(space, options, outcome, results, front, out);
    if (shown && outcome->status == PLAN_PROVEN && space_asks_largest(space))
        print_largest(results, out);
    if (outcome->status == PLAN_NONE_FEASIBLE && isfinite(outcome->miss.share))
        print_miss(&outcome->miss, out);
    else if (outcome->counts.by_rule + outcome->counts.refused == outcome->counts.considered && !outcome->located.count)
        print_going(space, out);
    else if (outcome->status == PLAN_NONE_FEASIBLE) {
        plan_print_cause(space, outcome, out);
        print_nearest(space, outcome, out);
    }
}
