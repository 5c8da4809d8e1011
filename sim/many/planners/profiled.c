#include "planners/profiled.h"

#include <math.h>

#include "base/base.h"
#include "config/conf.h"
#include "hardware/cluster.h"
#include "model/model.h"
#include "run/attempt.h"
#include "scenario/scenario.h"
#include "stage/exchange_cost.h"
#include "stage/memory.h"
#include "workload/workload.h"

/* The profile that planners have of exchanges: a member sends, and receives, all but its own part of each half of a sum, at
 * the bandwidth of its tensor group. */
struct profiling { struct pricing pricing; const struct profiled *profiled; int tensor; };

static struct exchange_cost price_profiled(const struct pricing *pricing, const struct move *move)
{
    const struct profiling *profiling = (const struct profiling *)pricing;
    int n = move->kind == GROUP_TENSOR ? profiling->tensor : 1, halves = 1 + (move->collective->op == COLLECTIVE_ALL_REDUCE);

    return (struct exchange_cost){
        .seconds = n > 1 ? halves * move->bytes * (n - 1) / n / profiled_bandwidth(profiling->profiled, n) : 0};
}

/* s of a work, with what the tensor group exchanges in it. */
static double work_seconds(const struct profiling *profiling, const struct stage *stage, const struct stage_times *times,
                           const struct slice *slice, enum work_kind kind)
{
    double seconds = slice_times(stage, times, slice)->work[kind]->seconds;

    for (int i = 0; i < stage->exchanges->count; i++)
        if (slice->work[kind]->exchanges[i] && stage->exchanges->items[i].by != HIDDEN_BY_WORK)
            seconds += slice->work[kind]->exchanges[i] *
                       exchange_cost(&profiling->pricing, &stage->exchanges->items[i], times->hidings).seconds;
    return seconds;
}

static void read_layers(struct profiled *profiled, const struct workload *workload, int tensor)
{
    const struct stage *stage = &workload->stages[0];
    const struct stage_times *times = ordinary_times(workload);
    struct memory states = memory_states(workload->scenario, workload->stages, 0);
    struct parameter_bytes bytes = scenario_parameter_bytes(workload->scenario);
    double all = stage->parameters + stage->frozen, held = memory_total(&states) - states.bytes[MEMORY_CONTEXT];
    struct profiling profiling = {{.scenario = workload->scenario, .price = price_profiled}, profiled, tensor};
    size_t k = profiled->ntensors++;

    profiled->tensors[k] = tensor;
    profiled->count = stage->nslices;
    profiled->layers[k] = ARENA_ARRAY(&profiled->arena, struct profiled_layer, stage->nslices);
    profiled->blocks = 0;
    profiled->memory = memory_limit(workload->scenario) * (1 - memory_fragmentation(workload->scenario)) -
                       states.bytes[MEMORY_CONTEXT];
    for (size_t i = 0; i < stage->nslices; i++) {
        const struct slice *slice = &stage->slices[stage->nslices - 1 - i];

        profiled->layers[k][i] = (struct profiled_layer){
            work_seconds(&profiling, stage, times, slice, FORWARD),
            work_seconds(&profiling, stage, times, slice, BACKWARD),
            slice->parameters * bytes.sent,
            all > 0 ? held * (slice->parameters + slice->frozen) / all : 0,
            slice->activation,
            slice->input,
            slice->block,
        };
        profiled->blocks += slice->block;
    }
}

/* The whole model in one stage on one replica. 1: these degrees cannot be. */
static int read_degree(struct profiled *profiled, int tensor, struct error *err)
{
    const char *const sets[] = {
        "strategy.pipeline=1",
        "strategy.data=1",
        "strategy.schedule=1f1b",
        "memory.recompute=none",
        arena_printf(&profiled->arena, "strategy.tensor=%d", tensor),
        arena_printf(&profiled->arena, "batch={global: %d, micro: %d}", profiled->micro, profiled->micro),
    };
    struct attempt attempt = {.of = profiled->scenario};
    enum attempted came;
    int rc = 0;

    for (size_t i = 0; i < COUNT(sets); i++)
        attempt_set(&attempt, "%s", sets[i]);
    came = attempt_build(&attempt);
    if (!came)
        read_layers(profiled, &attempt.workload, tensor);
    else if (profiled->ntensors && error_exit_code(&attempt.found) == EXIT_INFEASIBLE)
        rc = 1;
    else
        rc = (error_copy(&attempt.found, err), -1);
    return attempt_end(&attempt, err) ? -1 : rc;
}

int profiled_read(const struct scenario *scenario, int micro, struct profiled *profiled, struct error *err)
{
    const struct cluster *cluster = &scenario->cluster;
    int rc = 0;

    if (scenario->layout.mixed)
        return error_clash(err, node_loc(scenario->node, "cluster"), "the planners of papers know nodes of one kind; this "
                           "cluster's are of several");
    *profiled = (struct profiled){
        .scenario = scenario,
        .micro = micro,
        .gpus = cluster_gpus(cluster),
        .per_node = cluster_node_gpus(cluster, 0),
    };
    profiled->arena.cache = scenario->arena.cache;
    profiled->inside = cluster->ideal ? INFINITY : cluster_node_bandwidth(cluster, 0, LINK_PORT_UP);
    profiled->between = cluster->ideal ? INFINITY :
                                         cluster_node_bandwidth(cluster, 0, LINK_NIC_UP) *
                                             fmin(1, (double)cluster_node_nics(cluster, 0) / profiled->per_node);
    if (node_get(scenario->parallelism.node, "tensor"))
        return read_degree(profiled, scenario_most_tensor(scenario), err);
    for (int tensor = 1; !rc && tensor <= profiled->per_node && profiled->ntensors < PIPER_TENSORS; tensor *= 2)
        rc = read_degree(profiled, tensor, err);
    return rc < 0 ? -1 : 0;
}

void profiled_release(struct profiled *profiled)
{
    arena_release(&profiled->arena);
}

bool profiled_divides(const struct profiled *profiled, int data)
{
    return data == 1 || (model_has_samples(&profiled->scenario->model) && profiled->micro % data == 0);
}

double profiled_bandwidth(const struct profiled *profiled, int gpus)
{
    return gpus <= profiled->per_node ? profiled->inside : profiled->between;
}

double profiled_output(const struct profiled *profiled, size_t k, size_t layer)
{
    return layer + 1 < profiled->count ? profiled->layers[k][layer + 1].input : 0;
}
