/* What works of a class of GPUs cost: on each rank by its degrees, and of each slice of a micro-batch's tokens, of which a later
 * one attends to more keys. */
#include "workload/workload.h"

#include <string.h>

#include "base/base.h"
#include "kernels/cost.h"
#include "scenario/scenario.h"
#include "scenario/settled.h"
#include "schedule/schedule.h"
#include "stage/stage.h"

static void scale(struct work_times *times, double by)
{
    double *const all[] = {&times->seconds, &times->starved, &times->dispatching.shared, &times->dispatching.before,
                           &times->dispatching.others, &times->extrapolated};

    for (size_t i = 0; i < COUNT(all); i++)
        *all[i] *= by;
    cost_bases_scale(&times->bases, by);
}

/* The mean of all slices' works of a kind on stage s, or on one of its layers (-1: the whole stage). */
static struct work_times mean_times(const struct token_slice *slices, int n, int s, int layer, int kind)
{
    struct work_times mean = {0};

    for (int i = 0; i < n; i++) {
        const struct stage_times *own = &slices[i].times[s];

        work_times_add(&mean, layer < 0 ? &own->work[kind] : own->slices[layer].work[kind]);
    }
    scale(&mean, 1.0 / n);
    return mean;
}

/* Works of stage s, and what they keep, in the mean of all slices. Slices of as many tokens exchange as much. */
static void average_stage(struct arena *arena, const struct token_slice *slices, int n, int s, struct stage *stage,
                          struct stage_times *times)
{
    int layers = (int)stage->nslices;

    for (int kind = 0; kind < WORK_KIND_COUNT; kind++) {
        struct work_times *means = ARENA_ARRAY(arena, struct work_times, layers);
        struct work_counts *counts = ARENA_ARRAY(arena, struct work_counts, layers);

        times->work[kind] = mean_times(slices, n, s, -1, kind);
        for (int l = 0; l < layers; l++) {
            means[l] = mean_times(slices, n, s, l, kind);
            counts[l] = *stage->slices[l].work[kind];
            for (int i = 1; i < n; i++)
                counts[l].flop += (slices[i].stages[s].slices[l].work[kind]->flop - counts[l].flop) * (1.0 / (i + 1));
            times->slices[l].work[kind] = &means[l];
            stage->slices[l].work[kind] = &counts[l];
        }
    }
    for (int i = 1; i < n; i++) {
        const struct stage *own = &slices[i].stages[s];
        double part = 1.0 / (i + 1);             /* a running mean: equal numbers give their very value */

        stage->activation += (own->activation - stage->activation) * part;
        for (int kind = 0; kind < WORK_KIND_COUNT; kind++)
            stage->work[kind].flop += (own->work[kind].flop - stage->work[kind].flop) * part;
    }
}

/* Copies of the first slice's, whose layers are their own. */
static void copy_first(struct arena *arena, const struct token_slice *first, int count, struct gpu_class *class)
{
    class->stages = ARENA_ARRAY(arena, struct stage, count);
    class->times = ARENA_ARRAY(arena, struct stage_times, count);
    for (int s = 0; s < count; s++) {
        size_t layers = first->stages[s].nslices;

        class->stages[s] = first->stages[s];
        class->times[s] = first->times[s];
        class->stages[s].slices = ARENA_ARRAY(arena, struct slice, (int)layers);
        class->times[s].slices = ARENA_ARRAY(arena, struct slice_times, (int)layers);
        memcpy(class->stages[s].slices, first->stages[s].slices, layers * sizeof(struct slice));
        memcpy(class->times[s].slices, first->times[s].slices, layers * sizeof(struct slice_times));
    }
}

/* The stages of a scenario and their times; where ranks have unequal degrees, each stage has its rank's. All have the
 * layers of the first rank's stages. */
static int cost_stages(struct arena *arena, const struct scenario *scenario, struct settled settled,
                       const struct kernel_costs *kernels, struct stage **stages, struct stage_times **times, struct error *err)
{
    const struct plan *plan = &scenario->plan;
    int count = plan_virtual_stages(plan), *layers = ARENA_ARRAY(arena, int, count);
    bool *done = ARENA_ARRAY(arena, bool, count);
    struct scenario seen = scenario_settled(scenario, settled);

    if (!scenario->views)
        return stages_cost(arena, &seen, kernels, stages, times, err);
    *stages = ARENA_ARRAY(arena, struct stage, count);
    *times = ARENA_ARRAY(arena, struct stage_times, count);
    for (int first = 0; first < count; first++) {
        int rank = plan_rank(plan, 0, first, 0, NULL);
        struct stage *own;
        struct stage_times *own_times;

        if (done[first])
            continue;
        settled.view = scenario->views[rank];
        seen = scenario_settled(scenario, settled);
        if (stages_cost(arena, &seen, kernels, &own, &own_times, err))
            return -1;
        settled.layers = layers;
        for (int s = first; s < count; s++)
            if (scenario->views[plan_rank(plan, 0, s, 0, NULL)] == scenario->views[rank]) {
                (*stages)[s] = own[s];
                (*times)[s] = own_times[s];
                done[s] = true;
            }
        for (int s = 0; first == 0 && s < count; s++)
            layers[s] = own[s].layers;
    }
    return 0;
}

int class_cost(struct arena *arena, const struct scenario *scenario, const int *layers, const struct kernel_costs *kernels,
               struct gpu_class *class, struct error *err)
{
    int n = plan_slices(&scenario->plan), count = plan_virtual_stages(&scenario->plan);
    int *found = ARENA_ARRAY(arena, int, count);
    struct settled settled = {.layers = layers, .micro = class->samples};

    if (n == 1)
        return cost_stages(arena, scenario, settled, kernels, &class->stages, &class->times, err);
    class->slices = ARENA_ARRAY(arena, struct token_slice, n);
    for (settled.slice = 0; settled.slice < n; settled.slice++) {
        struct token_slice *slice = &class->slices[settled.slice];

        if (cost_stages(arena, scenario, settled, kernels, &slice->stages, &slice->times, err))
            return -1;
        for (int s = 0; s < count; s++)      /* all slices go through the same stages */
            found[s] = class->slices[0].stages[s].layers;
        settled.layers = found;
    }
    copy_first(arena, &class->slices[0], count, class);
    for (int s = 0; s < count; s++)
        average_stage(arena, class->slices, n, s, &class->stages[s], &class->times[s]);
    return 0;
}
