/* Degrees, where they place GPUs and what they divide; how groups exchange. */
#include "scenario/scenario_internal.h"

#include <math.h>

#include "base/base.h"
#include "collective/collective.h"
#include "config/conf.h"
#include "hardware/slow_parts.h"
#include "layout/layout.h"
#include "layout/stage_spec.h"
#include "schedule/schedule.h"

int scenario_lay_out(struct scenario *scenario, struct error *err)
{
    const struct parallelism *spec = &scenario->parallelism;
    const struct list *placement = &spec->placement;
    int order[DIMENSION_COUNT] = {[DIMENSION_COUNT - 1] = DIMENSION_CONTEXT};    /* left out where its degree is 1 */

    for (size_t i = 0; i < placement->count; i++)
        order[i] = ((const int *)placement->items)[i];
    layout_make(&scenario->layout, &scenario->cluster,
                (const int[DIMENSION_COUNT]){[DIMENSION_TENSOR] = spec->tensor, [DIMENSION_DATA] = spec->data,
                                             [DIMENSION_PIPELINE] = spec->pipeline, [DIMENSION_CONTEXT] = spec->context},
                order, spec->ranks);
    if (!stages_say_parts(&spec->stages))
        return 0;
    const int *parts = stages_parts(&scenario->arena, &spec->stages, &scenario->cluster, &scenario->layout, err);

    return parts ? stages_place(&scenario->arena, parts, spec->stages.node->loc, &scenario->cluster, &scenario->layout,
                                err) : -1;
}

int degrees_resolve(struct scenario *scenario, struct error *err)
{
    struct parallelism *spec = &scenario->parallelism;
    int replica = spec->tensor * spec->context * spec->pipeline;

    if (!spec->data) {
        cluster_size(&scenario->cluster, replica);
        spec->data = cluster_gpus(&scenario->cluster) / replica;
    }
    return scenario_lay_out(scenario, err) ||
           slow_parts_set(&scenario->arena, &scenario->simulation.stragglers, &scenario->simulation.slow_links,
                          &scenario->cluster, err) ? -1 : 0;
}

/* Where context is left out it varies next after tensor (Megatron-LM's order). */
int placement_resolve(struct scenario *scenario, struct error *err)
{
    struct list *list = &scenario->parallelism.placement;
    int *placement = ARENA_ARRAY(&scenario->arena, int, list->count + 1), seen[DIMENSION_COUNT] = {0};
    bool adds = false, once = true;
    size_t count = 0;

    for (size_t i = 0; i < list->count; i++)
        seen[((const int *)list->items)[i]]++;
    adds = scenario->parallelism.context > 1 && !seen[DIMENSION_CONTEXT];
    for (int i = 0; i < DIMENSION_COUNT; i++)
        once &= seen[i] == 1 || (i == DIMENSION_CONTEXT && seen[i] == 0);
    if (!once)
        return error_add(err, EXIT_INPUT, STRATEGY_LOC(scenario, "placement"),
                         "strategy: placement: expected tensor, data and pipeline, each once, and context at most "
                         "once");
    for (size_t i = 0; i < list->count; i++) {
        placement[count++] = ((const int *)list->items)[i];
        if (adds && placement[count - 1] == DIMENSION_TENSOR)
            placement[count++] = DIMENSION_CONTEXT;
    }
    list->items = placement;
    list->count = count;
    return 0;
}

