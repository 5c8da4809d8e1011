#include "stage/layer_cost.h"

#include <string.h>

#include "base/base.h"
#include "model/model.h"
#include "stage/stage_exchange.h"
#include "stage/stage_kernels.h"

struct work_cost layer_phase(const struct layer_costs *costs, const struct layer *layer, enum phase phase)
{
    enum recompute mode = (enum recompute)costs->scenario->memory.recompute.mode;
    struct work_cost work = {0};

    if (layer->timed)
        work.times.seconds = layer->given[phase] / costs->kernels->speed;
    else
        stage_add_phase(&work, costs->scenario, costs->kernels, layer, phase);
    exchanges_add(costs, &work, layer, phase);
    if (!layer->timed && phase == PHASE_BACKWARD_INPUT && mode == RECOMPUTE_SELECTIVE) {
        stage_add_core(&work, costs->kernels, layer, PHASE_FORWARD);
        exchanges_add_core(costs, &work.counts, layer);
    }
    if (layer_is_block(layer) && phase == PHASE_BACKWARD_INPUT &&
        (mode == RECOMPUTE_OPERATORS || mode == RECOMPUTE_MODULES)) {
        stage_add_recomputed(&work, costs->kernels, layer);
        exchanges_add_recomputed(costs, &work, layer, mode == RECOMPUTE_OPERATORS);
    }
    return work;
}

/* A recomputation that ends when the block's backward has all its inputs. Without the last product it omits the
 * all-reduce of its results. Under sequence parallelism, where the sum is half of an exchange, it omits none. */
static struct work_cost stopped(const struct layer_costs *costs, const struct layer *layer, struct work_cost forward)
{
    struct work_cost needed = {0};

    if (!layer_has_tail(layer))
        return forward;
    stage_add_needed(&needed, costs->kernels, layer);
    exchanges_add(costs, &needed, layer, PHASE_FORWARD);
    forward.times = needed.times;
    forward.counts.flop = needed.counts.flop;
    if (exchanges_end(costs, &forward.counts, layer) && costs->kernels->launch_blocking)
        forward.times.seconds -= costs->kernels->host_launch;
    return forward;
}

static void cost_layer(const struct layer_costs *costs, const struct layer *layer, struct layer_cost *cost)
{
    const struct kernel_costs *kernels = costs->kernels;

    if (!costs->list->count)
        exchange_gather(costs->list, layer->all_reduce_bytes);
    *cost = (struct layer_cost){
        .forward = layer_phase(costs, layer, PHASE_FORWARD),
        .input = layer_phase(costs, layer, PHASE_BACKWARD_INPUT),
        .weight = layer_phase(costs, layer, PHASE_BACKWARD_WEIGHT),
    };
    cost->backward = cost->input;
    work_cost_add(&cost->backward, &cost->weight);
    exchanges_cut(costs, cost, layer);
    cost->recompute = costs->scenario->memory.recompute.early_stop ? stopped(costs, layer, cost->forward) : cost->forward;
    exchanges_overlap(costs, cost, layer);
    if (layer->timed) {
        cost->backward.times.seconds = layer->given_backward / kernels->speed;
        cost->recompute.times.seconds = layer->given_recompute / kernels->speed;
    }
    stage_add_core(&cost->core, kernels, layer, PHASE_FORWARD);
    exchanges_add_core(costs, &cost->core.counts, layer);
    cost->hides = exchange_hiding(costs->list, layer, true);
    for (int phase = PHASE_FORWARD; phase <= PHASE_BACKWARD_INPUT && cost->hides >= 0; phase++)
        cost->hiding.attention[phase] = stage_core_seconds(kernels, layer, (enum phase)phase);
}

/* Layers of one block are copies of it, with the same kernels. */
const struct layer_cost *layer_cost(struct layer_costs *costs, const struct layer *layer)
{
    size_t slot = 0;

    while (slot < LAYERS_KEPT && costs->layers[slot] && memcmp(costs->layers[slot], layer, sizeof *layer))
        slot++;
    if (slot == LAYERS_KEPT || !costs->layers[slot]) {
        slot = costs->count++ % LAYERS_KEPT;
        costs->layers[slot] = layer;
        costs->costs[slot] = ARENA_ARRAY(costs->arena, struct layer_cost, 1);
        cost_layer(costs, layer, costs->costs[slot]);
    }
    return costs->costs[slot];
}
