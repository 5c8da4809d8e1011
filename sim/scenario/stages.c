/* What a scenario says of its stages: the layers of each rank, and stages that several ranks share. */
#include "scenario/scenario_internal.h"

int stages_resolve(struct scenario *scenario, struct error *err)
{
    struct parallelism *spec = &scenario->parallelism;
    const struct stage_spec *stages = spec->stages.items;
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
    if (layers && spec->split.node)
        return error_clash(err, spec->split.node->loc, "strategy: split: 'stages' says the layers of each rank; expected "
                           "either");
    if (spec->stages_on == STAGES_ON_AUTO && stages_say_parts(&spec->stages))
        return error_clash(err, STRATEGY_LOC(scenario, "stages_on"), "strategy: stages_on: auto, but 'stages' says on which "
                           "part each rank is; expected either");
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

/* A slice's works need the keys and values of all slices before it, and of these alone. */
int slices_check(const struct scenario *scenario, struct error *err)
{
    const struct transformer *shape = scenario->model.transformer;
    const struct parallelism *spec = &scenario->parallelism;
    enum recompute mode = (enum recompute)scenario->memory.recompute.mode;
    int slices = plan_slices(&scenario->plan), pieces = slices * (spec->sequence_parallel ? spec->tensor : 1);
    const struct { bool has; const char *what; } others[] = {
        {shape && !shape->causal, "tokens of this model see those after them; expected a model with 'causal: true'"},
        {shape && shape->window > 0, "attention of this model has a window"},
        {scenario->batch.documents > 0, "samples are packed of documents (batch.documents)"},
        {spec->context > 1, "'context' divides the tokens already"},
        {mode != RECOMPUTE_NONE && mode != RECOMPUTE_SELECTIVE, "a recomputed slice would need keys and values of slices "
         "that are recomputed after it; expected 'memory: {recompute: none}' or 'selective'"},
        {scenario_by_layers(scenario), "'offload' goes layer by layer through whole micro-batches"},
        {spec->data_parallel == DATA_PARALLEL_REPLICATED, "'data_parallel: dataparallel' sends whole micro-batches from GPU 0"},
    };
    int rc = 0;

    for (size_t i = 0; slices > 1 && i < COUNT(others); i++)
        if (others[i].has)
            rc = error_clash(err, STRATEGY_LOC(scenario, "slices"), "strategy: slices: %d does not go with the rest: %s",
                             slices, others[i].what);
    if (slices > 1 && shape && shape->sequence % pieces)
        rc = error_infeasible(err, ERROR_BATCH, STRATEGY_LOC(scenario, "slices"), "strategy: slices: the %d tokens of a "
                              "sample do not divide into %d slices%s; expected a divisor", shape->sequence, slices,
                              spec->sequence_parallel ? ", of which sequence_parallel gives each GPU a share" : "");
    return rc;
}
