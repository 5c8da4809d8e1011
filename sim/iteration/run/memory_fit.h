/* memory_fit: whether a workload or a run fits into the memory of its GPUs. */
#ifndef DTSIM_MEMORY_FIT_H
#define DTSIM_MEMORY_FIT_H

#include "run/run.h"
#include "workload/row_counts.h"

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
/* EXIT_INFEASIBLE when a rank of the run needs more than memory_limit: by how much, where, and the largest parts; and what would
 * help, unless `advice` is "". */
int memory_refuse(const struct run *run, const char *advice, struct error *err);
/* "memory: a GPU of rank 0 needs 93 GiB and has 80 GiB", for a run that does not fit; returns buffer. */
char *memory_shortage(const struct run *run, char *buffer, size_t size);

#endif
