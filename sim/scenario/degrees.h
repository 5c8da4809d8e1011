/* degrees: where they place GPUs, and what each of them divides. */
#ifndef DTSIM_DEGREES_H
#define DTSIM_DEGREES_H

#include "scenario/scenario.h"

/* Checks strategy.placement, and puts context into it where it is left out. */
int placement_resolve(struct scenario *scenario, struct error *err);

/* A context degree divides the tokens of a sample (into two pieces a GPU where the attention is causal: each GPU gets
 * an early and a late one, which balances the work); an expert degree divides experts and replicas. Else
 * EXIT_INFEASIBLE at the degree. */
int degrees_check(const struct scenario *scenario, struct error *err);

#endif
