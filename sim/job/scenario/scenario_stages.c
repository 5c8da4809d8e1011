/* What a scenario says of its stages: the layers and degrees of each rank, and stages that several ranks share. */
#include "scenario/scenario_internal.h"

#include <string.h>

#include "base/base.h"
#include "config/conf.h"
#include "hardware/cluster.h"
#include "layout/layout.h"
#include "layout/stage_spec.h"
#include "scenario/settled.h"
#include "schedule/schedule.h"

int stages_resolve(struct scenario *scenario, struct error *err)
{
    struct parallelism *spec = &scenario->parallelism;
    const struct stage_spec *stages = spec->stages.items;
    const struct node *split = spec->split.node;
    int count = (int)spec->stages.count;
    bool layers = false;

    if (!count)
        return 0;
    for (int p = 0; p < count; p++)
        layers |= stages[p].layers > 0;
    for (int p = 0; p < count && layers; p++)
        if (!stages[p].layers)
            return error_add(err, EXIT_INPUT, stages[p].node->loc, "strategy: stages: rank %d does not say its 'layers', as "
                             "others do; expected them in all stages or in none", p);
    const struct clash clashes[] = {
        {layers && split, split ? split->loc : (struct loc){0},
         "strategy: split: 'stages' says the layers of each rank; expected either", {0}},
        {!(layers && split) && spec->stages_on == STAGES_ON_AUTO && stages_say_parts(&spec->stages),
         STRATEGY_LOC(scenario, "stages_on"), "strategy: stages_on: auto, but 'stages' says on which part each rank is; expected "
         "either", {0}},
    };
    if (clashes_add(err, clashes, COUNT(clashes)))
        return -1;
    if (!node_get(spec->node, "pipeline"))
        spec->pipeline = count;
    if (spec->pipeline != count)
        return error_add(err, EXIT_INFEASIBLE, spec->stages.node->loc, "strategy: stages: %d, but pipeline is %d; expected "
                         "one for each pipeline rank", count, spec->pipeline);
    return 0;
}

/* The layers of a rank are shared evenly by its chunks. */
int stages_split(struct scenario *scenario, struct error *err)
{
    struct parallelism *spec = &scenario->parallelism;
    const struct stage_spec *stages = spec->stages.items;
    const struct plan plan = {.stages = spec->pipeline, .chunks = spec->chunks,
                              .placement = scenario_schedule(scenario)->placement};
    int count = spec->pipeline * spec->chunks, *split;

    if (!spec->stages.count || !stages[0].layers)
        return 0;
    if (plan.placement == PLACEMENT_TABLE)
        return error_clash(err, spec->stages.node->loc, "strategy: stages: %s says itself which rank holds which stage; "
                           "expected 'split' for the layers", scenario_schedule(scenario)->name);
    split = ARENA_ARRAY(&scenario->arena, int, count);
    for (int p = 0; p < spec->pipeline; p++) {
        if (stages[p].layers % spec->chunks)
            return error_add(err, EXIT_INFEASIBLE, stages[p].node->loc, "strategy: stages: layers: %d do not divide among the "
                             "%d chunks of rank %d; expected a multiple", stages[p].layers, spec->chunks, p);
        for (int c = 0; c < spec->chunks; c++)
            split[plan_virtual_stage(&plan, p, c)] = stages[p].layers / spec->chunks;
    }
    spec->split = (struct list){.items = split, .count = (size_t)count, .node = spec->stages.node};
    return 0;
}

/* A degree of strategy that nothing reads, as all stages say their own, is their largest, as in a resolved scenario. */
static int check_unread(const struct scenario *scenario, const char *key, int said, int most, struct error *err)
{
    if (!node_get(scenario->parallelism.node, key) || said == most)
        return 0;
    return error_clash(err, STRATEGY_LOC(scenario, key), "strategy: %s: %d has no effect, as all 'stages' say theirs; expected "
                       "to leave it out, or %d, the largest of them", key, said, most);
}

/* Degrees that a stage leaves out are strategy's. Of equal ones nothing is left but these. */
static int fill_degrees(struct scenario *scenario, struct stage_spec *stages, struct rank_degrees *ranks, struct error *err)
{
    struct parallelism *spec = &scenario->parallelism;
    struct rank_degrees most = {1, 1, 0};
    double gpus = 0;
    int room = scenario->cluster.nodes > 0 ? cluster_gpus(&scenario->cluster) : 1048576;
    bool equal = true, tensors = true, datas = true;

    for (int p = 0; p < spec->pipeline; p++) {
        tensors &= stages[p].tensor > 0;
        datas &= stages[p].data > 0;
    }
    for (int p = 0; p < spec->pipeline; p++) {
        struct stage_spec *stage = &stages[p];

        if (!stage->data && !spec->data)
            return error_add(err, EXIT_INPUT, stage->node->loc, "strategy: stages: rank %d does not say its 'data', and "
                             "strategy does not either; expected it in all stages, or 'data' in strategy", p);
        stage->tensor = stage->tensor ? stage->tensor : spec->tensor;
        stage->data = stage->data ? stage->data : spec->data;
        ranks[p] = (struct rank_degrees){stage->tensor, stage->data, 0};
        most.tensor = stage->tensor > most.tensor ? stage->tensor : most.tensor;
        most.data = stage->data > most.data ? stage->data : most.data;
        gpus += (double)stage->tensor * stage->data;
        equal &= stage->tensor == stages[0].tensor && stage->data == stages[0].data;
    }
    if ((tensors && check_unread(scenario, "tensor", spec->tensor, most.tensor, err)) ||
        (datas && check_unread(scenario, "data", spec->data, most.data, err)))
        return -1;
    spec->tensor = most.tensor;
    spec->data = most.data;
    spec->ranks = equal ? NULL : ranks;
    if (!equal && (gpus > 1048576 || gpus > room))
        return error_infeasible(err, ERROR_GPUS, spec->stages.node->loc, "strategy: stages: they need %.0f GPUs (%s), the cluster "
                                "has %d; expected smaller degrees, fewer stages, or more nodes", gpus, rank_degrees_text(
                                ranks, spec->pipeline, arena_alloc(&scenario->arena, 240), 240), room);
    return 0;
}

int rank_degrees_resolve(struct scenario *scenario, struct error *err)
{
    struct parallelism *spec = &scenario->parallelism;
    struct arena *arena = &scenario->arena;
    size_t count = spec->stages.count;
    struct stage_spec *stages;

    if (!stages_say_degrees(&spec->stages))
        return 0;
    stages = arena_alloc(arena, count * sizeof *stages);         /* other scenarios may share what was parsed */
    memcpy(stages, spec->stages.items, count * sizeof *stages);
    spec->stages.items = stages;
    return fill_degrees(scenario, stages, ARENA_ARRAY(arena, struct rank_degrees, count), err);
}

int rank_samples_check(const struct scenario *scenario, struct error *err)
{
    const struct parallelism *spec = &scenario->parallelism;
    int samples = scenario_step_samples(scenario), rc = 0;

    for (int p = 1; spec->ranks && p < spec->pipeline; p++)
        if (samples % spec->ranks[p].data)
            rc = error_infeasible(err, ERROR_BATCH, ((const struct stage_spec *)spec->stages.items)[p].node->loc, "strategy: "
                                  "stages: the %d replicas of rank %d do not divide the %d samples of a micro-batch (micro %d "
                                  "x data %d of the first rank); expected a divisor, or another micro", spec->ranks[p].data,
                                  p, samples, scenario->batch.micro, spec->ranks[0].data);
    return rc;
}

void rank_views_make(struct scenario *scenario)
{
    const struct parallelism *spec = &scenario->parallelism;
    const struct rank_view **views;

    if (!spec->ranks)
        return;
    views = ARENA_ARRAY(&scenario->arena, const struct rank_view *, spec->pipeline);
    for (int p = 0; p < spec->pipeline; p++) {
        const struct rank_degrees *own = &spec->ranks[p];
        struct rank_view *view;
        struct scenario seen;

        for (int q = 0; q < p && !views[p]; q++)
            views[p] = views[q]->tensor == own->tensor && views[q]->data == own->data ? views[q] : NULL;
        if (views[p])
            continue;
        views[p] = view = ARENA_ARRAY(&scenario->arena, struct rank_view, 1);
        *view = (struct rank_view){.tensor = own->tensor, .data = own->data,
                                   .micro = scenario_step_samples(scenario) / own->data,
                                   .node = ((const struct stage_spec *)spec->stages.items)[p].node};
        seen = scenario_settled(scenario, (struct settled){.view = view});
        process_groups_make(&seen);
        recipe_make(&seen);
        view->groups = seen.groups;
        view->recipe = seen.recipe;
    }
    scenario->views = views;
}

static const struct list *stage_sharers(const struct scenario *scenario)
{
    const struct schedule *schedule = scenario_schedule(scenario);
    const struct list *sharers = schedule->sharers ? schedule->sharers(scenario->parallelism.options) : NULL;

    return sharers && sharers->count ? sharers : NULL;
}

int sharers_resolve(struct scenario *scenario, struct error *err)
{
    struct parallelism *spec = &scenario->parallelism;
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

    for (int s = 0; s < plan_virtual_stages(plan); s++)
        if (plan->micro_batches % plan_sharers(plan, s))
            return error_infeasible(err, ERROR_BATCH,
                                    node_loc(batch->node, node_get(batch->node, "global") ? "global" : "micro_batches"),
                                    "batch: %d micro-batches do not divide among the %d ranks of stage %d; expected a "
                                    "multiple",
                                    plan->micro_batches, plan_sharers(plan, s), s);
    return 0;
}
