/* both_ends: a pipeline that micro-batches enter at both ends, with a copy of the model for each direction. */
#ifndef DTSIM_BOTH_ENDS_H
#define DTSIM_BOTH_ENDS_H

#include "schedule/schedule.h"

/* The ranks between this one and the nearer end. */
static inline int both_ends_outside(const struct plan *plan, int rank)
{
    int mirrored = plan->stages - 1 - rank;

    return rank < mirrored ? rank : mirrored;
}

/* Refuses odd pipelines; `why` says what an even number is for. */
static inline int both_ends_check(const struct plan *plan, const char *name, const char *why, struct loc loc,
                                  struct error *err)
{
    if (plan->stages % 2 == 0)
        return 0;
    return error_infeasible(err, ERROR_SCHEDULE, loc, "strategy: schedule: %s found pipeline %d; expected an even number, "
                            "%s", name, plan->stages, why);
}

#endif
