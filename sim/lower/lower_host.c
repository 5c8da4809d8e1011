/* What the host does at the end of an iteration: with offload: optimizer it updates (Ren et al. 2021, ZeRO-Offload,
 * sections 4 and 5): gradients go there as they are ready (after their sum over the replicas, a bucket at a time, else
 * a layer), its CPUs update them one after another, and weights come back: three streams. From ZeRO 1 on each replica
 * does so with its share. With offload: weights they leave for the host once they are updated. */
#include "lower/lower_internal.h"
#include "recompute/stage_plan.h"

#include <stdlib.h>

/* Gradients that go to the host together, and after what. */
struct portion { double parameters; struct event ready; };

static double cpu_rate(const struct scenario *scenario)
{
    int gpus = scenario->cluster.gpus_per_node < scenario_gpus(scenario) ? scenario->cluster.gpus_per_node :
                                                                            scenario_gpus(scenario);

    return scenario->cluster.host.update / gpus;
}

/* The copy to the host, the update and the copy back of one unit; returns the last of them. */
static uint32_t update_unit(struct lowering *lowering, int prank, int stage, struct portion portion,
                            struct event tied)
{
    const struct scenario *scenario = lowering->scenario;
    struct parameter_bytes each = scenario_parameter_bytes(scenario);
    bool back = !scenario_offloads(scenario, OFFLOAD_WEIGHTS) || scenario->recipe.weights.when == WEIGHTS_UPDATED;
    struct op like = {.mb = -1, .stage = stage};
    struct waits waits = {0};
    uint32_t id;

    wait_for(&waits, portion.ready);
    wait_for(&waits, tied);
    id = host_copy(lowering, true, portion.parameters * each.gradients, prank, like,
                   event_all(&lowering->arena, waits.items, waits.count));
    free(waits.items);
    like.kind = OP_COMPUTE;
    like.what = WHAT_HOST_UPDATE;
    like.lane = lowering->hosts[prank].cpu;
    like.amount = portion.parameters / cpu_rate(scenario);
    id = program_add(lowering->program, like, &id, 1);
    if (back)
        id = host_copy(lowering, false, portion.parameters * each.weights, prank, (struct op){.mb = -1, .stage = stage},
                       event_of(id));
    return id;
}

uint32_t host_update(struct lowering *lowering, int prank, int chunk)
{
    const struct scenario *scenario = lowering->scenario;
    const struct holder *holder = holder_of(lowering, prank, chunk);
    int index = plan_global_stage(lowering->plan, prank % lowering->plan->stages, chunk);
    const struct stage *stage = &lowering->stages[index];
    const struct buckets *buckets = &lowering->buckets[index];
    int share = scenario->recipe.divided[HELD_STATES][PARAMETERS_COMMON];
    size_t before = holder->sums.count - buckets->count;
    uint32_t id = NO_OP;

    for (size_t b = 0; b < buckets->count; b++) {
        struct portion portion = {buckets->items[b].values / share, holder->sums.items[before + b]};

        id = update_unit(lowering, prank, index, portion, holder->tied);
    }
    for (size_t i = 0; buckets->count == 0 && i < stage->nslices; i++)
        if (stage->slices[i].parameters > 0)
            id = update_unit(lowering, prank, index,
                             (struct portion){stage->slices[i].parameters / share, holder->layers[i]}, holder->tied);
    return id;
}

void host_store_weights(struct lowering *lowering, int prank, uint32_t after)
{
    const struct scenario *scenario = lowering->scenario;
    int rank = prank % lowering->plan->stages, first = plan_global_stage(lowering->plan, rank, 0);
    double bytes = 0;

    if (!scenario_offloads(scenario, OFFLOAD_WEIGHTS) ||
        (scenario_offloads(scenario, OFFLOAD_OPTIMIZER) && scenario->recipe.weights.when != WEIGHTS_UPDATED))
        return;
    for (int chunk = 0; chunk < plan_chunks(lowering->plan, rank); chunk++) {
        const struct stage *stage = &lowering->stages[plan_global_stage(lowering->plan, rank, chunk)];

        bytes += recipe_share(&scenario->recipe, HELD_WEIGHTS, stage->trained) *
                 scenario_parameter_bytes(scenario).weights;
    }
    if (bytes == 0)
        return;
    after = host_copy(lowering, true, bytes, prank, (struct op){.mb = -1, .stage = first}, event_of(after));
    /* the update is over when the host has all weights */
    lower_after(lowering, (struct op){
        .kind = OP_COMPUTE, .what = WHAT_UPDATE, .lane = lowering->compute_lane[prank], .continues = true, .mb = -1,
        .stage = first,
    }, event_of(after));
}
