/* memory_view: what 'dtsim show SCENARIO --memory' prints: the memory of every rank at its peak, by kind; under 'offload:
 * tensors' also the tensors of every stage by name, and how many of its layers keep them, compute them again, or have
 * them wait in host memory. */
#ifndef DTSIM_MEMORY_VIEW_H
#define DTSIM_MEMORY_VIEW_H

#include "workload/workload.h"

/* Simulates the workload and prints to stdout, also where it does not fit; then, or if it cannot be simulated, returns -1
 * and an error. */
int memory_show(const struct workload *workload, bool json, struct error *err);
#endif
