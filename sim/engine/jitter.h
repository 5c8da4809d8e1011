/* jitter: no kernel takes the same time twice. Every work of a rank takes its time times a factor drawn from a
 * log-normal distribution of mean 1; the factor depends on the seed, the rank, the stage, the kind and the micro-batch
 * alone, so that two schedules meet the same luck. */
#ifndef DTSIM_JITTER_H
#define DTSIM_JITTER_H

#include "engine/program.h"

/* Multiplies the kernels' seconds on compute lanes, not the communication among them. `deviation`: standard deviation
 * of the factor, 0 changes nothing. */
void jitter_apply(struct program *program, double deviation, int seed);

#endif
