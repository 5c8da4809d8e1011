/* period: the works that long rows repeat. In the middle of a pipeline's rows each rank does the same works again and
 * again, of later micro-batches: 1F1B a forward and a backward. Whoever takes some of these periods out gets the rows of
 * a shorter pipeline, which begins and ends as the longer one does. */
#ifndef DTSIM_PERIOD_H
#define DTSIM_PERIOD_H

#include "schedule/schedule.h"

/* A rank's works from `first` to before `end`: each of them is the work `works` before it, of a later micro-batch. */
struct stretch_of_row { size_t first, end, works; };

/* The period of all ranks. Zero-initialise; period_release when done. */
struct period {
    int micro_batches;           /* of each direction: how many micro-batches later a work's micro-batch is after one
                                    period */
    int spare;                   /* micro-batches of each direction in whole periods that all rows repeat */
    struct stretch_of_row *rows; /* a rank */
};

/* Finds the shortest period of rows without updates. False: there is none, or it is hardly repeated. Release in either
 * case. */
bool period_find(const struct row *rows, const struct plan *plan, struct period *period);
void period_release(struct period *period);

/* The rows without `taken` micro-batches of each direction, a multiple of the period and at most `spare`, for
 * period_plan(plan, taken); rows_release when done. NULL: they are no rows of such a plan. */
struct row *period_take(const struct period *period, const struct row *rows, const struct plan *plan, int taken);
struct plan period_plan(const struct plan *plan, int taken);
/* The end of the rank's stretch in these rows. */
size_t period_end(const struct period *period, int rank, int taken);

#endif
