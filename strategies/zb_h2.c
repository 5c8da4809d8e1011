/* ZB-H2: ZB-H1 with twice its memory. It does more forwards before the first backward, and the same number of W after
 * the last one. So no rank is idle between its first forward and its last W, if forwards and both halves of backwards
 * take the same time. With recomputation R comes before I. */
#include "zero_bubble.h"

#include <math.h>

static const char figure[] =
    "S4  .  .  .  F1 I1 F2 I2 F3 I3 F4 I4 F5 I5 F6 I6 F7 I7 F8 I8 W1 W2 W3 W4 W5 W6 W7 W8\n"
    "S3  .  .  F1 F2 F3 I1 F4 I2 F5 I3 F6 I4 F7 I5 F8 I6 W1 I7 W2 I8 W3 W4 W5 W6 W7 W8 .\n"
    "S2  .  F1 F2 F3 F4 F5 I1 F6 I2 F7 I3 F8 I4 W1 I5 W2 I6 W3 I7 W4 I8 W5 W6 W7 W8 .  .\n"
    "S1  F1 F2 F3 F4 F5 F6 F7 I1 F8 W1 I2 W2 I3 W3 I4 W4 I5 W5 I6 W6 I7 W7 I8 W8 .  .  .\n";

static void rows(struct row *rows, const struct plan *plan)
{
    zero_bubble_rows(rows, plan, 2);
}

/* Each rank is busy from its first forward on, which is at most (P-1) F after the first rank's, if the halves of a
 * backward take no longer than a forward. With fewer micro-batches than ranks only the last W adds to the time. */
static double ideal_makespan(const struct plan *plan, double f, double b, double r)
{
    int p = plan->stages, m = plan->micro_batches;

    if (b / 2 > f || (plan->recompute && r > 0) || (zero_bubble_is_fixed(plan) && (b / 2 < f || m < 2 * p)))
        return NAN;
    if (m < p)
        return (m + p - 1) * (f + b / 2) + b / 2;
    return m * (f + b) + (p - 1) * f;
}

const struct schedule schedule_zb_h2 = {
    .name = "zb-h2",
    .title = "Zero bubble, ZB-H2",
    .paper = "Qi et al. 2023, Zero Bubble Pipeline Parallelism (arXiv 2401.10241), section 2.2 and figure 3 (bottom); "
             "the order as the authors' heuristic scheduler builds it (their ZB-2p), or as drawn",
    .brief = "backwards in two halves, twice the memory of 1F1B: no rank idle from its first work to its last",
    .figure = figure,
    .formula = "iteration M (F+I+W) + (P-1) F where M >= P and I = W <= F (variant fixed: M >= 2P and W = F),\n"
               "no bubble but until a rank's first forward and after its last W where M >= 2P-1; the memory of 2P micro-batches until their W",
    .options = &zero_bubble_options,
    .alternative = true,
    .recompute = RECOMPUTE_WITH_GRADIENT,
    .own_spans = true,
    .timed = true,
    .rows = rows,
    .ideal_makespan = ideal_makespan,
};
