#include "scenario/sharers.h"

static const struct list *stage_sharers(const struct scenario *scenario)
{
    const struct strategy *strategy = scenario_strategy(scenario);
    const struct list *sharers = strategy->sharers ? strategy->sharers(scenario->strategy.options) : NULL;

    return sharers && sharers->count ? sharers : NULL;
}

int sharers_resolve(struct scenario *scenario, struct error *err)
{
    struct strategy_spec *spec = &scenario->strategy;
    const struct list *sharers = stage_sharers(scenario);
    long long ranks = 0;

    for (size_t i = 0; sharers && i < sharers->count; i++)
        ranks += ((const int *)sharers->items)[i];
    if (!sharers || ranks == spec->pipeline)
        return 0;
    if (ranks > 65536 || node_get(spec->node, "pipeline"))
        return error_add(err, EXIT_INFEASIBLE, sharers->node->loc,
                         "strategy: stage_replicas: the %zu stages have %lld ranks in all, pipeline is %d; expected "
                         "the same number, at most 65536 (or leave pipeline out)", sharers->count, ranks,
                         spec->pipeline);
    spec->pipeline = (int)ranks;
    return 0;
}

void sharers_place(struct scenario *scenario)
{
    const struct list *sharers = stage_sharers(scenario);
    struct arena *arena = &scenario->arena;
    struct stage_table *table;
    int *first, *zeros, *stage_of, *ones, rank = 0, ranks = scenario->plan.stages;

    if (!sharers)
        return;
    table = ARENA_ARRAY(arena, struct stage_table, 1);
    first = ARENA_ARRAY(arena, int, sharers->count);
    zeros = ARENA_ARRAY(arena, int, ranks);
    stage_of = ARENA_ARRAY(arena, int, ranks);
    ones = ARENA_ARRAY(arena, int, ranks);
    for (int s = 0; s < (int)sharers->count; s++) {
        first[s] = rank;
        for (int i = 0; i < ((const int *)sharers->items)[s]; i++, rank++) {
            stage_of[rank] = s;
            ones[rank] = 1;
        }
    }
    *table = (struct stage_table){
        .stages = (int)sharers->count, .directions = 1, .rank = first, .chunk = zeros, .stage = stage_of,
        .direction = zeros, .chunks = ones, .sharers = sharers->items,
    };
    scenario->plan.placement = PLACEMENT_TABLE;
    scenario->plan.table = table;
}

int sharers_check(const struct scenario *scenario, struct error *err)
{
    const struct plan *plan = &scenario->plan;
    const struct batch *batch = &scenario->batch;

    for (int s = 0; s < plan_global_stages(plan); s++)
        if (plan->micro_batches % plan_sharers(plan, s))
            return error_add(err, EXIT_INFEASIBLE,
                             node_loc(batch->node, node_get(batch->node, "global") ? "global" : "micro_batches"),
                             "batch: %d micro-batches do not divide among the %d ranks of stage %d; expected a "
                             "multiple", plan->micro_batches, plan_sharers(plan, s), s);
    return 0;
}
