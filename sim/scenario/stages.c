/* What a scenario says of its stages: the layers of each rank, and stages that several ranks share; what the GPUs of a
 * rank and their hosts have for them. */
#include "scenario/scenario_internal.h"

#include <math.h>

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

/* The least of what the kinds say, whose bits are set. */
static double least_of(const struct cluster *cluster, unsigned kinds, double (*of)(const struct cluster *, int kind))
{
    double least = INFINITY;

    for (int kind = 0; kinds >> kind; kind++) {
        double own = kinds >> kind & 1 ? of(cluster, kind) : INFINITY;

        least = isnan(own) || own < least ? own : least;     /* and NaN stays */
    }
    return least;
}

static double kind_memory(const struct cluster *cluster, int kind)
{
    int gpu = cluster_kind_gpu(cluster, kind);

    return cluster_gpu_name(cluster, gpu) ? cluster_sheet(cluster, gpu)->memory : INFINITY;
}

static double kind_host_bandwidth(const struct cluster *cluster, int kind)
{
    return cluster_host_bandwidth(cluster, cluster_kind_node(cluster, kind));
}

double scenario_room(const struct scenario *scenario, int rank)
{
    if (!isnan(scenario->memory.limit))
        return scenario->memory.limit;
    return least_of(&scenario->cluster, layout_kinds(&scenario->layout, rank), kind_memory);
}

double scenario_least_room(const struct scenario *scenario)
{
    double least = INFINITY;

    for (int rank = 0; rank < (scenario->layout.mixed ? scenario->parallelism.pipeline : 1); rank++)
        least = fmin(least, scenario_room(scenario, rank));
    return least;
}

double scenario_host_bandwidth(const struct scenario *scenario, int rank)
{
    return least_of(&scenario->cluster, layout_kinds(&scenario->layout, rank), kind_host_bandwidth);
}

static double less_host_latency(const struct cluster *cluster, int kind)
{
    return -cluster_host_copy(cluster, cluster_kind_node(cluster, kind), 0);
}

double scenario_host_latency(const struct scenario *scenario, int rank)
{
    return -least_of(&scenario->cluster, layout_kinds(&scenario->layout, rank), less_host_latency);
}
