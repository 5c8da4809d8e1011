/* The row that DualPipe and DualPipeV share. */
#ifndef DTSIM_DUALPIPE_H
#define DTSIM_DUALPIPE_H

#include "schedule/schedule.h"

/* Of `ranks` in a V: the row of the rank-th, whose chunk `near` begins micro-batches and whose chunk 1 - near ends
 * them. */
struct dualpipe { int ranks, rank, micro_batches, near; bool recompute; };
void dualpipe_row(struct row *row, const struct dualpipe *shape);

/* Seconds that each rank is idle, forwards taking f and backwards b seconds, half of it when split. NaN: no closed
 * form. */
double dualpipe_idle(int ranks, double f, double b);

#endif
