/* plan_print: what a plan found, for people and programs, and a scenario of each configuration that is shown. */
#ifndef DTSIM_PLAN_PRINT_H
#define DTSIM_PLAN_PRINT_H

#include "plan/plan.h"
#include "results/results_table.h"

/* Rows are ordered, `front` as plan_order says; results NULL: nothing was replayed. */
void plan_print(const struct space *space, const struct plan_options *options, const struct plan_outcome *outcome,
                const struct results *results, bool front, FILE *out);
/* plan_conclude.c: the sentences below its table: why the first is faster, what is proven, what comes nearest where nothing is feasible. */
void plan_conclude(const struct space *space, const struct plan_options *options, const struct plan_outcome *outcome,
                   const struct results *results, bool front, FILE *out);
/* plan_why.c: whether the first fits, which decisions make no difference that could be told, why the first wins. */
void plan_explain(const struct space *space, const struct plan_outcome *outcome, const struct results *results, FILE *out);
/* Simulates the rows that are shown, whose scenarios the folder has, on a network half as fast. */
void plan_halve(const char *folder, size_t shown, struct plan_outcome *outcome);
#define PLAN_RANKED "%s/rank-%02zu.yaml"          /* of a folder, and a row from 1 */
/* plan_more.c: where nothing is feasible: what keeps most configurations out; and the fewest GPUs, of as many times two as the
 * cluster has, on which the same search finds a configuration that fits; 0: not known. `spent` s of the limit have passed. */
void plan_print_cause(const struct space *space, const struct plan_outcome *outcome, FILE *out);
int plan_fewest(const struct plan_question *question, const struct space *space, const struct plan_options *options, double spent);
/* How many rows are shown. */
size_t plan_shown(const struct plan_options *options, const struct results *results);
/* How many rows share the first place. */
size_t plan_tied(const struct results *results);
/* plan_scenarios.c: FOLDER/rank-01.yaml and so on: scenarios with every default, whose run gives the numbers of the row. */
int plan_write_scenarios(const struct space *space, const struct plan_options *options,
                         const struct plan_outcome *outcome, const struct results *results, struct error *err);

/* plan_json.c: the same for programs. */
void plan_print_json(const struct space *space, const struct plan_options *options, const struct plan_outcome *outcome,
                     const struct results *results, bool front, FILE *out);
/* FOLDER/plan.json, which 'dtsim report' reads together with the rows of the folder: --json without the rows, but with
 * the place of each. */
int plan_write_summary(const struct space *space, const struct plan_options *options, const struct plan_outcome *outcome,
                       const struct results *results, bool front, struct error *err);
/* The keys of both, as part of 'dtsim help result'. */
void plan_help(FILE *out);
/* The folder for the files of these rows: the search's own or, where an earlier search has left a better first row of the
 * same work there, which stays, FOLDER/2 and so on. */
const char *plan_place(struct arena *arena, const char *folder, const struct results *results, bool front);

#endif
