/* sweep_plan: what a sweep would run, printed by a dry run. */
#ifndef DTSIM_SWEEP_PLAN_H
#define DTSIM_SWEEP_PLAN_H

#include "sweep/sweep.h"

enum { POINTS_MOST = 100000 };   /* of a sweep, unless --max says otherwise */

/* The axes, how many combinations there are, how many each constraint drops, and the first points. */
void sweep_plan_print(const struct points *points, const struct selection *selection);
/* The same for programs, without points: {axes: [{paths, values}], combinations, dropped: [{where, points}], included,
 * points}. */
void sweep_plan_print_json(const struct points *points, const struct selection *selection);
/* How long all points will take: a few of them are simulated, each for some seconds at most. */
void sweep_estimate_print(const struct sweep *sweep, const struct selection *selection,
                          const struct sweep_options *options, struct error *err);

#endif
