#include "plan/bound.h"

#include <math.h>
#include <stdlib.h>

/* Sums over the stages before each virtual stage of the same micro-batch's forwards, and of the shortest that its backwards
 * may be; and the seconds of the works of one rank, by chunk. */
struct sums {
    double *forwards, *backwards;
    double (*works)[WORK_KIND_COUNT];
};

static void sum_stages(const struct workload *workload, struct sums *sums)
{
    int count = plan_virtual_stages(&workload->plan);

    for (int v = 0; v < count; v++) {
        const struct stage_times *on = !workload->scenario->layout.mixed && !workload->scenario->batch.samples ? ordinary_times(workload) :
                                       workload_times(workload, 0, plan_rank(&workload->plan, 0, v, 0, NULL));
        const struct stage_times *times = &on[v];
        double input = times->work[BACKWARD_INPUT].seconds;

        sums->forwards[v + 1] = sums->forwards[v] + times->work[FORWARD].seconds;
        sums->backwards[v + 1] = sums->backwards[v] + (input > 0 ? fmin(times->work[BACKWARD].seconds, input) : 0);
    }
}

static bool is_backward(const struct work *work)
{
    return work->kind == BACKWARD || work->kind == BACKWARD_INPUT;
}

static double rank_bound(const struct workload *workload, int rank, bool flushed, const struct sums *sums)
{
    const struct row *row = &workload->rows[rank];
    const struct stage_times *times = workload_times(workload, 0, rank);
    double before = 0, behind = 0, fill = 0, drain = 0;
    size_t last = row->count ? row->count - 1 : 0;

    for (int chunk = 0; chunk < plan_chunks(&workload->plan, rank); chunk++)
        for (int kind = 0; kind < WORK_KIND_COUNT; kind++)
            sums->works[chunk][kind] = times[plan_virtual_stage(&workload->plan, rank, chunk)].work[kind].seconds;
    while (last > 0 && !is_backward(&row->items[last]))
        last--;
    for (size_t i = 0; i < row->count; i++)
        *(i <= last ? &before : &behind) += sums->works[row->items[i].chunk][row->items[i].kind];
    if (flushed && row->count) {
        fill = sums->forwards[plan_virtual_stage(&workload->plan, rank, row->items[0].chunk)];
        drain = sums->backwards[plan_virtual_stage(&workload->plan, rank, row->items[last].chunk)];
    }
    return fill + before + fmax(behind, drain);
}

double workload_bound(const struct workload *workload)
{
    const struct scenario *scenario = workload->scenario;
    const struct schedule *schedule = scenario_schedule(scenario);
    size_t stages = (size_t)plan_virtual_stages(&workload->plan), ranks = (size_t)workload->plan.stages;
    size_t chunks = 1;
    struct sums sums;
    double most = 0;

    if (scenario->simulation.jitter > 0 || scenario->recipe.rooted || schedule->asynchronous ||
        plan_shares(&workload->plan) || plan_opportunistic(schedule, &workload->plan))
        return 0;
    for (size_t rank = 0; rank < ranks; rank++)
        if (plan_chunks(&workload->plan, (int)rank) > (int)chunks)
            chunks = (size_t)plan_chunks(&workload->plan, (int)rank);
    sums.forwards = xcalloc(stages + 1, sizeof *sums.forwards);
    sums.backwards = xcalloc(stages + 1, sizeof *sums.backwards);
    sums.works = xcalloc(chunks, sizeof *sums.works);
    sum_stages(workload, &sums);
    for (size_t rank = 0; rank < ranks; rank++)
        most = fmax(most, rank_bound(workload, (int)rank, plan_directions(&workload->plan) == 1, &sums));
    free(sums.forwards);
    free(sums.backwards);
    free(sums.works);
    return most;
}
