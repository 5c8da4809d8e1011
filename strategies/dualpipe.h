/* dualpipe: what DualPipe and DualPipeV share. A V of ranks takes the micro-batches of its direction. */
#ifndef DTSIM_DUALPIPE_H
#define DTSIM_DUALPIPE_H

#include "schedule/schedule.h"

/* Writes the row of rank `rank` of a V of `ranks` ranks. Micro-batches begin in its chunk `near` and end in its chunk
 * 1 - near. */
struct dualpipe { int ranks, rank, near; };
void dualpipe_row(struct row *row, const struct plan *plan, const struct dualpipe *shape);
/* Refuses fewer micro-batches than 2 for each rank; `of` says which are counted. */
int dualpipe_check(const struct plan *plan, const char *name, const char *of, struct loc loc, struct error *err);

/* schedule.ideal_makespan and schedule.ideal_in_flight, of a V of so many ranks. */
double dualpipe_makespan(const struct plan *plan, int ranks, double f, double b);
static inline int dualpipe_in_flight(int ranks)
{
    return 2 * ranks + 1;
}

#endif
