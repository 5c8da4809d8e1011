/* PipeDream-2BW: batches of M micro-batches follow each other in 1F1B without a flush. Gradients of a batch are
 * accumulated and applied once. Every stage, the last one too, computes batch k with the weights that the update of
 * batch k - 2 left: a delay of one, with which two versions are enough (section 3.1: W(t+1) = W(t) - v grad f(W(t-1))).
 * Its runtime keeps the older version as a copy of the fp32 weights (megatron/megatron/optimizer/optimizer.py:
 * weight_stashing). */
#include <math.h>

#include "schedule/schedule.h"

static const char figure[] =
    "S3  .  .  F1 B1 ~  F2 B2 ~  F3 B3 ~  F4 B4 ~  F5 B5 ~  F6 B6 ~  .  .  .  .\n"
    "S2  .  F1 F2 .  .  B1 ~  F3 B2 ~  F4 B3 ~  F5 B4 ~  F6 B5 ~  .  B6 ~  .  .\n"
    "S1  F1 F2 F3 .  .  .  .  B1 ~  F4 B2 ~  F5 B3 ~  F6 B4 ~  .  B5 ~  .  B6 ~\n";

static int warm_up(const struct plan *plan, int rank)
{
    int behind = plan->stages - 1 - rank;

    return behind < plan->micro_batches ? behind : plan->micro_batches;
}

static void row(struct row *row, const struct plan *plan, int rank)
{
    int warm = warm_up(plan, rank), total = plan_micro_batches(plan);

    for (int mb = 0; mb < warm; mb++)
        forward(row, 0, mb);
    for (int mb = 0; mb < total; mb++) {
        if (warm + mb < total)
            forward(row, 0, warm + mb);
        if (plan->recompute)
            recompute(row, 0, mb);
        backward(row, 0, mb);
        if ((mb + 1) % plan->micro_batches == 0)
            update(row);
    }
}

/* With fewer than P - 1 micro-batches the first rank waits for gradients even in the steady state. */
static double ideal_makespan(const struct plan *plan, double f, double b, double r)
{
    if (plan->micro_batches < plan->stages - 1)
        return NAN;
    return (plan_micro_batches(plan) + plan->stages - 1) * (f + b + (plan->recompute ? r : 0));
}

static int ideal_in_flight(const struct plan *plan, int rank)
{
    int total = plan_micro_batches(plan), most = warm_up(plan, rank) + 1;

    return most < total ? most : total;
}

const struct schedule schedule_pipedream_2bw = {
    .name = "pipedream-2bw",
    .title = "PipeDream-2BW (double-buffered weights)",
    .paper = "Narayanan et al. 2021, Memory-Efficient Pipeline-Parallel DNN Training (arXiv 2006.09503), section 3; "
             "order as in its runtime (github.com/msr-fiddle/pipedream, branch pipedream_2bw, schedules.py)",
    .brief = "batches follow each other without a flush, an update a batch, two weight versions",
    .figure = figure,
    .formula = "steady state: M (F + B) a batch where M >= P - 1, no bubble; min(M, P - 1 - rank) + 1 micro-batches in "
               "flight; two weight versions on every rank",
    .recompute = RECOMPUTE_WITH_GRADIENT,
    .asynchronous = true,
    .delay = 1,
    .stashes_fp32 = true,
    .batches = 6,
    .row = row,
    .ideal_makespan = ideal_makespan,
    .ideal_in_flight = ideal_in_flight,
};
