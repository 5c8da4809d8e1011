/* The share of the speed of its products that a GPU keeps at its power limit: compares samples that ran for seconds
 * with the fit to short bursts. It is weighed by time: an iteration spends its time in large products, and small ones,
 * which draw less power, keep more. */
#include <math.h>

#include "calibrate/calibrate.h"
#include "kernels/kernel_time.h"

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

/* The predicted times of all sustained samples of a format at this speed, over their measured times: both are summed,
 * so that a sample weighs as much as the time that it takes. Sets the number of samples. */
static double predicted_over_measured(const struct matmul_fit *fit, int sms, const struct samples *samples,
                                      enum dtype dtype, size_t *count)
{
    double predicted = 0, measured = 0;

    *count = 0;
    for (size_t i = 0; i < samples->count; i++) {
        const struct sample *sample = &samples->items[i];
        const struct product product = sample_product(sample);

        if (sample->kind != SAMPLE_SUSTAINED || sample_format(sample) != dtype)
            continue;
        predicted += matmul_seconds(fit, sms, &product);
        measured += sample->seconds;
        ++*count;
    }
    return predicted / measured;
}

struct sustained_share calibrate_sustained(const struct calibration *calibration, const struct samples *samples,
                                           enum dtype dtype)
{
    const struct sample_group *group = single_products(calibration, dtype);
    struct sustained_share found = {0, 1};
    double low = 0.01, high = 1;

    for (int i = 0; i < 50 && group; i++) {      /* bisection */
        struct matmul_fit fit = group->fitted.matmul;

        fit.repeated = (struct repeated_runs){0};
        fit.speed = (low + high) / 2;
        if (predicted_over_measured(&fit, calibration->sms, samples, dtype, &found.measured) > 1)
            low = fit.speed;
        else
            high = fit.speed;
    }
    if (found.measured)
        found.share = round(1e3 * high) / 1e3;
    return found;
}
