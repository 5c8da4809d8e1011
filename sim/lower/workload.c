#include "lower/workload.h"

#include "recompute/stage_plan.h"

/* What schedules whose order depends on times see: the mean stage, and a boundary between neighbouring ranks. */
static void plan_the_times(struct scenario *scenario, const struct stage *stages)
{
    struct plan_times *times = &scenario->plan.times;
    int count = plan_global_stages(&scenario->plan);

    *times = (struct plan_times){0};
    for (int s = 0; s < count; s++) {
        times->forward += stages[s].work[FORWARD].seconds / count;
        times->backward_input += stages[s].work[BACKWARD_INPUT].seconds / count;
        if (scenario->plan.recompute)
            times->backward_input += stages[s].work[RECOMPUTE].seconds / count;
        if (stages[s].plan)
            times->backward_input += stages[s].plan->chain.recompute / count;
        times->backward_weight += stages[s].work[BACKWARD_WEIGHT].seconds / count;
    }
    if (scenario->plan.stages > 1 && !scenario->cluster.ideal) {
        struct route route =
            cluster_route(&scenario->cluster, scenario_gpu(scenario, 0, 0, 0), scenario_gpu(scenario, 0, 0, 1));

        times->communication = route.latency + stages[0].boundary / route.bandwidth;
    }
}

static void count_versions(const struct scenario *scenario, struct stage *stages)
{
    const struct strategy *strategy = scenario_strategy(scenario);
    struct row *rows = strategy->asynchronous ? rows_of(strategy, &scenario->plan) : NULL;

    for (int s = 0; s < plan_global_stages(&scenario->plan); s++)
        stages[s].versions =
            rows ? rows_versions(strategy, &scenario->plan, rows, plan_rank(&scenario->plan, 0, s, 0, NULL)) : 1;
    if (rows)
        rows_release(rows, scenario->plan.stages);
}

int stages_build(struct scenario *scenario, struct stage **stages, struct error *err)
{
    if (stages_cost(scenario, stages, err))
        return -1;
    count_versions(scenario, *stages);
    if (scenario_by_layers(scenario) && stage_plans_build(scenario, *stages, err))
        return -1;
    plan_the_times(scenario, *stages);
    return 0;
}
