/* The share of the speed of its products that a GPU keeps at its power limit: compares samples that ran for seconds
 * with the fit to short bursts. */
#include <math.h>
#include <stdlib.h>

#include "calibrate/calibrate.h"

/* The group whose record times a single product of this format. */
static const struct sample_group *single_products(const struct calibration *calibration, enum dtype dtype)
{
    for (size_t i = 0; i < calibration->groups.count; i++) {
        const struct sample_group *group = &calibration->groups.items[i];

        if (group->kind == SAMPLE_MATMUL && group->dtype == dtype && group->which <= BATCHES_ONE && !group->left_out)
            return group;
    }
    return NULL;
}

/* The speed with which the fit predicts the time of a sustained sample, by bisection. */
static double share_of(const struct sample_group *group, int sms, const struct sample *sample)
{
    const struct product product = sample_product(sample);
    struct matmul_fit fit = group->fitted.matmul;
    double low = 0.01, high = 1;

    fit.repeated = (struct repeated_runs){0};
    for (int i = 0; i < 50; i++) {
        fit.speed = (low + high) / 2;
        if (matmul_seconds(&fit, sms, &product) > sample->seconds)
            low = fit.speed;
        else
            high = fit.speed;
    }
    return high;
}

struct sustained_share calibrate_sustained(const struct calibration *calibration, const struct samples *samples,
                                           enum dtype dtype)
{
    const struct sample_group *group = single_products(calibration, dtype);
    struct { double *items; size_t count, capacity; } shares = {0};
    struct sustained_share found = {0, 1};

    for (size_t i = 0; i < samples->count && group; i++)
        if (samples->items[i].kind == SAMPLE_SUSTAINED && sample_format(&samples->items[i]) == dtype)
            *GROW(&shares) = share_of(group, calibration->sms, &samples->items[i]);
    if (shares.count) {
        found.measured = shares.count;
        found.share = round(1e3 * sorted_median(shares.items, shares.count)) / 1e3;
    }
    free(shares.items);
    return found;
}
