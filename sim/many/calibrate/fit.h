/* fit: fits parameters of a model to measurements by robust nonlinear least squares (GSL). */
#ifndef DTSIM_FIT_H
#define DTSIM_FIT_H

#include "base/base.h"

enum { FIT_MAX = 16 };                   /* most parameters of a model */

/* A parameter, always positive: the value at which the search starts, and its upper bound (0: none). */
struct fit_parameter { double start, most; };

struct fit_problem {
    const struct fit_parameter *parameters;
    size_t nparameters;
    size_t count;                                            /* of measurements */
    double (*measured)(const void *context, size_t i);       /* positive */
    double (*predicted)(const void *context, const double *values, size_t i);    /* with these parameters; positive */
    const void *context;
};

/* Finds the parameters (values[nparameters]) that minimise the differences between the logarithms of predictions and
 * measurements. So a relative error counts the same for small and large times, and outliers count little (Huber's loss
 * by iterative reweighting). The same input gives the same values. With fewer measurements than parameters the values
 * are the start. */
void fit_robust(const struct fit_problem *problem, double *values);

#endif
