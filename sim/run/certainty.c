#include "run/certainty.h"

#include <math.h>

static double measured_share(const struct cost_bases *bases)
{
    double measured = 0, all = 0;

    for (enum kernel_kind kind = 0; kind < KERNEL_KIND_COUNT; kind++)
        for (enum cost_basis basis = 0; basis < BASIS_COUNT; basis++) {
            all += bases->seconds[kind][basis];
            measured += basis == BASIS_MEASURED ? bases->seconds[kind][basis] : 0;
        }
    return all > 0 ? measured / all : 0;
}

struct likeness likeness_of(const struct scenario *scenario, const struct metrics *metrics)
{
    bool timed = model_is_timed(&scenario->model), calibrated = scenario->costs.gpu == COST_CALIBRATED;
    const char *software = scenario->software.like;
    struct likeness likeness = {
        .gpus = scenario_gpus(scenario), .measured = measured_share(&metrics->bases),
        .exposed = metrics->iteration_time > 0 ? metrics->exposed_communication / metrics->iteration_time : 0,
    };

    snprintf(likeness.software, sizeof likeness.software, "%s", software ? software : "none");
    snprintf(likeness.costs, sizeof likeness.costs, "%s",
             timed ? "given" : calibrated ? scenario->costs.profile : "roofline");
    snprintf(likeness.format, sizeof likeness.format, "%s",
             timed ? "given" : dtype_names[precision_products(&scenario->memory.precision)]);
    return likeness;
}

bool likeness_exists(const struct scenario *scenario)
{
    return !scenario->cluster.ideal;
}

/* What a profile's error on its kernels is of an iteration; of those that it has no record of nothing is stated. */
static double stated_error(const struct metrics *metrics, const struct costs_spec *costs)
{
    double seconds = 0;
    bool stated = false;

    for (enum kernel_kind kind = 0; costs->loaded && kind < KERNEL_KIND_COUNT; kind++) {
        double error = profile_error(costs->loaded, kind);

        for (int basis = 0; basis < BASIS_DATA_SHEET && !isnan(error); basis++) {
            stated |= metrics->bases.seconds[kind][basis] > 0;
            seconds += error * metrics->bases.seconds[kind][basis];
        }
    }
    return stated ? seconds / metrics->iteration_time : NAN;
}

void certainty_state(struct metrics *metrics, const struct scenario *scenario)
{
    struct likeness likeness = likeness_of(scenario, metrics);
    struct expectation expectation;

    metrics->stated_error = stated_error(metrics, &scenario->costs);
    expectation = evidence_expect(scenario->evidence, &likeness, NULL);
    metrics->expected_error = expectation.error;
    metrics->expected_longer = expectation.longer;
}
