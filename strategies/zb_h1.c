/* ZB-H1: 1F1B whose backwards are in two halves. The half for the input (I) is sent to the previous rank at once; the
 * half for the weights (W) waits for idle time. No more memory than 1F1B. With recomputation R comes before I. */
#include "zero_bubble.h"

#include <math.h>

static const char figure[] =
    "S4  .  .  .  F1 I1 F2 I2 F3 I3 F4 I4 W1 F5 I5 W2 F6 I6 W3 F7 I7 W4 F8 I8 W5 W6 W7 W8\n"
    "S3  .  .  F1 F2 .  I1 F3 I2 F4 I3 W1 F5 I4 W2 F6 I5 W3 F7 I6 W4 F8 I7 W5 I8 W6 W7 W8\n"
    "S2  .  F1 F2 F3 .  .  I1 F4 I2 W1 F5 I3 W2 F6 I4 W3 F7 I5 W4 F8 I6 W5 I7 W6 I8 W7 W8\n"
    "S1  F1 F2 F3 F4 .  .  .  I1 W1 F5 I2 W2 F6 I3 W3 F7 I4 W4 F8 I5 W5 I6 W6 I7 W7 I8 W8\n";

static void rows(struct row *rows, const struct plan *plan)
{
    zero_bubble_rows(rows, plan, 1);
}

/* Qi et al. 2023, table 2: bubble (P-1)(F+I-W), if a W fits into the wait for a forward. With fewer micro-batches than
 * ranks only the last W adds to the time. */
static double ideal_makespan(const struct plan *plan, double f, double b, double r)
{
    double input = b / 2 + (plan->recompute ? r : 0), weight = b / 2;
    int p = plan->stages, m = plan->micro_batches;

    if (weight > f || (zero_bubble_is_fixed(plan) && m < 2 * p))
        return NAN;
    if (m < p)
        return (m + p - 1) * (f + input) + weight;
    return m * (f + input + weight) + (p - 1) * (f + input - weight);
}

static int ideal_in_flight(const struct plan *plan, int rank)
{
    (void)rank;
    return plan->stages < plan->micro_batches ? plan->stages : plan->micro_batches;
}

const struct schedule schedule_zb_h1 = {
    .name = "zb-h1",
    .title = "Zero bubble, ZB-H1",
    .paper = "Qi et al. 2023, Zero Bubble Pipeline Parallelism (arXiv 2401.10241), section 2.1 and figure 3 (top); the "
             "order as the authors' heuristic scheduler builds it (their ZB-1p), or as drawn",
    .brief = "1F1B with backwards in two halves; a third of the bubble, the memory of 1F1B",
    .figure = figure,
    .formula = "iteration M (F+I+W) + (P-1)(F+I-W) where W <= F and M >= P (variant fixed: M >= 2P);\n"
               "bubble (P-1)(F+I-W); "
               "min(M, P) micro-batches in flight until their W, on every rank",
    .options = &zero_bubble_options,
    .alternative = true,
    .recompute = RECOMPUTE_WITH_GRADIENT,
    .own_spans = true,
    .timed = true,
    .rows = rows,
    .ideal_makespan = ideal_makespan,
    .ideal_in_flight = ideal_in_flight,
};
