/* Predictions corrected by a person's own measured runs. */
#include "run/certainty.h"

#include <math.h>

#include "evidence/anchor.h"
#include "kernels/cost.h"

void certainty_shares(const struct metrics *metrics, double shares[ANCHOR_CLASSES])
{
    double kernels = cost_bases_total(&metrics->bases), compute = metrics->utilization * metrics->iteration_time;

    shares[ANCHOR_COMMUNICATION] = metrics->exposed_communication / metrics->iteration_time;
    shares[ANCHOR_HOST] = kernels > 0 ? fmax(compute - kernels, 0) / metrics->iteration_time : 0;
    shares[ANCHOR_COMPUTE] = 1 - shares[ANCHOR_COMMUNICATION] - shares[ANCHOR_HOST];
}

/* Multiplies all times by the factor, and divides all rates. */
static void scale_times(struct metrics *metrics, double factor)
{
    const struct metric *metric;

    for (int kind = 0; kind < ACCOUNT_KIND_COUNT; kind++)
        metrics->seconds[kind] *= factor;
    for (size_t i = 0; (metric = metric_at(i)); i++) {
        double *value = (double *)((char *)metrics + metric->offset);
        bool is_kind = value >= metrics->seconds && value < metrics->seconds + ACCOUNT_KIND_COUNT;

        if (metric->kind == METRIC_TIME && !is_kind)
            *value *= factor;
        if (metric->kind == METRIC_RATE)
            *value /= factor;
    }
    metrics->imbalance *= factor;
    metrics->jitter *= factor;
    metrics->extrapolated *= factor;
    cost_bases_scale(&metrics->bases, factor);
}

const char *certainty_anchor(struct arena *arena, struct metrics *metrics, const struct scenario *scenario,
                             const struct anchors *anchors)
{
    struct anchor of = {.likeness = likeness_of(scenario, metrics)};
    const char *why = anchors_refused(arena, anchors, &of);
    double measured, apart;
    bool same;
    struct correction correction;
    double time = metrics->iteration_time;

    if (why)
        return why;
    certainty_shares(metrics, of.shares);
    correction = anchors_correct(anchors, &of, certainty_ratio(scenario, metrics));
    same = anchors_same(anchors, &of, time, &measured, &apart) > 0;
    if (same) {          /* who measures it again is nearer than another configuration */
        const struct ratio_expectation ratio = certainty_ratio(scenario, metrics);

        correction.factor = measured / time;
        correction.within = fmax(ratio.within, apart);
        correction.most = fmax(2 * ratio.within, apart);
    }
    scale_times(metrics, correction.factor);
    metrics->anchored.same = same;
    metrics->anchored.used = (double)correction.used;
    metrics->anchored.factor = correction.factor;
    for (int class = 0; class < ANCHOR_CLASSES; class++)
        metrics->anchored.classes[class] = correction.classes[class];
    metrics->anchored.time = time;
    metrics->expected_error = fmax(correction.within, correction.most / 2);
    certainty_spread(metrics);
    metrics->expected_longer = NAN;
    return NULL;
}
