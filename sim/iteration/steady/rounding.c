#include "steady/rounding.h"

#include <math.h>
#include <stdlib.h>

#include "base/progress.h"
#include "engine/jitter.h"
#include "engine/replay.h"

/* Shares by which kernels and times may differ. The first is far above what rounding does to the times of a long
 * program, and far below what they tell apart; the second allows that differences grow by two digits: rounding
 * differences (engine/replay.h, struct resolution) then stay below a part in 10^9. */
static const double DIFFERENCE = 1e-10, MOST_GROWN = 1e-9;

bool timeline_shares_links(const struct timeline *timeline, const struct cluster *cluster)
{
    const struct program *program = timeline->program;
    struct transfer_cost *costs = transfer_costs(program, cluster);
    bool shares = false;

    for (size_t i = 0; i < program->ops.count && !shares; i++) {
        const struct op *op = &program->ops.items[i];
        const struct transfer_cost *cost = &costs[op->traits];

        if (op->kind != OP_TRANSFER || op->amount == 0)
            continue;
        shares = timeline->end[i] - timeline->start[i] >
                 cost->latency + flow_bytes(op->amount, &op_traits(program, op)->transfer) / cost->bandwidth +
                 ROUNDING * timeline->makespan;
    }
    free(costs);
    return shares;
}

/* Whether any end would change by a larger share of the timeline than that. */
static bool moves_far(const struct timeline *timeline)
{
    double most = MOST_GROWN / DIFFERENCE * timeline->makespan;
    size_t count = timeline->program->ops.count, i = 0;

    while (i < count && fabs(timeline->moved[i]) <= most)
        i++;
    return i < count;
}

bool rounding_grows(const struct timeline *timeline, const struct cluster *cluster)
{
    struct program program;
    struct timeline other;
    bool grows;

    if (timeline->moved && !timeline->unclear)
        return moves_far(timeline);
    if (cluster->ideal || !timeline_shares_links(timeline, cluster))
        return false;
    program = program_copy(timeline->program);
    jitter_apply(&program, DIFFERENCE, 1);
    timeline_init(&other, &program);
    replay_fast(&program, cluster, &other);
    grows = !progress_over(program.progress) && timeline_difference(timeline, &other) > MOST_GROWN;
    timeline_release(&other);
    program_release(&program);
    return grows;
}
