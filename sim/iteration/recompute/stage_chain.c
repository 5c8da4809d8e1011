#include "recompute/stage_chain.h"

#include <math.h>
#include <stdlib.h>

#include "base/base.h"
#include "collective/collective.h"
#include "collective/placed_group.h"
#include "hardware/cluster.h"
#include "scenario/process_group.h"
#include "scenario/recipe.h"
#include "scenario/scenario.h"
#include "scenario/settled.h"
#include "stage/exchange_cost.h"

/* Seconds of a collective in a group. */
static double estimate(const struct scenario *scenario, const struct collective *collective, const int *gpus, int n,
                       double bytes, int channels)
{
    if (n <= 1 || !(bytes > 0))
        return 0;
    struct placed_group group = placed_group_of(&scenario->cluster, gpus, n);

    return collective_cost(&(struct collective_call){collective, &group, bytes,
                                                     channels ? channels : placed_group_channels(&group)});
}

/* Estimated costs of exchanges, by the formulas of the collectives. */
struct estimates {
    struct pricing pricing;      /* first */
    int gathers, scatters;       /* the replicas among which a backward gathers weights and scatters gradients, layer by
                                  * layer; 1: it does not */
    int *gpus;
};

static struct exchange_cost price_estimated(const struct pricing *pricing, const struct move *move)
{
    const struct estimates *estimates = (const struct estimates *)pricing;
    const struct process_group *group = &pricing->scenario->groups.of[move->kind];
    int n = group_members(group);
    double seconds;

    group_gpus(pricing->scenario, group, 0, 0, pricing->rank, estimates->gpus);
    seconds = estimate(pricing->scenario, move->collective, estimates->gpus, n, move->bytes, move->channels);
    return (struct exchange_cost){
        .seconds = move->step && n > 1 ? seconds / (n - 1) : seconds,
        .spans = !cluster_within_node(&pricing->scenario->cluster, estimates->gpus, n),
    };
}

/* The replicas of the gathers and scatters; leaves the GPUs of their group. */
static void find_replicas(struct estimates *estimates)
{
    const struct scenario *scenario = estimates->pricing.scenario;
    const struct recipe *recipe = &scenario->recipe;

    group_gpus(scenario, &scenario->groups.of[GROUP_DATA], 0, 0, estimates->pricing.rank, estimates->gpus);
    estimates->scatters = recipe->gradients.unit == SUM_LAYERS && !recipe->gradients.once
                              ? recipe->divided[HELD_WEIGHTS][PARAMETERS_COMMON] : 1;
    estimates->gathers = recipe->weights.stay_forward ? 1 : recipe->divided[HELD_WEIGHTS][PARAMETERS_COMMON];
}

/* What the block saves beside its input, of which a part of the first tensors is a view. Blocks alike share the list.
 */
static void list_tensors(struct arena *arena, const struct layer *layer, struct chain_layer *chain)
{
    double input = chain->input, *bytes;

    if (!layer || !layer->saved)
        return;
    chain->tensors = bytes = ARENA_ARRAY(arena, double, layer->nsaved);
    chain->ntensors = layer->nsaved;
    for (size_t i = 0; i < layer->nsaved; i++) {
        double view = fmin(input, layer->saved[i].bytes);

        bytes[i] = layer->saved[i].bytes - view;
        input -= view;
        chain->ncore += layer->saved[i].core;
    }
}

struct chain_layer *stage_chain(struct arena *arena, const struct scenario *scenario, const struct stage *stage,
                                const struct stage_times *times, int rank)
{
    struct chain_layer *layers = ARENA_ARRAY(arena, struct chain_layer, stage->nslices);
    const struct scenario seen = scenario_seen(scenario, rank);
    const struct collective *all_reduce = scenario_all_reduce(scenario);
    struct parameter_bytes each = scenario_parameter_bytes(scenario);
    /* Any group is a part of these: groups of experts may go over tensor groups too. */
    size_t most = (size_t)scenario_most_tensor(scenario) * (size_t)scenario_replicas(scenario);
    struct estimates estimates = {.pricing = {.scenario = &seen, .rank = rank, .price = price_estimated,
                                              .sheet = scenario->cluster.ideal ? NULL :
                                                       cluster_sheet(&scenario->cluster, scenario_gpu(&seen, 0, 0, rank))},
                                  .gpus = xcalloc(most, sizeof *estimates.gpus)};
    double exchanges[EXCHANGES_MAX];

    for (int i = 0; i < stage->exchanges->count; i++)
        exchanges[i] = exchange_cost(&estimates.pricing, &stage->exchanges->items[i], times->hidings).seconds;
    find_replicas(&estimates);
    for (size_t l = 0; l < stage->nslices; l++) {
        const struct slice *slice = stage_layer(stage, l);
        const struct slice_times *own = slice_times(stage, times, slice);
        enum work_kind forward = slice->recompute ? RECOMPUTE : FORWARD;
        double weights = recipe_exchanged(scenario, slice_weights(slice));
        double gradients = recipe_exchanged(scenario, slice->trained);

        layers[l] = (struct chain_layer){
            .forward = own->work[forward]->seconds, .backward = own->work[BACKWARD]->seconds, .input = slice->input,
            .saved = fmax(slice->activation, slice->input), .keep = !slice->recompute,
            .selective = fmax(slice->selective.activation, slice->input), .recompute = own->core ? own->core->seconds : 0,
            .space = {slice->workspace.forward, slice->workspace.backward, slice->selective.workspace.backward},
            .gather = estimate(scenario, collective_half(all_reduce, COLLECTIVE_ALL_GATHER), estimates.gpus,
                               estimates.gathers, weights * each.weights, scenario->parallelism.channels),
            .scatter = estimate(scenario, collective_half(all_reduce, COLLECTIVE_REDUCE_SCATTER), estimates.gpus,
                                estimates.scatters, gradients * each.sent, scenario->parallelism.channels),
        };
        if (scenario_offloads(scenario, OFFLOAD_TENSORS))
            list_tensors(arena, slice->layer, &layers[l]);
        for (int i = 0; i < stage->exchanges->count; i++)
            layers[l].exchange += slice->work[forward]->exchanges[i] * exchanges[i];
    }
    free(estimates.gpus);
    return layers;
}
