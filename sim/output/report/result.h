/* result: what a run leaves behind. Charts, traces and reports read these files and nothing else. */
#ifndef DTSIM_RESULT_H
#define DTSIM_RESULT_H

#include "files/folder.h"
#include "files/json.h"
#include "tables/tables.h"

/* The metrics and the resolved scenario as the contract names them; numbers that are not defined are null. The caller
 * owns the reference. */
json_t *result_json(const struct run *run);
/* The same without the scenario. */
json_t *result_metrics_json(const struct run *run);
/* The names of the model and of the GPU; null: it has no name. */
json_t *model_json(const struct scenario *scenario);
json_t *gpu_json(const struct scenario *scenario);
json_t *software_json(const struct scenario *scenario);
/* Whether the software's release has what the scenario asks (scenario_in_framework); null: not known. */
json_t *in_framework_json(const struct scenario *scenario);
/* What a reader asks next after schedule and degrees: "expert 8, 2 chunks a rank, ZeRO 1, micro-batches of 1 sample,
 * mixed-bf16, selective recomputation"; in the arena. */
const char *setup_text(struct arena *arena, const struct scenario *scenario);
/* GPU-hours of the iteration; the $ that they cost, NaN: no price is said. */
double result_gpu_hours(const struct run *run);
double result_cost(const struct run *run);
/* The same by a million tokens; NaN: the model has none. */
double result_by_tokens(const struct run *run, double amount);
/* Schedule, degrees, setup_text and the software, in words. */
json_t *setup_json(const struct scenario *scenario);
/* Versions of its weights that a rank holds at most; 1 unless the schedule is asynchronous. */
int result_weight_versions(const struct workload *workload);
/* Where the seconds of the average rank went, by kind; they add up to the iteration time. */
json_t *breakdown_json(const struct metrics *metrics);
/* Any tree as JSON: scalars that are numbers or booleans in YAML stay so. */
json_t *node_json(const struct node *node);

/* What runs say, but for their metrics (metrics_view); their scenario; what its folder adds to a result. */
extern const struct view run_view, resolved_view, folder_view;
/* What rows of sweeps say: of the scenario; how it ended; of its numbers besides metrics_view (outcome.c). */
extern const struct view asked_view, ended_view, point_view;
/* Rows that results of runs and of sweeps have in common; `it` is a struct run. */
#define COST_ROWS(ROW) \
    ROW(cost, json_finite(result_cost(it)), \
        "of the iteration, $: iteration_time_s x gpus_paid x price; null: the scenario says no price") \
    ROW(gpu_hours, json_finite(result_gpu_hours(it)), "of the iteration: iteration_time_s x gpus_paid / 3600") \
    ROW(cost_per_million_tokens, json_finite(result_by_tokens(it, result_cost(it))), "cost, $, by a million tokens") \
    ROW(kwh_per_million_tokens, json_finite(result_by_tokens(it, it->metrics.energy / JOULES_A_KWH)), \
        "energy_j by a million tokens, in kWh") \
    ROW(weight_versions, json_integer(result_weight_versions(it->workload)), \
        "that a rank holds at most: more than 1 under asynchronous schedules")

/* A folder of results: its tables NAME.tsv (NULL stands behind the last name), and result.json, which gets the digests of the
 * others and an id. Writes all of them or none. */
struct result_files {
    const char *const *names;
    void (*table)(const void *of, size_t table, FILE *out);
    json_t *(*result)(const void *of);
    const void *of;
};
int result_files(const struct result_files *files, struct folder *folder, struct error *err);
/* The same of a run, with the tables of tables/tables.h. */
int result_write(const struct run *run, struct folder *folder, struct error *err);

#endif
