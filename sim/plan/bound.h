/* bound: a time that no iteration of a workload is shorter than, found without simulating it.
 *
 * Every pipeline rank computes its works one after another, and no kernel becomes faster by what happens beside it. In a
 * pipeline that is flushed a rank's first forward also waits for that micro-batch's forwards on all stages before, and
 * behind its last backward that micro-batch's backwards on these stages follow. So with F and B the times of a stage's
 * forward and backward (or the part of it for inputs), an iteration takes at least, for every rank,
 *
 *     sum of F over the stages before + the rank's works up to its last backward
 *         + the greater of its further works and the sum of B over the stages before
 *
 * without what is sent, summed and waited for. */
#ifndef DTSIM_BOUND_H
#define DTSIM_BOUND_H

#include "workload/workload.h"

/* s. 0 where nothing is known: jitter may shorten works, asynchronous schedules have no end, and ranks that choose at
 * run time or share stages have no row of their own. */
double workload_bound(const struct workload *workload);

#endif
