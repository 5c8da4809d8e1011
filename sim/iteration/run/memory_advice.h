/* memory_advice: a scenario that does not fit, and what would help. */
#ifndef DTSIM_MEMORY_ADVICE_H
#define DTSIM_MEMORY_ADVICE_H

#include "run/run.h"
#include "workload/row_counts.h"

/* Infeasible (EXIT_INFEASIBLE) when a rank needs more than memory_limit: by how much, where, the largest parts, and the
 * change that fits and costs the least GPU time a sample: the changes of a short list are simulated on the free engine,
 * alone, and where none of them fits in pairs and in threes. Changes keep the model, its formats and its optimizer.
 * Without `advised` the change is not looked for. */
int memory_check(const struct run *run, bool advised, struct error *err);
/* "memory: a GPU of rank 0 needs 93 GiB and has 80 GiB", for a run that does not fit; returns buffer. */
char *memory_shortage(const struct run *run, char *buffer, size_t size);
/* The same advice behind an error of kind ERROR_MEMORY, for a scenario for whose layers no plan was found
 * (workload_init). */
void memory_advise(const struct scenario *scenario, struct error *err);
/* Whether no rank of the workload needs more than its GPUs may hold (`always`: also where memory.enforce is
 * false), as the simulation tells: where nothing depends on
 * times, memory follows from the rows of one replica (memory_needs). False, with the reason, where it fails. */
bool memory_fits(const struct workload *workload, struct simulate_options options, bool always, struct error *err);
/* B that the fullest GPU of a run lacks; 0 or less: it fits, or need not (memory.enforce). */
double memory_lack(const struct run *run);
/* The same at a glance: what ranks hold all the time, and the activations in flight. It may be wrong either way. */
bool memory_seems_to_fit(const struct workload *workload);
extern const struct simulate_options memory_needs;
/* How to find the memory of a scenario with the least work: as memory_needs, or as a run where it depends on times. */
struct simulate_options memory_options_of(const struct scenario *scenario);
/* Whether what ranks hold all the time, without activations, is more than memory_limit() already. Then a simulation
 * with memory_needs says by how much memory is short, and no other one is worth its time. */
bool memory_is_short(const struct workload *workload);
/* B that the fullest GPU surely lacks, by what it holds all the time and, with the counts of the workload's rows (else NULL),
 * by the activations that are in flight at once on the rank. 0 or less: it may fit, or nothing is known without a
 * simulation. */
double memory_surely_lacks(const struct workload *workload, const struct row_counts *counts);
/* B that the fullest GPU lacks for weights, gradients and optimizer states alone, whatever else it holds; without times nothing
 * is known: -INFINITY. */
double memory_states_lack(const struct workload *workload);
/* Whether twice the micro-batch, in twice the batch, would fit into the GPU's memory too. -1 where such a scenario is
 * none, with the reason. */
int memory_fits_twice(const struct scenario *scenario, bool *fits, struct error *err);

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
