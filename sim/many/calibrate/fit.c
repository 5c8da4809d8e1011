#include "calibrate/fit.h"

#include <gsl/gsl_errno.h>
#include <gsl/gsl_multifit_nlinear.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

enum { ROUNDS = 12, STEPS = 60 };
/* Huber's loss: residuals (of logarithms) up to this one count by their square, larger ones by their size. */
static const double bend = 0.05;

/* A parameter without upper bound is fitted as its logarithm, one with an upper bound as the logit of value / bound. */
static double inner(const struct fit_parameter *parameter, double value)
{
    return parameter->most > 0 ? log(value / (parameter->most - value)) : log(value);
}

static double outer(const struct fit_parameter *parameter, double x)
{
    const double reach = 9;              /* e^9, about 10^4, to either side of the start: enough for any parameter */
    double middle = inner(parameter, parameter->start);

    x = fmin(fmax(x, middle - reach), middle + reach);
    return parameter->most > 0 ? parameter->most / (1 + exp(-x)) : exp(x);
}

static void values_of(const struct fit_problem *problem, const gsl_vector *x, double *values)
{
    for (size_t p = 0; p < problem->nparameters; p++)
        values[p] = outer(&problem->parameters[p], gsl_vector_get(x, p));
}

static int residuals(const gsl_vector *x, void *data, gsl_vector *f)
{
    const struct fit_problem *problem = data;
    double values[FIT_MAX];

    values_of(problem, x, values);
    for (size_t i = 0; i < problem->count; i++) {
        double ratio = problem->predicted(problem->context, values, i) / problem->measured(problem->context, i);

        gsl_vector_set(f, i, isfinite(ratio) && ratio > 0 ? log(ratio) : 1e3);
    }
    return GSL_SUCCESS;
}

static double huber_weight(double residual)
{
    return fabs(residual) <= bend ? 1 : bend / fabs(residual);
}

void fit_robust(const struct fit_problem *problem, double *values)
{
    gsl_multifit_nlinear_parameters settings = gsl_multifit_nlinear_default_parameters();
    gsl_multifit_nlinear_fdf fdf = {.f = residuals, .n = problem->count, .p = problem->nparameters,
                                    .params = (void *)problem};
    gsl_multifit_nlinear_workspace *space;
    gsl_vector *x, *weights;
    gsl_error_handler_t *before;
    int info;

    for (size_t p = 0; p < problem->nparameters; p++)
        values[p] = problem->parameters[p].start;
    if (problem->count < problem->nparameters || !problem->nparameters)
        return;
    before = gsl_set_error_handler_off();
    settings.h_df = 1e-4;                /* the model has steps (tiles, waves): differences need more than rounding */
    space = gsl_multifit_nlinear_alloc(gsl_multifit_nlinear_trust, &settings, problem->count, problem->nparameters);
    x = gsl_vector_alloc(problem->nparameters);
    weights = gsl_vector_alloc(problem->count);
    if (!space || !x || !weights)
        memory_ran_out();
    for (size_t p = 0; p < problem->nparameters; p++)
        gsl_vector_set(x, p, inner(&problem->parameters[p], problem->parameters[p].start));
    gsl_vector_set_all(weights, 1);
    for (int round = 0; round < ROUNDS; round++) {
        gsl_multifit_nlinear_winit(x, weights, &fdf, space);
        gsl_multifit_nlinear_driver(STEPS, 1e-6, 1e-6, 0, NULL, NULL, &info, space);
        gsl_vector_memcpy(x, gsl_multifit_nlinear_position(space));
        residuals(x, (void *)problem, weights);
        for (size_t i = 0; i < problem->count; i++)
            gsl_vector_set(weights, i, huber_weight(gsl_vector_get(weights, i)));
    }
    values_of(problem, x, values);
    gsl_vector_free(weights);
    gsl_vector_free(x);
    gsl_multifit_nlinear_free(space);
    gsl_set_error_handler(before);
}
