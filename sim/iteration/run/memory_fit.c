/* Whether a workload fits into the memory of its GPUs. */
#include "run/memory_fit.h"

#include <math.h>
#include <stdlib.h>

#include "auto/auto.h"
#include "base/base.h"
#include "config/conf.h"
#include "recompute/rank_plan.h"
#include "run/energy.h"
#include "scenario/scenario.h"
#include "schedule/schedule.h"
#include "stage/memory.h"
#include "workload/workload.h"

const struct simulate_options memory_needs = {.memory = true};

/* Whether the rows of one replica do not tell: activations are copied to the host, ranks choose at run time, or GPU 0
 * gathers the results of all replicas. */
static bool depends_on_times(const struct scenario *scenario)
{
    return scenario_by_layers(scenario) || scenario->recipe.weights.when == WEIGHTS_FORWARD ||
           plan_opportunistic(scenario_schedule(scenario), &scenario->plan);
}

struct simulate_options memory_options_of(const struct scenario *scenario)
{
    return depends_on_times(scenario) ? simulate_numbers_of(scenario) : memory_needs;
}

/* Activations in flight on a rank: B; of the replica with the largest micro-batches. */
static double in_flight(const struct workload *workload, int rank)
{
    const struct plan *plan = &workload->plan;
    double bytes = 0;

    for (int c = 0; c < plan_chunks(plan, rank); c++) {
        int s = plan_virtual_stage(plan, rank, c);
        double most = 0;

        for (size_t i = 0; i < workload->nclasses; i++) {
            const struct stage *stage = &workload->classes[i].stages[s];

            most = fmax(most, plan->recompute ? stage->checkpoint : stage->activation);
        }
        bytes += row_in_flight(&workload->rows[rank], c) * most;
    }
    return bytes;
}

/* Looks at the memory that ranks hold all the time, which saves many simulations. With `flying` the activations in flight
 * count too. */
static bool states_fit(const struct workload *workload, bool flying)
{
    for (int r = 0; r < workload->plan.stages; r++) {
        double limit = memory_limit_of(workload->scenario, r);
        struct memory states;

        if (isinf(limit))
            continue;
        states = memory_states(workload->scenario, workload->stages, r);
        if (memory_total(&states) + (flying ? in_flight(workload, r) : 0) > limit)
            return false;
    }
    return true;
}

bool memory_is_short(const struct workload *workload)
{
    return !depends_on_times(workload->scenario) && !states_fit(workload, false);
}

/* The least of what one of a rank's chunks keeps for a backward, B. A row may recompute some micro-batches and keep all
 * of others. */
static double least_kept(const struct workload *workload, const struct row_counts *counts, int rank)
{
    const struct plan *plan = &workload->plan;
    const struct stage *stages = workload_class(workload, 0, rank)->stages;
    double least = INFINITY;

    for (int c = 0; c < plan_chunks(plan, rank); c++) {
        const struct stage *stage = &stages[plan_virtual_stage(plan, rank, c)];
        int recompute = c * WORK_KIND_COUNT + (int)RECOMPUTE;
        bool recomputes = counts->before[recompute] + counts->behind[recompute] > 0;

        least = fmin(least, recomputes ? fmin(stage->checkpoint, stage->activation) : stage->activation);
    }
    return least;
}

double memory_surely_lacks(const struct workload *workload, const struct row_counts *counts)
{
    double most = -INFINITY;

    if (depends_on_times(workload->scenario))
        return most;
    for (int r = 0; r < workload->plan.stages; r++) {
        struct memory states = memory_states(workload->scenario, workload->stages, r);
        double kept = counts && counts[r].count ? counts[r].flying * least_kept(workload, &counts[r], r) : 0;

        most = fmax(most, memory_total(&states) + kept - memory_limit_of(workload->scenario, r));
    }
    return most;
}

double memory_states_lack(const struct workload *workload)
{
    double most = -INFINITY;

    for (int r = 0; r < workload->plan.stages && !depends_on_times(workload->scenario); r++) {
        struct memory states = memory_states(workload->scenario, workload->stages, r);
        double held = states.bytes[MEMORY_PARAMETERS] + states.bytes[MEMORY_GRADIENTS] + states.bytes[MEMORY_OPTIMIZER];

        most = fmax(most, held - memory_limit_of(workload->scenario, r));
    }
    return most;
}

bool memory_seems_to_fit(const struct workload *workload)
{
    return states_fit(workload, true);
}

double memory_lack(const struct run *run)
{
    const struct scenario *scenario = run->workload->scenario;

    return run->metrics.peak_memory - memory_limit_of(scenario, run->metrics.peak_rank % scenario->plan.stages);
}

/* The kinds that hold most, largest first, as far as they make up nine tenths. */
static const char *largest_parts(struct arena *arena, const struct memory *memory)
{
    struct memory left = *memory;
    double total = memory_total(memory), named = 0;
    const char *text = "";

    while (named < 0.9 * total) {
        int most = 0;
        char bytes[48];

        for (int kind = 1; kind < MEMORY_KIND_COUNT; kind++)
            most = left.bytes[kind] > left.bytes[most] ? kind : most;
        text = arena_printf(arena, "%s%s%s %s", text, named > 0 ? ", " : "", memory_kind_title((enum memory_kind)most),
                            unit_format_short(UNIT_BYTES, left.bytes[most], bytes, sizeof bytes));
        named += left.bytes[most];
        left.bytes[most] = 0;
    }
    return text;
}

char *memory_shortage(const struct run *run, char *buffer, size_t size)
{
    const struct scenario *scenario = run->workload->scenario;
    char need[48], have[48];

    snprintf(buffer, size, "memory: a GPU of rank %d needs %s and has %s",
             run->metrics.peak_rank % scenario->plan.stages,
             unit_format_short(UNIT_BYTES, run->metrics.peak_memory, need, sizeof need),
             unit_format_short(UNIT_BYTES, run->metrics.peak_room, have, sizeof have));
    return buffer;
}

/* Says how many GPUs the job has, and how long a sample is: nobody may have said the length that activations follow. */
static const char *sizes_text(struct arena *arena, const struct scenario *scenario)
{
    const struct model *model = &scenario->model;
    int gpus = scenario_gpus(scenario), nodes = energy_nodes(scenario);
    const char *text = arena_printf(arena, "; on %d GPU%s of %d node%s", gpus, gpus == 1 ? "" : "s", nodes, nodes == 1 ? "" : "s");
    bool said = node_at(scenario->node, "model.sequence") || node_at(scenario->node, "model.with.sequence") ||
                node_at(scenario->node, "model.transformer.sequence");

    return !model->transformer ? text :
           arena_printf(arena, "%s, samples of %d tokens%s", text, model->sequence, model->longest ?
                        ", as many as config.json allows, as nobody says 'sequence'" : said ? "" : ", as its model's file says");
}

int memory_refuse(const struct run *run, const char *advice, struct error *err)
{
    const struct scenario *scenario = run->workload->scenario;
    const struct metrics *metrics = &run->metrics;
    double lack = memory_lack(run);
    struct arena arena = {0};
    char shortage[160], over[48], fits[64] = "";

    if (lack <= 0)
        return 0;
    if (metrics->fits >= 0.005)
        snprintf(fits, sizeof fits, "; it fits all the same with a probability of %.0f %%", 100 * metrics->fits);
    error_infeasible(
        err, ERROR_MEMORY, scenario->memory.node ? scenario->memory.node->loc : scenario->node->loc,
        "%s, %s too little (%s)%s%s; %s%s'enforce: false' simulates it anyway",
        memory_shortage(run, shortage, sizeof shortage),
        unit_format_short(UNIT_BYTES, lack, over, sizeof over),
        largest_parts(&arena, &metrics->memory), fits, sizes_text(&arena, scenario), advice,
        *advice ? "; or " : "");
    arena_release(&arena);
    return -1;
}
