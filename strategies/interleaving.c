#include "interleaving.h"

int interleaving_turns(const struct plan *plan)
{
    return plan->chunks * plan->micro_batches;
}

void interleaving_turn(struct row *row, const struct plan *plan, int group, enum work_kind kind, int k)
{
    if (k < 0 || k >= interleaving_turns(plan))
        return;
    if (group > plan->micro_batches)
        group = plan->micro_batches;
    int first = k / (group * plan->chunks) * group, left = plan->micro_batches - first;
    int turn = k - first * plan->chunks, size = group < left ? group : left;
    int chunk = kind == FORWARD ? turn / size : plan->chunks - 1 - turn / size, mb = first + turn % size;

    if (plan->recompute && (kind == BACKWARD || kind == BACKWARD_INPUT))
        recompute(row, chunk, mb);
    *GROW(row) = (struct work){.kind = kind, .chunk = chunk, .mb = mb};
}

int interleaving_in_flight(const struct plan *plan, int forwards)
{
    return forwards < interleaving_turns(plan) ? forwards : interleaving_turns(plan);
}

int interleaving_warm_up(const struct plan *plan, int group, int rank, int turns_apart)
{
    return interleaving_in_flight(plan, turns_apart * (plan->stages - 1 - rank) + (plan->chunks - 1) * group);
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
