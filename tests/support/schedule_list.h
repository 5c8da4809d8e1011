/* What the tests of all schedules share: their list, and stages that they order. */
#ifndef DTSIM_TEST_SCHEDULE_LIST_H
#define DTSIM_TEST_SCHEDULE_LIST_H

#include "simulated.h"

#define SCHEDULE(name) extern const struct schedule schedule_##name;
#include "strategies/list.h"
#undef SCHEDULE

static const struct schedule *const schedules[] = {
#define SCHEDULE(name) &schedule_##name,
#include "strategies/list.h"
#undef SCHEDULE
};

static inline void load_stages(struct simulated *simulated, const char *schedule, int stages, int micro_batches,
                               bool recompute)
{
    simulated_load(simulated,
                   "model: {stages: {forward: 1 s, backward: 2 s, recompute: 1 s}}\ncluster: ideal\n"
                   "batch: {micro_batches: %d}\nstrategy: {%s, pipeline: %d}\nmemory: {recompute: %s}\n",
                   micro_batches, schedule, stages, recompute ? "full" : "none");
}

static inline int chunks_of(const struct schedule *strategy)
{
    return strategy->min_chunks > 1 ? strategy->min_chunks : 1;
}

#endif
