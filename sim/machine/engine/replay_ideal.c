#include "base/progress.h"
#include "engine/dispatcher.h"
#include "engine/replay.h"

#include <math.h>
#include <stdlib.h>

#include "hardware/cluster.h"

/* Seconds of an operation. `ahead`: its last seconds, in which its lane is free already. */
static double duration(const struct program *program, const struct op *op, const struct transfer_cost *costs,
                       double *ahead)
{
    const struct op_transfer *transfer = &op_traits(program, op)->transfer;
    const struct transfer_cost *cost = &costs[op->traits];

    *ahead = 0;
    if (op->kind == OP_COMPUTE)
        return op->amount;
    if (transfer->buffered)
        *ahead = cost->latency;
    return cost->latency + (isinf(cost->bandwidth) ? 0 : flow_bytes(op->amount, transfer) / cost->bandwidth);
}

/* Takes the earliest of the open choices: choices are made in the order of time. The transfers that it depends on end
 * later, because all earlier ends have been settled. */
static uint32_t take_earliest(struct dispatcher_ids *open, const double *start)
{
    size_t earliest = 0;

    BUG_IF(open->count == 0);
    for (size_t i = 1; i < open->count; i++)
        if (start[open->items[i]] < start[open->items[earliest]])
            earliest = i;
    uint32_t id = open->items[earliest];
    open->items[earliest] = open->items[--open->count];
    return id;
}

static void replay_choices(const struct program *program, const struct cluster *cluster, struct timeline *timeline)
{
    struct dispatcher dispatcher = {0};
    struct dispatcher_ids open = {0};
    uint32_t id;
    size_t events = 0;
    double ahead;

    dispatcher_init(&dispatcher, program, cluster, timeline->start, timeline->end);
    while (dispatcher.left) {
        if (++events % PROGRESS_EVENTS == 0 &&
            progress_step(program->progress, "replaying", program->ops.count - dispatcher.left, program->ops.count, 0))
            break;
        if (!dispatcher_take(&dispatcher, &id))
            dispatcher_choose(&dispatcher, take_earliest(&open, timeline->start));
        else if (program->ops.items[id].kind == OP_TRANSFER)
            dispatcher_end(&dispatcher, id, timeline->start[id] +
                                            duration(program, &program->ops.items[id], dispatcher.costs, &ahead));
        else
            *GROW(&open) = id;
    }
    timeline->makespan = dispatcher.latest;
    dispatcher_release(&dispatcher);
    free(open.items);
}

/* Ids are in topological order, and a lane without choices keeps the order of ids. So in one pass the ends of all
 * operations that an operation waits for are known. */
void replay_ideal(const struct program *program, const struct cluster *cluster, struct timeline *timeline)
{
    struct transfer_cost *costs;
    double *lane_free;

    if (program->choices.count) {
        replay_choices(program, cluster, timeline);
        return;
    }
    lane_free = xcalloc(program->lanes.count + 1, sizeof *lane_free);
    costs = transfer_costs(program, cluster);
    timeline->makespan = 0;
    for (size_t i = 0; i < program->ops.count; i++) {
        const struct op *op = &program->ops.items[i];
        struct dep_list deps = program_deps(program, op);
        double start = lane_free[op->lane], ahead;

        if (i % PROGRESS_OPERATIONS == 0 &&
            progress_step(program->progress, "replaying", i, program->ops.count, timeline->makespan))
            break;
        for (size_t d = 0; d < deps.count; d++)
            start = fmax(start, timeline->end[deps.items[d]]);
        timeline->start[i] = start;
        timeline->end[i] = start + duration(program, op, costs, &ahead);
        lane_free[op->lane] = timeline->end[i] - ahead;
        timeline->makespan = timeline->end[i] > timeline->makespan ? timeline->end[i] : timeline->makespan;
    }
    free(lane_free);
    free(costs);
}
