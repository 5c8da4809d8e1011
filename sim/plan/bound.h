/* bound: a time that no iteration of a workload is shorter than, found without simulating it.
 *
 * Every pipeline rank computes its works one after another, and no work becomes shorter by what happens beside it: it
 * takes its kernels and, where the tensor group is in one node, what that exchanges within works and no kernel hides. In a
 * pipeline that is flushed a rank's first forward also waits for that micro-batch's forwards on all stages before, and
 * behind its last backward that micro-batch's backwards on these stages follow. In the end each rank updates. So with F and
 * B the times of a stage's forward and backward (or the part of it for inputs), an iteration takes at least, for every rank,
 *
 *     sum of F over the stages before + the rank's works up to its last backward
 *         + the greater of its further works and its update, and the sum of B over the stages before
 *
 * without what is sent between ranks, summed over replicas and waited for. */
#ifndef DTSIM_BOUND_H
#define DTSIM_BOUND_H

#include "collective/measure.h"
#include "lower/workload.h"

/* s. `measure`: on the cluster of the workload; NULL: exchanges within works are left out. 0 where nothing is known: jitter
 * may shorten works, asynchronous schedules have no end, and ranks that choose at run time or share stages have no row of
 * their own. */
double workload_bound(const struct workload *workload, struct measure *measure);

#endif
