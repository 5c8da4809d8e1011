#include "results/comparison.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "model/model.h"
#include "report/outcome.h"
#include "run/attempt.h"
#include "run/memory_advice.h"
#include "scenario/scenario.h"
#include "stage/memory.h"

enum { MICRO_MAX = 1 << 20 };

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
        if (memory_fits_micro(scenario, high, &fit, err))
            return -1;
        low = fit ? high : low;
    }
    if (fit)                             /* memory is not what limits it */
        return 0;
    for (high /= 2; high - low > 1;) {
        int middle = low + (high - low) / 2;

        if (memory_fits_micro(scenario, middle, &fit, err))
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
    struct attempt attempt = {.of = scenario, .anyway = true};
    const struct metrics *metrics = &attempt.run.metrics;
    enum attempted came = attempt_run(&attempt, simulate_numbers_of(scenario));

    *comparison = (struct comparison){.name = xstrdup(name), .gpus = scenario_gpus(scenario)};
    comparison->flop_per_sample = metrics->hardware_flop / metrics->samples;
    comparison->extra_computation =
        comparison->flop_per_sample / (baseline ? baseline->flop_per_sample : comparison->flop_per_sample) - 1;
    memcpy(comparison->sent, metrics->sent, sizeof comparison->sent);
    comparison->flop = metrics->hardware_flop;
    comparison->time = metrics->iteration_time;
    comparison->peak_memory = metrics->peak_memory;
    if (came)
        error_copy(&attempt.found, err);
    attempt_end(&attempt, err);
    if (came || largest_micro(scenario, &comparison->micro, err)) {
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
