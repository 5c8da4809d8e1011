/* shorter: a workload with fewer micro-batches, whose timeline may tell the times of the whole one (steady.h). */
#ifndef DTSIM_SHORTER_H
#define DTSIM_SHORTER_H

#include "workload/workload.h"
#include "steady/period.h"

/* A workload of fewer micro-batches. Zero-initialise; shorter_release when done. */
struct shorter {
    struct workload workload;        /* the whole one's, but for its plan and rows */
    struct period period;            /* of the whole one's rows */
    int taken;                       /* micro-batches of each direction that the whole one has in addition */
    int found;                       /* micro-batches in which a timeline repeats itself, if `taken` is no multiple */
    int attempts, spent;             /* that failed; micro-batches of each direction that were simulated in all */
};

/* Shortens the workload. After an attempt that did not reach a steady state it shortens by less. False: its rows do not
 * repeat often enough for that, or the attempts have cost too much already. Release in either case. */
bool shorter_next(struct shorter *shorter, const struct workload *whole);
void shorter_release(struct shorter *shorter);

#endif
