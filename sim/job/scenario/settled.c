#include "scenario/settled.h"

#include "base/base.h"
#include "config/field.h"
#include "scenario/process_group.h"
#include "scenario/scenario.h"
#include "scenario/scenario_internal.h"

static void see(struct scenario *own, const struct rank_view *view)
{
    own->parallelism.node = view->node;
    own->parallelism.shard = scenario_rank_shard(&own->parallelism, view->data);
    own->parallelism.tensor = view->tensor;
    own->parallelism.data = view->data;
    own->batch.micro = view->micro;
    own->groups = view->groups;
    own->recipe = view->recipe;
    own->views = NULL;
}

struct scenario scenario_settled(const struct scenario *scenario, struct settled settled)
{
    struct scenario own = *scenario;
    struct list *split = &own.parallelism.split, *shares = &own.batch.shares;

    if (settled.layout)
        own.layout = *settled.layout;
    if (settled.samples)
        own.batch.samples = settled.samples;
    if (settled.layout || settled.samples)
        own.uneven = scenario_uneven(&own);
    if (settled.layers)
        own.parallelism.layers = settled.layers;
    if (settled.closed && list_is_auto(split))
        *split = (struct list){0};
    if (settled.closed && list_is_auto(shares))
        *shares = (struct list){0};
    if (settled.planned > 0)
        own.memory.planned = settled.planned;
    if (settled.micro)
        own.batch.micro = settled.micro;
    if (settled.view)
        see(&own, settled.view);
    own.batch.slice = settled.slice;
    own.memory.enforce |= settled.enforced;
    own.cluster.ideal |= settled.free_network;
    return own;
}

struct scenario scenario_seen(const struct scenario *scenario, int p)
{
    return scenario_settled(scenario, (struct settled){.view = scenario->views ? scenario->views[p] : NULL});
}
