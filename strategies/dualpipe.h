/* dualpipe: the row of DualPipe and DualPipeV. */
#ifndef DTSIM_DUALPIPE_H
#define DTSIM_DUALPIPE_H

#include "schedule/schedule.h"

/* Writes the row of rank `rank` of a V of `ranks` ranks. Micro-batches begin in its chunk `near` and end in its chunk
 * 1 - near. */
struct dualpipe { int ranks, rank, micro_batches, near; bool recompute; };
void dualpipe_row(struct row *row, const struct dualpipe *shape);

/* Seconds that each rank is idle, if a forward takes f, a backward b and each half of a backward b / 2 seconds. NaN: no
 * closed form. */
double dualpipe_idle(int ranks, double f, double b);

#endif
