#include "report/comparison.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MICRO_MAX = 1 << 20 };

/* Whether micro-batches of so many samples fit, as many of them as before: memory follows from the order alone, so the
 * engine without a network tells it; or the planner, that no plan of the layers fits. */
static int fits(struct scenario *scenario, int micro, bool *does, struct error *err)
{
    struct error own = {0};
    struct run run;
    int rc;

    scenario->batch.micro = micro;
    scenario->batch.global = micro * scenario->strategy.data * scenario->plan.micro_batches;
    rc = run_simulate(&run, scenario, scenario_by_layers(scenario) ? &own : err);
    *does = !rc && run.metrics.peak_memory <= memory_limit(scenario);
    if (rc && own.count && error_exit_code(&own) == EXIT_INFEASIBLE)
        rc = 0;
    else if (own.count)
        rc = error_add(err, own.messages[0].code, own.messages[0].loc, "%s", own.messages[0].text);
    error_release(&own);
    run_release(&run);
    return rc;
}

/* Doubles until it does not fit, then halves the rest. The scenario is not used afterwards. */
static int largest_micro(struct scenario *scenario, int *largest, struct error *err)
{
    double each = (double)scenario->strategy.data * scenario->plan.micro_batches;
    int low = 0, high = 1;
    bool does = true;

    *largest = -1;
    if (!model_has_samples(&scenario->model) || isinf(memory_limit(scenario)))
        return 0;
    scenario->simulation.engine = ENGINE_IDEAL;
    scenario->cluster.ideal = true;
    for (; does && high <= MICRO_MAX && high * each <= 2e9; high *= 2) {
        if (fits(scenario, high, &does, err))
            return -1;
        low = does ? high : low;
    }
    if (does)                            /* memory is not what limits it */
        return 0;
    for (high /= 2; high - low > 1;) {
        int middle = low + (high - low) / 2;

        if (fits(scenario, middle, &does, err))
            return -1;
        *(does ? &low : &high) = middle;
    }
    *largest = low;
    return 0;
}

int comparison_init(struct comparison *comparison, struct scenario *scenario, const struct comparison *baseline,
                    struct error *err)
{
    struct run run;
    const struct metrics *metrics = &run.metrics;
    int rc = run_simulate(&run, scenario, err);

    *comparison = (struct comparison){.name = strdup(scenario->name), .gpus = scenario_gpus(scenario)};
    if (!comparison->name)
        BUG("out of memory");
    comparison->flop_per_sample = metrics->hardware_flop / metrics->samples;
    comparison->extra_computation =
        comparison->flop_per_sample / (baseline ? baseline->flop_per_sample : comparison->flop_per_sample) - 1;
    memcpy(comparison->sent, metrics->sent, sizeof comparison->sent);
    comparison->flop = metrics->hardware_flop;
    comparison->time = metrics->iteration_time;
    comparison->peak_memory = metrics->peak_memory;
    run_release(&run);
    if (rc || largest_micro(scenario, &comparison->micro, err))
        return -1;
    comparison->batch_growth = NAN;
    if (baseline && comparison->micro >= 0 && baseline->micro > 0)
        comparison->batch_growth = (double)comparison->micro / baseline->micro;
    return 0;
}

void comparison_release(struct comparison *comparison)
{
    free(comparison->name);
    memset(comparison, 0, sizeof *comparison);
}
