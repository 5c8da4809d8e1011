/* run: one scenario simulated: the only way from a scenario to a timeline and its numbers. */
#ifndef DTSIM_RUN_H
#define DTSIM_RUN_H

#include "run/metrics.h"

/* One simulated iteration, with all that its files are written from. */
struct run {
    struct scenario *scenario;
    struct stage *stages;
    struct lowered lowered;
    struct timeline timeline;
    struct metrics metrics;
};

/* Simulates the scenario. Release in either case (a zeroed struct too). Memory that does not fit is EXIT_INFEASIBLE;
 * the metrics are there all the same. */
int run_init(struct run *run, struct scenario *scenario, struct error *err);
/* The same whatever memory it needs. */
int run_simulate(struct run *run, struct scenario *scenario, struct error *err);
void run_release(struct run *run);

#endif
