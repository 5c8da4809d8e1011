/* DualPipe: micro-batches enter at both ends of the pipeline, each direction with its own copy of the model. In the
 * steady state a forward and a backward of opposite directions are one action (joined by + below), so that the
 * communication of one hides behind the other. At the end, weight gradients are postponed to fill the bubble. */
#include "both_ends.h"
#include "dualpipe.h"

static const char figure[] =
    "S4  f1 f2 f3 F1 I1 W1 F2 f4+B2 ~  .  F3+b1 ~  B3 ~  .  F4+b2 ~  B4 ~  i3 w3 i4 w4\n"
    "S3  .  f1 F1 f2 F2 f3 B1 ~  F3+b1 ~  f4+B2 ~  F4+b2 ~  B3 ~  b3 ~  .  I4 i4 W4 w4\n"
    "S2  .  F1 f1 F2 f2 F3 b1 ~  f3+B1 ~  F4+b2 ~  f4+B2 ~  b3 ~  B3 ~  .  i4 I4 w4 W4\n"
    "S1  F1 F2 F3 f1 i1 w1 f2 F4+b2 ~  .  f3+B1 ~  b3 ~  .  f4+B2 ~  b4 ~  I3 W3 I4 W4\n";

static int check(const struct plan *plan, struct loc loc, struct error *err)
{
    return both_ends_check(plan, "dualpipe", "half of the ranks for each direction", loc, err) ||
           dualpipe_check(plan, "dualpipe", ", over both directions", loc, err) ? -1 : 0;
}

/* Two Vs that point at each other, each with half of the ranks and half of the micro-batches. */
static void row(struct row *row, const struct plan *plan, int rank)
{
    int outside = both_ends_outside(plan, rank);

    dualpipe_row(row, plan, &(struct dualpipe){.ranks = plan->stages / 2, .rank = outside, .near = rank != outside});
}

static double ideal_makespan(const struct plan *plan, double f, double b, double r)
{
    (void)r;
    return dualpipe_makespan(plan, plan->stages / 2, f, b);
}

static int ideal_in_flight(const struct plan *plan, int rank)
{
    (void)rank;
    return dualpipe_in_flight(plan->stages / 2);
}

const struct schedule schedule_dualpipe = {
    .name = "dualpipe",
    .title = "DualPipe",
    .paper = "Liu et al. 2024, DeepSeek-V3 (arXiv 2412.19437), section 3.2.1 and figure 5 "
             "(github.com/deepseek-ai/DualPipe)",
    .brief = "micro-batches enter at both ends, forwards and backwards overlapped; two copies of the model",
    .figure = figure,
    .formula = "idle on a rank (P/2-1) 2F where B <= 2F and nothing is recomputed; where F = I = W that is the paper's\n"
               "(P/2-1)(F&B + B - 3W), F&B the overlapped action, here F + B; P+1 micro-batches in flight; twice the\n"
               "parameters",
    .placement = PLACEMENT_BIDIRECTIONAL,
    .min_chunks = 2, .max_chunks = 2,
    .check = check,
    .recompute = RECOMPUTE_WITH_GRADIENT,
    .row = row,
    .ideal_makespan = ideal_makespan,
    .ideal_in_flight = ideal_in_flight,
};
