/* jitter: random kernel times. Every work's time is multiplied by a factor from a log-normal distribution of mean 1.
 * The factor depends only on the seed, the rank, the stage, the kind of work and the micro-batch, so that two schedules
 * get the same factors. */
#ifndef DTSIM_JITTER_H
#define DTSIM_JITTER_H

#include "engine/program.h"

/* Multiplies the kernels' seconds on compute lanes, not the communication within works. `deviation`: standard deviation
 * of the factor; 0 changes nothing. */
void jitter_apply(struct program *program, double deviation, long long seed);

#endif
