#include "plan/bound.h"

#include <math.h>

/* `times`: of all virtual stages on the rank's GPUs. */
static double seconds_of(const struct plan *plan, const struct stage_times *times, int rank, const struct work *work)
{
    return times[plan_virtual_stage(plan, rank, work->chunk)].work[work->kind].seconds;
}

/* The sum over the stages before one of the same micro-batch's forwards, or of the shortest that its backwards may be. */
static double stages_before(const struct workload *workload, int stage, bool forwards)
{
    double sum = 0;

    for (int v = 0; v < stage; v++) {
        const struct stage_times *on = !workload->scenario->layout.mixed ? ordinary_times(workload) :
                                       workload_times(workload, 0, plan_rank(&workload->plan, 0, v, 0, NULL));
        const struct stage_times *times = &on[v];
        double input = times->work[BACKWARD_INPUT].seconds;

        sum += forwards ? times->work[FORWARD].seconds :
               input > 0 ? fmin(times->work[BACKWARD].seconds, input) : 0;
    }
    return sum;
}

static bool is_backward(const struct work *work)
{
    return work->kind == BACKWARD || work->kind == BACKWARD_INPUT;
}

static double rank_bound(const struct workload *workload, int rank, bool flushed)
{
    const struct row *row = &workload->rows[rank];
    const struct stage_times *times = workload_times(workload, 0, rank);
    double before = 0, behind = 0, fill = 0, drain = 0;
    size_t last = 0;

    for (size_t i = 0; i < row->count; i++)
        last = is_backward(&row->items[i]) ? i : last;
    for (size_t i = 0; i < row->count; i++)
        *(i <= last ? &before : &behind) += seconds_of(&workload->plan, times, rank, &row->items[i]);
    if (flushed && row->count) {
        fill = stages_before(workload, plan_virtual_stage(&workload->plan, rank, row->items[0].chunk), true);
        drain = stages_before(workload, plan_virtual_stage(&workload->plan, rank, row->items[last].chunk), false);
    }
    return fill + before + fmax(behind, drain);
}

double workload_bound(const struct workload *workload)
{
    const struct scenario *scenario = workload->scenario;
    const struct schedule *schedule = scenario_schedule(scenario);
    double most = 0;

    if (scenario->simulation.jitter > 0 || scenario->recipe.rooted || schedule->asynchronous ||
        plan_shares(&workload->plan) || plan_opportunistic(schedule, &workload->plan))
        return 0;
    for (int rank = 0; rank < workload->plan.stages; rank++)
        most = fmax(most, rank_bound(workload, rank, plan_directions(&workload->plan) == 1));
    return most;
}
