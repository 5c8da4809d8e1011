/* DualPipeV: micro-batches go down the ranks and back up, two chunks a rank. In the steady state a forward and a
 * backward of different micro-batches are one action (joined by + below), so that the communication of one hides
 * behind the other. At the end, weight gradients are postponed to fill the bubble. */
#include "dualpipe.h"

static const char figure[] =
    "S2  .  F1 f1 F2 f2 F3 b1 ~  f3+B1 ~  F4+b2 ~  f4+B2 ~  b3 ~  B3 ~  .  i4 I4 w4 W4\n"
    "S1  F1 F2 F3 f1 i1 w1 f2 F4+b2 ~  .  f3+B1 ~  b3 ~  .  f4+B2 ~  b4 ~  I3 W3 I4 W4\n";

static int check(const struct plan *plan, struct loc loc, struct error *err)
{
    return dualpipe_check(plan, "dualpipe-v", "", loc, err);
}

static void row(struct row *row, const struct plan *plan, int rank)
{
    dualpipe_row(row, plan, &(struct dualpipe){.ranks = plan->stages, .rank = rank});
}

static double ideal_makespan(const struct plan *plan, double f, double b, double r)
{
    (void)r;
    return dualpipe_makespan(plan, plan->stages, f, b);
}

static int ideal_in_flight(const struct plan *plan, int rank)
{
    (void)rank;
    return dualpipe_in_flight(plan->stages);
}

const struct schedule schedule_dualpipe_v = {
    .name = "dualpipe-v",
    .title = "DualPipeV",
    .paper = "Liu et al. 2024, DeepSeek-V3 (arXiv 2412.19437), section 3.2.1, cut in half to a V "
             "(github.com/deepseek-ai/DualPipe)",
    .brief = "forwards and backwards of different micro-batches overlapped, chunks in a V; 2P micro-batches or more",
    .figure = figure,
    .formula = "idle on a rank (P-1) 2F where B <= 2F and nothing is recomputed; where F = I = W that is the paper's\n"
               "(P-1)(F&B + B - 3W), F&B the overlapped action, here F + B; 2P+1 micro-batches in flight",
    .placement = PLACEMENT_V,
    .min_chunks = 2, .max_chunks = 2,
    .check = check,
    .recompute = RECOMPUTE_WITH_GRADIENT,
    .row = row,
    .ideal_makespan = ideal_makespan,
    .ideal_in_flight = ideal_in_flight,
};
