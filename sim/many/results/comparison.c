#include "results/comparison.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "auto/auto.h"
#include "base/base.h"
#include "config/conf.h"
#include "model/model.h"
#include "report/outcome.h"
#include "run/memory_advice.h"
#include "scenario/scenario.h"
#include "stage/memory.h"
#include "workload/workload.h"

enum { MICRO_MAX = 1 << 20 };

/* Whether larger micro-batches fit, with the same number of them. Memory follows from the order alone, so the engine
 * without a network finds it; or the planner finds that no plan of the layers fits. */
static int micro_fits(const struct scenario *scenario, int micro, bool *fit, struct error *err)
{
    const struct simulate_options options = {.engine = ENGINE_IDEAL, .free_network = true};
    struct error own = {0};
    struct arena arena = {0};
    struct scenario varied;
    struct workload workload = {0};
    const char *const sets[] = {
        arena_printf(&arena, "batch.micro=%d", micro),
        arena_printf(&arena, "batch.global=%d", micro * scenario->parallelism.data * scenario->plan.micro_batches),
    };
    bool planned = scenario_by_layers(scenario);
    int rc = scenario_vary(scenario, sets, node_get(scenario->batch.node, "global") ? 2 : 1, &varied, err);

    *fit = !rc && !workload_init(&workload, &varied, &own) &&
           memory_fits(&workload, options, false, &own);
    for (int i = 0; i < own.count && !(planned && error_exit_code(&own) == EXIT_INFEASIBLE); i++)
        rc = error_add(err, own.messages[i].code, own.messages[i].loc, "%s", own.messages[i].text);
    workload_release(&workload);
    scenario_release(&varied);
    arena_release(&arena);
    error_release(&own);
    return rc;
}

/* Doubles until it does not fit, then halves the rest. */
static int largest_micro(const struct scenario *scenario, int *largest, struct error *err)
{
    double each = (double)scenario->parallelism.data * scenario->plan.micro_batches;
    int low = 0, high = 1;
    bool fit = true;

    *largest = -1;
    if (!model_has_samples(&scenario->model) || isinf(memory_limit(scenario)) || scenario->views)
        return 0;            /* of ranks with unequal degrees not all numbers of samples divide */
    for (; fit && high <= MICRO_MAX && high * each <= 2e9; high *= 2) {
        if (micro_fits(scenario, high, &fit, err))
            return -1;
        low = fit ? high : low;
    }
    if (fit)                             /* memory is not what limits it */
        return 0;
    for (high /= 2; high - low > 1;) {
        int middle = low + (high - low) / 2;

        if (micro_fits(scenario, middle, &fit, err))
            return -1;
        *(fit ? &low : &high) = middle;
    }
    *largest = low;
    return 0;
}

void comparison_refused(struct comparison *comparison, const char *name, const struct error *found)
{
    bool infeasible = error_exit_code(found) == EXIT_INFEASIBLE;

    *comparison = (struct comparison){.name = xstrdup(name)};
    comparison->reason = xprintf("%s: %s", outcome_names[infeasible ? OUTCOME_INFEASIBLE : OUTCOME_ERROR],
                                 found->messages[0].text);
}

int comparison_init(struct comparison *comparison, const char *name, const struct scenario *scenario,
                    const struct comparison *baseline, struct error *err)
{
    struct workload workload;
    struct run run = {0};
    const struct metrics *metrics = &run.metrics;
    int rc = workload_init(&workload, scenario, err) ||
             simulate(&workload, simulate_numbers_of(scenario), &run, err) ? -1 : 0;

    *comparison = (struct comparison){.name = xstrdup(name), .gpus = scenario_gpus(scenario)};
    comparison->flop_per_sample = metrics->hardware_flop / metrics->samples;
    comparison->extra_computation =
        comparison->flop_per_sample / (baseline ? baseline->flop_per_sample : comparison->flop_per_sample) - 1;
    memcpy(comparison->sent, metrics->sent, sizeof comparison->sent);
    comparison->flop = metrics->hardware_flop;
    comparison->time = metrics->iteration_time;
    comparison->peak_memory = metrics->peak_memory;
    run_release(&run);
    workload_release(&workload);
    if (rc || largest_micro(scenario, &comparison->micro, err)) {
        comparison_release(comparison);
        comparison_refused(comparison, name, err);
        return -1;
    }
    comparison->batch_growth = NAN;
    if (baseline && comparison->micro >= 0 && baseline->micro > 0)
        comparison->batch_growth = (double)comparison->micro / baseline->micro;
    return 0;
}

void comparison_release(struct comparison *comparison)
{
    free(comparison->name);
    free(comparison->reason);
    memset(comparison, 0, sizeof *comparison);
}
