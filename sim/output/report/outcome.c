#include "report/outcome.h"

#include <math.h>
#include <string.h>

#include "base/base.h"
#include "engine/replay.h"
#include "files/json.h"
#include "kernels/costs.h"
#include "report/result.h"
#include "run/attempt.h"
#include "run/certainty.h"
#include "run/memory_fit.h"
#include "scenario/scenario.h"
#include "view/view.h"
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

static json_t *clipped(const char *reason)
{
    char text[REASON_MOST];

    return json_words(text_clip(reason, text, sizeof text));
}

/* B that are left on the GPU that holds most; negative where it does not fit; NaN where its memory is not known. */
static double memory_margin(const struct run *run)
{
    double room = run->metrics.peak_room;

    return isfinite(room) ? room - run->metrics.peak_memory : NAN;
}

/* NaN: no profile. */
static double extrapolated_share(const struct run *run)
{
    const struct metrics *m = &run->metrics;

    return costs_calibrated(scenario_first_costs(run->workload->scenario)) ?
           fmin(m->extrapolated / (m->utilization * m->iteration_time), 1) : NAN;
}

#define POINT(ROW) \
    ROW(memory_margin_bytes, json_finite(memory_margin(it)), \
        "left on the GPU that holds most; negative: it does not fit; null: its memory is not known") \
    ROW(extrapolated_share, json_finite(extrapolated_share(it)), "of compute: extrapolated_s of result.json") \
    ROW(gpus, json_integer(scenario_gpus(it->workload->scenario)), "that compute") \
    COST_ROWS(ROW) \
    ROW(breakdown_s, breakdown_json(&it->metrics), "as in result.json", .form = VIEW_MAP)
VIEW_SHARED(point_view, struct run, it, POINT)

static json_t *metrics_of(const struct run *run)
{
    json_t *json = view_json(&metrics_view, &run->metrics);

    view_put(&point_view, run, json);
    return json;
}

#define TOO_LARGE(ROW) \
    ROW(peak_memory_bytes, json_finite(it->metrics.peak_memory), "as in result.json") \
    ROW(memory_margin_bytes, json_finite(-memory_lack(it)), "left on the GPU that holds most; negative: it does not fit")
VIEW(too_large_view, struct run, it, TOO_LARGE)

/* A row of a sweep or of a comparison. */
struct row_of {
    const struct scenario *scenario;
    enum outcome outcome;
    const char *rule, *reason, *refused;
    json_t *metrics;
};

#define ASKED(ROW) \
    ROW(engine, json_words(engine_names[it->scenario->simulation.engine]), "that simulated it") \
    ROW(software, software_json(it->scenario), "whose values hold; null: none") \
    ROW(in_framework, in_framework_json(it->scenario), "as in result.json") \
    ROW(model, model_json(it->scenario), "as in result.json") \
    ROW(gpu, gpu_json(it->scenario), "as in result.json")
VIEW_SHARED(asked_view, struct row_of, it, ASKED)

#define ENDED(ROW) \
    ROW(status, json_words(outcome_names[it->outcome]), "ok, infeasible, error, timeout or crash") \
    ROW(rule, it->rule ? json_words(it->rule) : NULL, "of what is infeasible, as errors have it") \
    ROW(anchors_refused, it->refused ? json_words(it->refused) : NULL, "why --anchor runs do not correct it") \
    ROW(reason, it->reason ? clipped(it->reason) : NULL, "why it is not ok") \
    ROW(metrics, it->metrics, "as result.json has them, and these; none where it is not ok", .of = &point_view)
VIEW_SHARED(ended_view, struct row_of, it, ENDED)

static void ended(json_t *row, enum outcome outcome, const char *rule, const char *reason, json_t *metrics)
{
    view_put(&ended_view, &(struct row_of){.outcome = outcome, .rule = rule, .reason = reason, .metrics = metrics}, row);
}

void outcome_refused(json_t *row, const struct error *err)
{
    enum exit_code code = error_exit_code(err);

    ended(row, code == EXIT_INFEASIBLE ? OUTCOME_INFEASIBLE : code == EXIT_STOPPED ? OUTCOME_TIMEOUT : OUTCOME_ERROR,
          code == EXIT_INFEASIBLE ? error_kind_names[err->messages[0].kind] : NULL, err->messages[0].text, json_object());
}

void outcome_lost(json_t *row, enum outcome outcome, const char *reason)
{
    ended(row, outcome, NULL, reason, json_object());
}


int outcome_with(json_t *row, const struct scenario *scenario, const struct anchors *anchors, outcome_more *more,
                 struct error *err)
{
    struct attempt attempt = {.of = scenario};
    struct run *run = &attempt.run;
    struct arena arena = {0};
    enum attempted came;
    int rc = 0;

    view_put(&asked_view, &(struct row_of){.scenario = scenario}, row);
    came = attempt_run(&attempt, simulate_numbers_of(scenario));
    if (came == ATTEMPT_SHORT && run->metrics.ranks) {
        char reason[160];

        ended(row, OUTCOME_INFEASIBLE, error_kind_names[ERROR_MEMORY], memory_shortage(run, reason, sizeof reason),
              view_json(&too_large_view, run));
    } else if (came) {
        outcome_refused(row, &attempt.found);
    } else {
        const char *refused = anchors ? certainty_anchor(&arena, &run->metrics, run->workload->scenario, anchors) : NULL;

        view_put(&ended_view, &(struct row_of){.refused = refused, .metrics = metrics_of(run)}, row);
        rc = more ? more(row, scenario, run, err) : 0;
    }
    arena_release(&arena);
    return attempt_end(&attempt, err) ? -1 : rc;
}
