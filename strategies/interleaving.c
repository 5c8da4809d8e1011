#include "interleaving.h"

int interleaving_turns(const struct plan *plan)
{
    return plan->chunks * plan->micro_batches;
}

struct work interleaving_forward(const struct plan *plan, int group, int k)
{
    if (group > plan->micro_batches)
        group = plan->micro_batches;
    int first = k / (group * plan->chunks) * group, left = plan->micro_batches - first;
    int turn = k - first * plan->chunks, size = group < left ? group : left;

    return (struct work){.kind = FORWARD, .chunk = turn / size, .mb = first + turn % size};
}

struct work interleaving_backward(const struct plan *plan, int group, int k)
{
    struct work work = interleaving_forward(plan, group, k);

    return (struct work){.kind = BACKWARD, .chunk = plan->chunks - 1 - work.chunk, .mb = work.mb};
}

int interleaving_warm_up(const struct plan *plan, int group, int rank, int turns_apart)
{
    int warm = turns_apart * (plan->stages - 1 - rank) + (plan->chunks - 1) * group;

    return warm < interleaving_turns(plan) ? warm : interleaving_turns(plan);
}

/* Rows need not be built where every group is even: then no rank waits for work that comes behind its own. */
static bool deadlocks(const struct schedule *schedule, const struct plan *plan, int group)
{
    struct row *rows;
    bool deadlock;

    if (interleaving_is_even(plan, group))
        return false;
    rows = rows_of(schedule, plan);
    deadlock = rows_deadlock(rows, plan);
    rows_release(rows, plan->stages);
    return deadlock;
}

int interleaving_check(const struct schedule *schedule, const struct plan *plan, int group, struct loc loc,
                       struct error *err)
{
    if (!deadlocks(schedule, plan, group))
        return 0;
    return error_infeasible(
        err, ERROR_SCHEDULE, loc,
        "strategy: %s deadlocks with pipeline %d, chunks %d and %d micro-batches a replica in groups of "
        "%d; try micro-batches, or a micro_batch_group, that are a multiple of %d",
        schedule->name, plan->stages, plan->chunks, plan->micro_batches, group, plan->stages);
}

bool interleaving_is_even(const struct plan *plan, int group)
{
    int left = plan->micro_batches % group;

    return plan->stages == 1 || plan->chunks == 1 || plan->micro_batches <= group ||
           (group >= plan->stages && (left == 0 || left >= plan->stages));
}
