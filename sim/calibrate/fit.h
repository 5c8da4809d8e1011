/* fit: parameters of a model from measurements, by robust nonlinear least squares (GSL). */
#ifndef DTSIM_FIT_H
#define DTSIM_FIT_H

#include "base/base.h"

enum { FIT_MAX = 16 };                   /* parameters */

/* One parameter: positive, where its search starts, and what it stays below (0: nothing). */
struct fit_parameter { double start, most; };

struct fit_problem {
    const struct fit_parameter *parameters;
    size_t nparameters;
    size_t count;                                            /* of measurements */
    double (*measured)(const void *context, size_t i);       /* positive */
    double (*predicted)(const void *context, const double *values, size_t i);    /* with these parameters; positive */
    const void *context;
};

/* Finds the parameters (values[nparameters]) that bring the logarithms of predictions and measurements together: what
 * is wrong by a factor counts the same for small and large, and outliers count little (Huber's loss, reweighted). The
 * same input gives the same values. Fewer measurements than parameters: the start. */
void fit_robust(const struct fit_problem *problem, double *values);

#endif
