#include "replay.h"

#include <math.h>
#include <stdlib.h>

/* Seconds until it ends; those of them in which its lane may go on already, to `ahead`. */
static double duration(const struct op *op, const struct cluster *cluster, double *ahead)
{
    *ahead = 0;
    if (op->kind == OP_COMPUTE)
        return op->amount;
    struct route route = cluster_route(cluster, (int)op->src, (int)op->dst);
    double latency = route.latency + op->delay;

    if (op->buffered)
        *ahead = latency;
    return latency + (isinf(route.bandwidth) ? 0 : op_wire(op) / route.bandwidth);
}

/* Ids are in topological order and a lane keeps the order of ids, so one pass knows all that an operation waits for. */
void replay_ideal(const struct program *program, const struct cluster *cluster, struct timeline *timeline)
{
    double *lane_free = xcalloc(program->lanes.count + 1, sizeof *lane_free);

    timeline->makespan = 0;
    for (size_t i = 0; i < program->ops.count; i++) {
        const struct op *op = &program->ops.items[i];
        double start = lane_free[op->lane], ahead;

        for (uint32_t d = 0; d < op->ndeps; d++)
            start = fmax(start, timeline->end[program->deps.items[op->first_dep + d]]);
        timeline->start[i] = start;
        timeline->end[i] = start + duration(op, cluster, &ahead);
        lane_free[op->lane] = timeline->end[i] - ahead;
        timeline->makespan = fmax(timeline->makespan, timeline->end[i]);
    }
    free(lane_free);
}
