#include "kernels/skew.h"

#include <math.h>

#include "base/random.h"

/* The value below which a share u of the power law lies: its cumulative distribution, solved for x. */
static double quantile(const struct skew *skew, double u)
{
    double power = 1 - skew->exponent;

    if (fabs(power) < 1e-9)
        return pow(skew->range, u);
    return pow((pow(skew->range, power) - 1) * u + 1, 1 / power);
}

struct skew_shares skew_shares(const struct skew *skew, double n)
{
    struct skew_shares shares = {.skew = *skew, .n = n};

    for (double i = 0; i < n && skew->exponent > 0; i++)
        shares.sum += quantile(skew, (i + 0.5) / n);
    return shares;
}

double skew_share(const struct skew_shares *shares, double i)
{
    return shares->skew.exponent > 0 ? quantile(&shares->skew, (i + 0.5) / shares->n) / shares->sum : 1 / shares->n;
}

double skew_busiest(const struct skew *skew, int gpus, int n)
{
    enum { DRAWS = 32 };
    double busiest = 0;

    if (skew->exponent == 0 || gpus <= 1)
        return 1;
    for (uint64_t draw = 0; draw < DRAWS; draw++) {
        double most = 0, all = 0;

        for (int gpu = 0; gpu < gpus; gpu++) {
            double rows = 0;

            for (int i = 0; i < n; i++)
                rows += quantile(skew, random_share(draw, (uint64_t)(gpu * n + i)));
            most = fmax(most, rows);
            all += rows;
        }
        busiest += most / all * gpus / DRAWS;
    }
    return busiest;
}
