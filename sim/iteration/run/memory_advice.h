/* memory_advice: a scenario that does not fit, and what would help. */
#ifndef DTSIM_MEMORY_ADVICE_H
#define DTSIM_MEMORY_ADVICE_H

#include "run/memory_fit.h"

/* Infeasible (EXIT_INFEASIBLE) when a rank needs more than memory_limit: by how much, where, the largest parts, and the
 * change that fits and costs the least GPU time a sample: the changes of a short list are simulated on the free engine,
 * alone, and where none of them fits in pairs and in threes. Changes keep the model, its formats and its optimizer.
 * Without `advised` the change is not looked for. */
int memory_check(const struct run *run, bool advised, struct error *err);
/* The same advice behind an error of kind ERROR_MEMORY, for a scenario for whose layers no plan was found
 * (workload_init). */
void memory_advise(const struct scenario *scenario, struct error *err);
/* Whether micro-batches of `micro` samples, as many as now, would fit into what the GPUs may hold, even where that is not
 * enforced. -1 where such a scenario is none, with the reason. */
int memory_fits_micro(const struct scenario *scenario, int micro, bool *fits, struct error *err);

/* For whoever hands the errors to a person: the same and workload_init, with advice. Memory that does not fit is
 * EXIT_INFEASIBLE and names what would help; after simulate_advised() the metrics are there all the same. */
int workload_init_advised(struct workload *workload, const struct scenario *scenario, struct error *err);
int simulate_advised(const struct workload *workload, struct simulate_options options, struct run *run,
                     struct error *err);
/* What `dtsim run` shows: the workload of the scenario, and its run with causes, with advice unless options.no_advice;
 * where memory is short without any activations, its memory alone. 0: the run may be shown, and `err` is empty, or
 * EXIT_STOPPED where the budget was spent before the causes were found. Release workload and run in either case. */
int simulate_scenario(const struct scenario *scenario, struct simulate_options options, struct workload *workload,
                      struct run *run, struct error *err);

#endif
