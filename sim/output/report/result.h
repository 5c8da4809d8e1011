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
/* The name of the software whose values hold; null: none. */
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
/* Schedule, degrees, setup_text and the software, in words. */
json_t *setup_json(const struct scenario *scenario);
/* Versions of its weights that a rank holds at most; 1 unless the schedule is asynchronous. */
int result_weight_versions(const struct workload *workload);
/* Where the seconds of the average rank went, by kind; they add up to the iteration time. */
json_t *breakdown_json(const struct metrics *metrics);
/* Any tree as JSON: scalars that are numbers or booleans in YAML stay so. */
json_t *node_json(const struct node *node);

/* Writes the tables (tables/tables.h) and result.json, which has the digests of the others and the run's id, into the
 * folder, all of them or none. */
int result_write(const struct run *run, struct folder *folder, struct error *err);

#endif
