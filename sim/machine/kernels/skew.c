#include "kernels/skew.h"

#include <math.h>
#include <stdlib.h>

#include "base/base.h"
#include "base/random.h"

/* The value below which a share u of the density x^-exponent between 1 and `range` lies: its cumulative distribution,
 * solved for x. */
static double density_quantile(double exponent, double range, double u)
{
    double power = 1 - exponent;

    if (fabs(power) < 1e-9)
        return pow(range, u);
    return pow((pow(range, power) - 1) * u + 1, 1 / power);
}

/* The rows of the i-th of n experts, in a unit of their own. */
static double weight(const struct skew *skew, double i, double n)
{
    return skew->measured_range > 0 ? density_quantile(skew->exponent, skew->measured_range, (i + 0.5) / n) :
                                      pow(1 + i * fmax(1, skew->gpus), -skew->exponent);
}

struct skew_shares skew_shares(const struct skew *skew, double n)
{
    struct skew_shares shares = {.skew = *skew, .n = n};

    for (double i = 0; i < n && skew->exponent > 0; i++)
        shares.sum += weight(skew, i, n);
    return shares;
}

double skew_share(const struct skew_shares *shares, double i)
{
    return shares->skew.exponent > 0 ? weight(&shares->skew, i, shares->n) / shares->sum : 1 / shares->n;
}

double skew_busiest(double exponent, int gpus, int n)
{
    enum { DRAWS = 32 };
    uint64_t experts = (uint64_t)gpus * (uint64_t)n;
    double busiest = 0, all = 0, *weights, *rows;

    if (exponent == 0 || gpus <= 1)
        return 1;
    weights = xcalloc((size_t)experts + 1, sizeof *weights);
    for (uint64_t i = 0; i < experts; i++)
        all += weights[i] = pow((double)i + 1, -exponent);
    for (uint64_t draw = 0; draw < DRAWS; draw++) {
        double most = 0;

        rows = xcalloc((size_t)gpus, sizeof *rows);
        for (uint64_t i = 0; i < experts; i++) {
            double *own = &rows[random_permuted(draw, i, experts) / (uint64_t)n];

            *own += weights[i];
            most = fmax(most, *own);
        }
        busiest += most / all * gpus / DRAWS;
        free(rows);
    }
    free(weights);
    return busiest;
}
