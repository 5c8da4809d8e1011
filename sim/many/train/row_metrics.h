/* row_metrics: what the training of a scenario adds to the metrics of its row in a sweep or a plan. */
#ifndef DTSIM_ROW_METRICS_H
#define DTSIM_ROW_METRICS_H

#include <jansson.h>
#include <stdbool.h>

struct error;
struct run;
struct scenario;

/* The metric of a training by its name in a row, or by the name that `dtsim train` gives it: days, goodput, gpu_hours, cost,
 * energy_j, each also with _p10, _p50, _p90. The name in a row, "training_cost" for "cost", since an iteration has a cost
 * too; NULL: there is none. */
const char *training_metric(const char *name);
/* The names in a row, in order; NULL past the last. */
const char *training_metric_at(size_t index);

/* Whether the scenario says how long its model is trained. */
bool training_is_asked(const struct scenario *scenario);
/* Simulates the training by 200 trials of seed 1 and puts its metrics, and training_steps. `run`: an iteration of the scenario.
 * Errors: as training_init. */
int training_put_metrics(json_t *metrics, const struct scenario *scenario, const struct run *run, struct error *err);

extern const struct view training_row_view;          /* what these are, of a struct training */

#endif
