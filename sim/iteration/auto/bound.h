/* bound: a time that no iteration of a workload is shorter than, found without simulating it.
 *
 * Every pipeline rank computes its works one after another, and no work becomes shorter by what happens beside it. It
 * takes its kernels, and what they do not hide of exchanges within works: of a tensor group in one node, as measured
 * alone; of dispatches to experts, as measured beside those that share their links; of a ring of keys and values through nodes, what its NICs carry at the rate of their data sheet. In a pipeline
 * that is flushed a rank's first forward also waits for that micro-batch's forwards on all stages before, and behind its
 * last backward that micro-batch's backwards on these stages follow. In the end gradients are summed, where nothing hides
 * that at the rate of the NICs, the rank updates, and updated weights are gathered: its tail. So with F and B the times of
 * a stage's forward and backward (or the part of it for inputs), an iteration takes at least, for every rank,
 *
 *     sum of F over the stages before + the rank's works up to its last backward
 *         + the greater of its further works and its tail, and the sum of B over the stages before and the first's tail
 *
 * or as long as its copies of activations to the host, where layers are planned, without the time of transfers between stages and waits for them. Where micro-batches are cut into slices, "works" means
 * the works of all slices; F and B are of the first slice, which is in a rank's first forward and its last backward. */
#ifndef DTSIM_BOUND_H
#define DTSIM_BOUND_H

#include "collective/measure.h"
#include "workload/row_counts.h"
#include "workload/workload.h"

/* s, on the engine of `measure`, which is on the cluster of the workload; NULL: without any exchange, on any engine. On
 * engine ideal links are not shared, and exchanges between nodes are left out. `counts`: of the workload's rows, which then
 * need not have been made; NULL: it is counted. Where replicas may leave their lockstep (workload/lockstep.h), it is a
 * twentieth less, as their works may be shorter. 0 where nothing is known: jitter may shorten works, asynchronous
 * schedules have no end, and ranks that choose at run time or share stages have no row of their own. */
double workload_bound(const struct workload *workload, const struct row_counts *counts, struct measure *measure);

#endif
