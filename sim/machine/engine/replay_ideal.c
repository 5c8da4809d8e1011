#include "base/progress.h"
#include "engine/dispatcher.h"
#include "engine/replay.h"

#include <stdlib.h>

#include "hardware/cluster.h"

/* Takes the earliest of the open choices: choices are made in the order of time. The transfers that it depends on wait
 * for other choices, so they end later. */
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

static void replay_choices(const struct program *program, const struct transfer_cost *costs, struct timeline *timeline)
{
    struct dispatcher dispatcher = {0};
    struct dispatcher_ids open = {0};
    uint32_t id;
    size_t events = 0;

    dispatcher_init(&dispatcher, program, costs, timeline->start, timeline->end);
    while (dispatcher.left) {
        if (++events % PROGRESS_EVENTS == 0 &&
            progress_step(program->progress, "replaying", program->ops.count - dispatcher.left, program->ops.count, 0))
            break;
        if (dispatcher_take(&dispatcher, &id))
            *GROW(&open) = id;
        else
            dispatcher_choose(&dispatcher, take_earliest(&open, timeline->start));
    }
    timeline->makespan = dispatcher.latest;
    dispatcher_release(&dispatcher);
    free(open.items);
}

/* The last seconds of an operation, in which its lane is free already. */
static double lane_ahead(const struct program *program, const struct op *op, const struct transfer_cost *costs)
{
    return op->kind == OP_TRANSFER && op_traits(program, op)->transfer.buffered ? costs[op->traits].latency : 0;
}

/* Ids are in topological order, and a lane without choices keeps the order of ids. So in one pass the ends of all
 * operations that an operation waits for are known. */
void replay_costs(const struct program *program, const struct transfer_cost *costs, struct timeline *timeline)
{
    double *lane_free;

    if (program->choices.count) {
        replay_choices(program, costs, timeline);
        return;
    }
    lane_free = xcalloc(program->lanes.count + 1, sizeof *lane_free);
    timeline->makespan = 0;
    for (size_t i = 0; i < program->ops.count; i++) {
        const struct op *op = &program->ops.items[i];
        struct dep_list deps = program_deps(program, op);
        double start = lane_free[op->lane];

        if (i % PROGRESS_OPERATIONS == 0 &&
            progress_step(program->progress, "replaying", i, program->ops.count, timeline->makespan))
            break;
        for (size_t d = 0; d < deps.count; d++)
            start = timeline->end[deps.items[d]] > start ? timeline->end[deps.items[d]] : start;
        timeline->start[i] = start;
        timeline->end[i] = start + op_seconds(program, op, costs);
        lane_free[op->lane] = timeline->end[i] - lane_ahead(program, op, costs);
        timeline->makespan = timeline->end[i] > timeline->makespan ? timeline->end[i] : timeline->makespan;
    }
    free(lane_free);
}

void replay_ideal(const struct program *program, const struct cluster *cluster, struct timeline *timeline)
{
    struct transfer_cost *costs = transfer_costs(program, cluster);

    replay_costs(program, costs, timeline);
    free(costs);
}
