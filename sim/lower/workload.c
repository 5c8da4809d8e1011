#include "lower/workload.h"

#include <math.h>
#include <string.h>

#include "recompute/stage_plan.h"

/* What schedules see whose order depends on times: the mean stage, and a boundary between neighbouring ranks. All of
 * them split their backwards, and a plan of layers does not go with that: so the times know nothing of such plans,
 * which are made for the rows. */
static void take_times(struct workload *workload)
{
    const struct scenario *scenario = workload->scenario;
    const struct stage *stages = workload->stages;
    struct plan_times *times = &workload->plan.times;
    int count = plan_virtual_stages(&workload->plan);

    for (int s = 0; s < count; s++) {
        times->forward += stages[s].work[FORWARD].seconds / count;
        times->backward_input += stages[s].work[BACKWARD_INPUT].seconds / count;
        if (workload->plan.recompute)
            times->backward_input += stages[s].work[RECOMPUTE].seconds / count;
        times->backward_weight += stages[s].work[BACKWARD_WEIGHT].seconds / count;
    }
    if (workload->plan.stages > 1 && !scenario->cluster.ideal) {
        struct route route =
            cluster_route(&scenario->cluster, scenario_gpu(scenario, 0, 0, 0), scenario_gpu(scenario, 0, 0, 1));

        times->communication = route.latency + stages[0].boundary / route.bandwidth;
    }
}

static void count_versions(struct workload *workload)
{
    const struct schedule *schedule = scenario_schedule(workload->scenario);
    const struct plan *plan = &workload->plan;

    for (int s = 0; s < plan_virtual_stages(plan); s++)
        workload->stages[s].versions =
            rows_versions(schedule, plan, workload->rows, plan_rank(plan, 0, s, 0, NULL));
}

int workload_init(struct workload *workload, const struct scenario *scenario, struct error *err)
{
    *workload = (struct workload){.scenario = scenario, .plan = scenario->plan};
    if (stages_cost(&workload->arena, scenario, &workload->stages, err))
        return -1;
    take_times(workload);
    workload->rows = rows_of(scenario_schedule(scenario), &workload->plan);
    count_versions(workload);
    if (!scenario_by_layers(scenario))
        return 0;
    return stage_plans_build(&workload->arena, scenario, workload->stages, workload->rows, err);
}

/* Seconds of the mean stage for one work of each kind before the update. */
static void mean_works(const struct workload *workload, double *seconds)
{
    int count = plan_virtual_stages(&workload->plan);

    for (int kind = 0; kind < UPDATE; kind++) {
        seconds[kind] = 0;
        for (int s = 0; s < count; s++)
            seconds[kind] += workload->stages[s].work[kind].seconds / count;
    }
}

double workload_ideal_bubble(const struct workload *workload)
{
    const struct schedule *schedule = scenario_schedule(workload->scenario);
    const struct plan *plan = &workload->plan;
    double seconds[UPDATE], busy = 0, whole;
    bool split = false;

    if (!schedule->ideal_makespan || schedule->asynchronous)
        return NAN;
    mean_works(workload, seconds);
    for (int rank = 0; rank < plan->stages; rank++)
        for (size_t i = 0; i < workload->rows[rank].count; i++) {
            enum work_kind kind = workload->rows[rank].items[i].kind;

            split |= kind == BACKWARD_INPUT;
            busy += kind < UPDATE ? seconds[kind] / plan->stages : 0;
        }
    whole = schedule->ideal_makespan(plan, seconds[FORWARD], split ? seconds[BACKWARD_INPUT] + seconds[BACKWARD_WEIGHT]
                                                                   : seconds[BACKWARD], seconds[RECOMPUTE]);
    return whole > 0 ? 1 - busy / whole : NAN;
}

void workload_release(struct workload *workload)
{
    if (workload->rows)
        rows_release(workload->rows, workload->plan.stages);
    arena_release(&workload->arena);
    memset(workload, 0, sizeof *workload);
}
