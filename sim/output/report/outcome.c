#include "report/outcome.h"

#include <math.h>
#include <string.h>

#include "auto/auto.h"
#include "base/base.h"
#include "engine/replay.h"
#include "files/json.h"
#include "kernels/costs.h"
#include "report/result.h"
#include "run/certainty.h"
#include "run/memory_advice.h"
#include "scenario/scenario.h"
#include "workload/workload.h"

enum { REASON_MOST = 400 };      /* bytes of a reason */

const char *const outcome_names[] = ENUM_NAMES(OUTCOMES);

enum outcome outcome_of(const json_t *row)
{
    const char *name = json_string_value(json_object_get(row, "status"));
    enum outcome outcome = OUTCOME_OK;

    while (outcome < OUTCOME_COUNT && (!name || strcmp(name, outcome_names[outcome])))
        outcome++;
    return outcome;
}

static void put_reason(json_t *row, enum outcome outcome, const char *rule, const char *reason)
{
    char text[REASON_MOST];

    json_put(row, "status", json_words(outcome_names[outcome]));
    if (rule)
        json_put(row, "rule", json_words(rule));
    json_put(row, "reason", json_words(text_clip(reason, text, sizeof text)));
}

void outcome_refused(json_t *row, const struct error *err)
{
    const struct error_message *message = &err->messages[0];

    if (error_exit_code(err) == EXIT_INFEASIBLE)
        put_reason(row, OUTCOME_INFEASIBLE, error_kind_names[message->kind], message->text);
    else if (error_exit_code(err) == EXIT_STOPPED)
        put_reason(row, OUTCOME_TIMEOUT, NULL, message->text);
    else
        put_reason(row, OUTCOME_ERROR, NULL, message->text);
    json_put(row, "metrics", json_object());
}

/* B that are left on the GPU that holds most; negative where it does not fit; NaN where its memory is not known. */
static double memory_margin(const struct run *run)
{
    double room = run->metrics.peak_room;

    return isfinite(room) ? room - run->metrics.peak_memory : NAN;
}

/* As result.json names them. */
static json_t *metrics_of(const struct run *run)
{
    const struct scenario *scenario = run->workload->scenario;
    const struct metrics *m = &run->metrics;
    double compute = m->utilization * m->iteration_time;
    bool calibrated = costs_calibrated(scenario_first_costs(scenario));
    json_t *json = json_object();

    for (size_t i = 0; metric_at(i); i++)
        json_put(json, metric_at(i)->name, json_finite(metric_value(m, metric_at(i))));
    json_put(json, "memory_margin_bytes", json_finite(memory_margin(run)));
    json_put(json, "extrapolated_share", json_finite(calibrated ? fmin(m->extrapolated / compute, 1) : NAN));
    json_put(json, "gpus", json_integer(scenario_gpus(scenario)));
    json_put(json, "cost", json_finite(result_cost(run)));
    json_put(json, "gpu_hours", json_finite(result_gpu_hours(run)));
    json_put(json, "weight_versions", json_integer(result_weight_versions(run->workload)));
    json_put(json, "breakdown_s", breakdown_json(m));
    return json;
}

static void too_large(json_t *row, const struct run *run)
{
    const struct metrics *m = &run->metrics;
    char reason[160];
    json_t *metrics = json_object();

    put_reason(row, OUTCOME_INFEASIBLE, error_kind_names[ERROR_MEMORY], memory_shortage(run, reason, sizeof reason));
    json_put(metrics, "peak_memory_bytes", json_finite(m->peak_memory));
    json_put(metrics, "memory_margin_bytes", json_finite(-memory_lack(run)));
    json_put(row, "metrics", metrics);
}

/* Finds out what the scenario needs, where it hardly fits: for a row that says so nothing else is asked. */
static int find_shortage(const struct workload *workload, struct run *run, struct error *err)
{
    struct simulate_options options = memory_options_of(workload->scenario);

    if (!options.memory || memory_seems_to_fit(workload))
        return 0;
    if (simulate(workload, options, run, err))
        return -1;
    if (memory_lack(run) <= 0)
        run_release(run);
    return 0;
}

/* The metrics, corrected by anchors; or why they are not, under "anchors_refused". */
static void anchor_row(json_t *row, struct run *run, const struct anchors *anchors)
{
    struct arena arena = {0};
    const char *why = certainty_anchor(&arena, &run->metrics, run->workload->scenario, anchors);

    if (why)
        json_put(row, "anchors_refused", json_words(why));
    arena_release(&arena);
}

int outcome_simulate(json_t *row, const struct scenario *scenario, const struct anchors *anchors, struct error *err)
{
    struct workload workload = {0};
    struct run run = {0};
    struct error found = {0};
    int rc = 0;

    json_put(row, "engine", json_words(engine_names[scenario->simulation.engine]));
    json_put(row, "software", software_json(scenario));
    json_put(row, "in_framework", in_framework_json(scenario));
    json_put(row, "model", model_json(scenario));
    json_put(row, "gpu", gpu_json(scenario));
    if (workload_init(&workload, scenario, &found) || find_shortage(&workload, &run, &found) ||
        (!run.metrics.ranks && simulate(&workload, simulate_numbers_of(scenario), &run, &found))) {
        rc = error_pass_system(&found, err);
        outcome_refused(row, &found);
    } else if (memory_lack(&run) > 0) {
        too_large(row, &run);
    } else {
        json_put(row, "status", json_words(outcome_names[OUTCOME_OK]));
        if (anchors)
            anchor_row(row, &run, anchors);
        json_put(row, "metrics", metrics_of(&run));
    }
    run_release(&run);
    workload_release(&workload);
    error_release(&found);
    return rc;
}

void outcome_lost(json_t *row, enum outcome outcome, const char *reason)
{
    put_reason(row, outcome, NULL, reason);
    json_put(row, "metrics", json_object());
}
