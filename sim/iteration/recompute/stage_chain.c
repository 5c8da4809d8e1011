#include "recompute/stage_chain.h"

#include <math.h>
#include <stdlib.h>

#include "base/base.h"
#include "collective/collective.h"
#include "collective/placed_group.h"
#include "scenario/process_group.h"
#include "scenario/recipe.h"
#include "scenario/scenario.h"
#include "stage/stage.h"

/* Seconds of a collective in a group. */
static double estimate(const struct scenario *scenario, const struct collective *collective, const int *gpus, int n,
                       double bytes)
{
    int given = scenario->parallelism.channels;

    if (n <= 1 || !(bytes > 0))
        return 0;
    struct placed_group group = placed_group_of(&scenario->cluster, gpus, n);

    return collective_cost(&(struct collective_call){collective, &group, bytes,
                                                     given ? given : placed_group_channels(&group)});
}

/* Estimated costs of exchanges. */
struct estimates {
    double exchange[EXCHANGE_COUNT];     /* s of one exchange of each kind; of EXCHANGE_ATTENTION before kernels hide it */
    double hidden;               /* share of a layer's attention that hides its EXCHANGE_ATTENTION */
    int gathers, scatters;       /* the replicas among which a backward gathers weights and scatters gradients, layer by
                                  * layer; 1: it does not */
    int *gpus;
};

static void estimate_tensor(const struct scenario *scenario, const struct stage *stage, int rank,
                            struct estimates *estimates)
{
    static const enum exchange kinds[] = {EXCHANGE_TENSOR, EXCHANGE_ROWS};
    const struct parallelism *spec = &scenario->parallelism;
    int *gpus = estimates->gpus;

    group_gpus(scenario, &scenario->groups.of[GROUP_TENSOR], 0, 0, rank, gpus);
    for (size_t i = 0; i < COUNT(kinds); i++) {
        double bytes = stage->bytes[kinds[i]];

        if (spec->sequence_parallel)
            estimates->exchange[kinds[i]] =
                estimate(scenario, collective_usual(COLLECTIVE_ALL_GATHER, false), gpus, spec->tensor, bytes) +
                estimate(scenario, collective_usual(COLLECTIVE_REDUCE_SCATTER, false), gpus, spec->tensor, bytes);
        else
            estimates->exchange[kinds[i]] =
                estimate(scenario, scenario_all_reduce(scenario), gpus, spec->tensor, bytes);
    }
    if (stage->bytes[EXCHANGE_QKV] > 0)
        estimates->exchange[EXCHANGE_QKV] = estimate(scenario, collective_usual(COLLECTIVE_ALL_GATHER, false), gpus,
                                                     spec->tensor, stage->bytes[EXCHANGE_QKV]);
}

/* Exchanges among neighbouring replicas: tokens that are dispatched, and keys and values, which overlap with the
 * kernels of attention. */
static void estimate_replicas(const struct scenario *scenario, const struct stage *stage, int rank,
                              struct estimates *estimates)
{
    const struct parallelism *spec = &scenario->parallelism;
    enum group_kind keys = spec->context_attention == CONTEXT_HYBRID ? GROUP_RING : GROUP_CONTEXT;
    int n = scenario->groups.of[keys].size, heads = scenario_ulysses(spec);
    double bytes = stage->bytes[EXCHANGE_ATTENTION] * n;
    const struct process_group *experts = &scenario->groups.of[exchange_groups[EXCHANGE_DISPATCH]];
    const struct recipe *recipe = &scenario->recipe;
    int *gpus = estimates->gpus;

    group_gpus(scenario, experts, 0, 0, rank, gpus);
    estimates->exchange[EXCHANGE_DISPATCH] =
        estimate(scenario, collective_usual(spec->dispatcher == DISPATCHER_ALLGATHER ? COLLECTIVE_ALL_GATHER :
                                                                                       COLLECTIVE_ALL_TO_ALL, false),
                 gpus, group_members(experts), stage->bytes[EXCHANGE_DISPATCH]);
    group_gpus(scenario, &scenario->groups.of[keys], 0, 0, rank, gpus);
    estimates->exchange[EXCHANGE_ATTENTION] =
        estimate(scenario, collective_usual(COLLECTIVE_ALL_GATHER, false), gpus, n, bytes);
    estimates->hidden = spec->context_attention == CONTEXT_ALL_GATHER ? 0 : (n - 1.0) / n;
    group_gpus(scenario, &scenario->groups.of[GROUP_DATA], 0, 0, rank, gpus);
    estimates->exchange[EXCHANGE_HEADS] =
        2 * estimate(scenario, collective_usual(COLLECTIVE_ALL_TO_ALL, false), gpus, heads,
                     stage->bytes[EXCHANGE_HEADS] / 2) +
        2 * estimate(scenario, collective_usual(COLLECTIVE_ALL_TO_ALL, false), gpus, heads,
                     stage->bytes[EXCHANGE_ATTENTION] / 2);
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
    size_t most = (size_t)scenario->parallelism.tensor * (size_t)scenario_replicas(scenario);
    struct estimates estimates = {.gpus = xcalloc(most, sizeof *estimates.gpus)};

    estimate_tensor(&seen, stage, rank, &estimates);
    estimate_replicas(&seen, stage, rank, &estimates);
    for (size_t l = 0; l < stage->nslices; l++) {
        const struct slice *slice = stage_layer(stage, l);
        const struct slice_times *own = slice_times(stage, times, slice);
        enum work_kind forward = slice->recompute ? RECOMPUTE : FORWARD;
        double weights = recipe_exchanged(scenario, slice_weights(slice));
        double gradients = recipe_exchanged(scenario, slice->trained);

        layers[l] = (struct chain_layer){
            .forward = own->work[forward].seconds, .backward = own->work[BACKWARD].seconds, .input = slice->input,
            .saved = fmax(slice->activation, slice->input), .keep = !slice->recompute,
            .selective = fmax(slice->selective.activation, slice->input), .recompute = own->core.seconds,
            .space = {slice->workspace.forward, slice->workspace.backward, slice->selective.workspace.backward},
            .gather = estimate(scenario, collective_half(all_reduce, COLLECTIVE_ALL_GATHER), estimates.gpus,
                               estimates.gathers, weights * each.weights),
            .scatter = estimate(scenario, collective_half(all_reduce, COLLECTIVE_REDUCE_SCATTER), estimates.gpus,
                                estimates.scatters, gradients * each.sent),
        };
        if (scenario_offloads(scenario, OFFLOAD_TENSORS))
            list_tensors(arena, slice->layer, &layers[l]);
        for (int i = 0; i < EXCHANGE_COUNT; i++) {
            double attention = i == EXCHANGE_ATTENTION ? times->hidings[slice->hiding].attention[0] : 0;

            layers[l].exchange += slice->work[forward].exchanges[i] *
                                  fmax(0, estimates.exchange[i] - attention * estimates.hidden);
        }
    }
    free(estimates.gpus);
    return layers;
}
