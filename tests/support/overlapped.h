/* overlapped: what the tests of works that a schedule overlaps share. */
#ifndef DTSIM_TEST_OVERLAPPED_H
#define DTSIM_TEST_OVERLAPPED_H

#include "sent.h"
#include "simulated.h"

/* Exposed seconds of all-to-alls on rank 0. One takes `each` seconds, and takes `share` of the GPU from kernels that
 * overlap with it. A cell alone exposes all of its seconds. Overlapped cells expose the seconds beyond their kernels,
 * or the seconds that these kernels lose. Counts the overlapped cells whose all-to-alls last longer than their kernels,
 * and the others. */
static inline double shown_all_to_alls(const struct simulated *simulated, double each, double share, int *shown,
                                       int *hidden)
{
    const struct plan *plan = &simulated->scenario.plan;
    const struct row *rows = simulated->workload.rows;
    double seconds = 0;

    for (size_t i = 0; i < rows[0].count; i++) {
        double kernels = 0, dispatches = 0;
        size_t first = i;

        for (bool more = true; more; i += more) {
            struct work work = rows[0].items[i];
            int s = plan_virtual_stage(plan, 0, work.chunk);

            kernels += ordinary_times(&simulated->workload)[s].work[work.kind].seconds;
            dispatches += sent_count(&simulated->workload.stages[s], &simulated->workload.stages[s].work[work.kind], SENT_ROWS,
                                     HIDDEN_BY_OTHERS) * each;
            more = work.with_next;
        }
        seconds += i > first ? fmax(share * dispatches, dispatches - kernels) : dispatches;
        *shown += i > first && dispatches > kernels;
        *hidden += i > first && dispatches < kernels;
    }
    return seconds;
}

#endif
