/* steady: a long pipeline, simulated short. Between its fill and its drain a pipeline comes again and again to the same
 * state: after some micro-batches every rank does the works that it did before, so many micro-batches later, each just
 * as long after the one before. Then a pipeline of fewer micro-batches tells the times of the long one: what it does in
 * one such period is repeated (struct repeat in engine/program.h). That is exact but for rounding. It is not assumed but
 * seen: in the short timeline, the last period before the first rank drains must be the one before it, operation by
 * operation, on every lane, with the same dependencies. Whatever an operation does from then on follows from what is
 * under way at that time, so that further periods would be the same. */
#ifndef DTSIM_STEADY_H
#define DTSIM_STEADY_H

#include "lower/workload.h"
#include "steady/period.h"

/* A workload of fewer micro-batches. Zero-initialise; shorter_release when done. */
struct shorter {
    struct workload workload;        /* the whole one's, but for its plan and rows */
    struct period period;            /* of the whole one's rows */
    int taken;                       /* micro-batches of each direction that the whole one has in addition, */
    int step;                        /* in steps of so many */
    int found;                       /* micro-batches in which a timeline repeats itself, if `taken` is no multiple */
    int attempts, spent;             /* that failed; micro-batches of each direction that were simulated in all */
};

/* Shortens the workload; again, if an earlier attempt did not come to a steady state: by less. False: its rows do not
 * repeat often enough for that, or what was tried has cost too much already. Release in either case. */
bool shorter_next(struct shorter *shorter, const struct workload *whole);
void shorter_release(struct shorter *shorter);

/* Fills timeline->repeat of the short workload's timeline. False: it does not come to a steady state, or to one that
 * repeats itself in other numbers of micro-batches than were taken out. */
bool steady_find(struct timeline *timeline, struct shorter *shorter);

#endif
