/* lockstep: replicas that share NICs and do the same at the same time. Max-min sharing then gives each flow of each an
 * equal part, so that all end late together; if one begins a little earlier it is done earlier, the others have its part,
 * and all are apart from then on. The replay of equal replicas is an unstable case of that, mostly the worst one, which no
 * cluster stands on: kernels there vary.
 *
 * So a second replay has kernels that differ by a part in 10^6. Where its time differs by a thousand times as much,
 * differences grow, and five more have kernels that vary by a hundredth (seeds from simulation.seed on). Where the time of
 * the second or the median of the five is more than 2 % off, the result is the run with that median time, with its
 * timeline. Scenarios with jitter of their own are as they say. */
#ifndef DTSIM_LOCKSTEP_H
#define DTSIM_LOCKSTEP_H

#include "workload/workload.h"

#define LOCKSTEP_DIFFERENCE 1e-6         /* of the second replay: share by which kernels vary */
#define LOCKSTEP_GROWN 1e-3              /* share of the time above which that difference grows */
#define LOCKSTEP_MOVED 0.02              /* share of the time above which a time is another one */
#define LOCKSTEP_JITTER 0.01
#define LOCKSTEP_REPLAYS 5

/* Whether flows of several replicas may meet on links of the program, before anything is replayed. */
bool lockstep_possible(const struct workload *workload);
/* What a time of the workload may be shorter than one whose works have their own times, as a share: a work of the five
 * runs is never shorter by more than five deviations. 0: it is not replayed so. */
double lockstep_shortens(const struct workload *workload);

#endif
