#include "stage/layer_cost.h"

#include <string.h>

#include "model/model.h"
#include "stage/stage_exchange.h"
#include "stage/stage_kernels.h"

struct work_cost layer_phase(const struct scenario *scenario, const struct kernel_costs *costs,
                             const struct layer *layer, enum phase phase)
{
    struct work_cost work = {0};

    if (layer->timed)
        work.times.seconds = layer->given[phase] / costs->speed;
    else
        stage_add_phase(&work, scenario, costs, layer, phase);
    exchanges_add(&work, &scenario->parallelism, costs, layer, phase);
    /* A column-parallel product saved its shard of the input only, and its weight gradient needs the whole input
     * (Korthikanti et al. 2022, section 4.2.2): an all-gather overlaps with the backward for the input. */
    if (phase == PHASE_BACKWARD_WEIGHT && scenario->parallelism.sequence_parallel)
        work.counts.hidden_gathers = layer_gathers(layer);
    if (!layer->timed && phase == PHASE_BACKWARD_INPUT && scenario->memory.recompute.mode == RECOMPUTE_SELECTIVE) {
        stage_add_core(&work, costs, layer, PHASE_FORWARD);
        exchanges_add_core(&work.counts, &scenario->parallelism, layer);
    }
    if (layer_is_block(layer) && phase == PHASE_BACKWARD_INPUT) {
        bool operators = scenario->memory.recompute.mode == RECOMPUTE_OPERATORS;

        if (operators || scenario->memory.recompute.mode == RECOMPUTE_MODULES) {
            stage_add_recomputed(&work, costs, layer);
            exchanges_add_recomputed(&work, &scenario->parallelism, costs, layer, operators);
        }
    }
    return work;
}

/* Whether the end that a recomputation leaves out has the block's last product, not the adapter's alone. */
static bool omits_product(const struct layer *layer)
{
    size_t i = 0;

    while (i < layer->noperators && !(layer->operators[i].ends && layer->operators[i].sends[SENT_SUM].forward))
        i++;
    return i < layer->noperators;
}

/* A recomputation that ends when the block's backward has all its inputs. Without the last product it omits the
 * all-reduce of its results. Under sequence parallelism, where the sum is half of an exchange, it omits none. */
static struct work_cost stopped(const struct parallelism *spec, const struct kernel_costs *costs,
                                 const struct layer *layer, struct work_cost forward)
{
    bool sums = spec->tensor > 1 && !spec->sequence_parallel && omits_product(layer);
    struct work_cost needed = {0};

    if (!layer_has_tail(layer))
        return forward;
    stage_add_needed(&needed, costs, layer);
    exchanges_add(&needed, spec, costs, layer, PHASE_FORWARD);
    forward.times = needed.times;
    forward.times.seconds -= sums && costs->launch_blocking ? costs->host_launch : 0;
    forward.counts.flop = needed.counts.flop;
    forward.counts.exchanges[EXCHANGE_TENSOR] -= sums;
    return forward;
}

static void cost_layer(const struct scenario *scenario, const struct kernel_costs *costs, const struct layer *layer,
                       struct layer_cost *cost)
{
    const struct parallelism *spec = &scenario->parallelism;

    *cost = (struct layer_cost){
        .forward = layer_phase(scenario, costs, layer, PHASE_FORWARD),
        .input = layer_phase(scenario, costs, layer, PHASE_BACKWARD_INPUT),
        .weight = layer_phase(scenario, costs, layer, PHASE_BACKWARD_WEIGHT),
    };
    cost->backward = cost->input;
    work_cost_add(&cost->backward, &cost->weight);
    exchanges_cut(&cost->forward.counts, cost->hiding.columns, spec, costs, layer);
    cost->recompute = scenario->memory.recompute.early_stop ? stopped(spec, costs, layer, cost->forward) :
                                                              cost->forward;
    exchanges_overlap(&cost->backward.counts, cost->hiding.columns, spec, costs, layer);
    if (layer->timed) {
        cost->backward.times.seconds = layer->given_backward / costs->speed;
        cost->recompute.times.seconds = layer->given_recompute / costs->speed;
    }
    stage_add_core(&cost->core, costs, layer, PHASE_FORWARD);
    exchanges_add_core(&cost->core.counts, spec, layer);
    for (int phase = PHASE_FORWARD; phase <= PHASE_BACKWARD_INPUT && cost->core.counts.exchanges[EXCHANGE_ATTENTION];
         phase++)
        cost->hiding.attention[phase] = stage_core_seconds(costs, layer, (enum phase)phase);
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
        cost_layer(costs->scenario, costs->kernels, layer, &costs->costs[slot]);
    }
    return &costs->costs[slot];
}
