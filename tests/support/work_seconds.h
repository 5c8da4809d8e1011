/* work_seconds: what rank 0's works of a simulated run are made of. */
#ifndef DTSIM_TEST_WORK_SECONDS_H
#define DTSIM_TEST_WORK_SECONDS_H

#include "simulated.h"

static inline bool on_lane(const struct simulated *simulated, size_t i, enum lane_kind kind)
{
    const struct program *program = &simulated->run.lowered.program;
    const struct lane *lane = &program->lanes.items[program->ops.items[i].lane];

    return lane->rank == 0 && lane->kind == kind;
}

/* Seconds of rank 0's compute lane that are communication, in works of one kind. */
static inline double communication(const struct simulated *simulated, enum op_what what)
{
    const struct program *program = &simulated->run.lowered.program;
    double seconds = 0;

    for (size_t i = 0; i < program->ops.count; i++)
        if (program->ops.items[i].what == what && on_lane(simulated, i, LANE_COMPUTE))
            seconds += op_traits(program, &program->ops.items[i])->compute.communication;
    return seconds;
}

#endif
