/* Whether a workload fits into the memory of its GPUs. */
#include "run/memory_advice.h"

#include <math.h>
#include <stdlib.h>

#include "auto/auto.h"
#include "base/base.h"
#include "config/conf.h"
#include "recompute/rank_plan.h"
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

/* `always`: also where the scenario does not enforce it. */
static double limit_of(const struct scenario *scenario, int rank, bool always)
{
    return always ? scenario_room(scenario, rank) : memory_limit_of(scenario, rank);
}

/* Looks at the memory that ranks hold all the time, which saves many simulations. With `flying` the activations in flight
 * count too. */
static bool states_fit(const struct workload *workload, bool flying, bool always)
{
    for (int r = 0; r < workload->plan.stages; r++) {
        double limit = limit_of(workload->scenario, r, always);
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
    return !depends_on_times(workload->scenario) && !states_fit(workload, false, false);
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
    return states_fit(workload, true, false);
}

double memory_lack(const struct run *run)
{
    const struct scenario *scenario = run->workload->scenario;

    return run->metrics.peak_memory - memory_limit_of(scenario, run->metrics.peak_rank % scenario->plan.stages);
}

bool memory_fits(const struct workload *workload, struct simulate_options options, bool always, struct error *err)
{
    struct run run = {0};
    bool fit = states_fit(workload, false, always) && !simulate(workload, options, &run, err) &&
               run.metrics.peak_memory <=
                   limit_of(workload->scenario, run.metrics.peak_rank % workload->plan.stages, always);

    run_release(&run);
    return fit;
}

int memory_fits_twice(const struct scenario *scenario, bool *fit, struct error *err)
{
    struct scenario changed = {0};
    struct workload workload = {0};
    struct arena arena = {0};
    const char *const sets[] = {
        arena_printf(&arena, "batch.micro=%d", 2 * scenario->batch.micro),
        arena_printf(&arena, "batch.global=%d", 2 * scenario->batch.global),
    };
    size_t count = node_get(scenario->batch.node, "global") ? 2 : 1;
    int before = err->count + err->dropped;

    if (!scenario_vary(scenario, sets, count, &changed, err))
        *fit = !workload_init(&workload, &changed, err) &&
               memory_fits(&workload, memory_options_of(&changed), true, err);
    workload_release(&workload);
    scenario_release(&changed);
    arena_release(&arena);
    return err->count + err->dropped > before ? -1 : 0;
}
