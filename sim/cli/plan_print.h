/* plan_print: what a plan found, for people and programs, and a scenario of each configuration that is shown. */
#ifndef DTSIM_PLAN_PRINT_H
#define DTSIM_PLAN_PRINT_H

#include "plan/plan.h"
#include "results/results_table.h"

/* Rows are ordered, `front` as plan_order says; results NULL: nothing was replayed. */
void plan_print(const struct space *space, const struct plan_options *options, const struct plan_outcome *outcome,
                const struct results *results, bool front, FILE *out);
void plan_print_json(const struct space *space, const struct plan_options *options, const struct plan_outcome *outcome,
                     const struct results *results, FILE *out);
/* FOLDER/rank-01.yaml and so on: scenarios with every default, whose run gives the numbers of the row. */
int plan_write_scenarios(const struct space *space, const struct plan_options *options,
                         const struct plan_outcome *outcome, const struct results *results, struct error *err);

#endif
