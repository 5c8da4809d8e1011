#include "train/closed_form.h"

#include <math.h>

double closed_form_young(double stall, double mtbf)
{
    return sqrt(2 * stall * mtbf);
}

double closed_form_daly(double stall, double mtbf)
{
    double share = stall / (2 * mtbf);

    return share < 1 ? closed_form_young(stall, mtbf) * (1 + sqrt(share) / 3 + share / 9) - stall : mtbf;
}

/* By Halley's steps from the series about the branch point, whose first terms are -1 + p - p^2 / 3 with
 * p = sqrt(2 (e x + 1)) (Corless et al. 1996, "On the Lambert W function", section 4). */
double closed_form_lambert(double x)
{
    double p = sqrt(fmax(0, 2 * (exp(1) * x + 1))), w = -1 + p - p * p / 3;

    for (int step = 0; step < 50 && w > -1; step++) {
        double e = exp(w), f = w * e - x, change = f / (e * (w + 1) - (w + 2) * f / (2 * w + 2));

        w -= change;
        if (fabs(change) <= 1e-15 * fabs(w))
            break;
    }
    return w;
}

/* With w = tau/M - 1 the condition is w exp(w) = -exp(-1 - d/M). Near the branch point, where d is small beside M, the
 * sum e x + 1 would lose all digits: Newton's steps on u = tau/M solve u + log1p(-u) + d/M = 0 instead. */
double closed_form_exact(double stall, double mtbf)
{
    double share = stall / mtbf, u;

    if (share > 0.1)
        return mtbf * (1 + closed_form_lambert(-exp(-1 - share)));
    u = closed_form_daly(stall, mtbf) / mtbf;
    for (int step = 0; step < 50 && u > 0; step++) {
        double change = (u + log1p(-u) + share) * (1 - u) / -u;

        u -= change;
        if (fabs(change) <= 1e-15 * u)
            break;
    }
    return mtbf * u;
}

double closed_form_beside(double stall, double write, double step, double mtbf)
{
    return fmax(closed_form_exact(stall, mtbf), ceil((write - stall) / step * (1 - 1e-12)) * step);
}

double closed_form_wall(double interval, double stall, double recovery, double mtbf)
{
    return mtbf * exp(recovery / mtbf) * expm1((interval + stall) / mtbf) / interval;
}

double closed_form_group_lost(int nodes, int copies)
{
    int rest = nodes % copies;
    double ways = 1;

    for (int i = 0; i < copies; i++)
        ways *= (double)(nodes - i) / (copies - i);
    return (rest ? nodes / copies - 1 + copies + rest : nodes / copies) / ways;
}
