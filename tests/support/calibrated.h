/* calibrated: what the tests of calibrations share: sides of products, and a calibration from samples. */
#ifndef DTSIM_CALIBRATED_H
#define DTSIM_CALIBRATED_H

#include "calibrate/calibrate.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "text.h"

static inline double random_share(uint64_t *seed)
{
    return (double)(next(seed) >> 11) / 9007199254740992.0;
}

/* A side of a product, as layers that are trained have: its logarithm is uniform, and it is rounded to a multiple. */
static inline double random_side(uint64_t *seed, double least, double most, double multiple)
{
    return round(least * pow(most / least, random_share(seed)) / multiple) * multiple;
}

static inline void assert_near(const char *what, double actual, double expected, double tolerance)
{
    if (!(fabs(actual / expected - 1) <= tolerance))
        fail_msg("%s: %g instead of %g", what, actual, expected);
}

/* Fits the samples, or the test fails; calibration_release when done. */
static inline void calibrated(struct arena *arena, struct samples *samples, struct calibration *calibration)
{
    struct error err = {0};

    if (calibrate(arena, samples, calibration, &err)) {
        error_print(&err, stderr);
        fail_msg("no calibration");
    }
}

#endif
