/* Naive model parallelism ("vertical" MP): the layers are divided over the ranks and one rank works at a time. A batch
 * of several micro-batches accumulates gradients, one micro-batch through the whole model after another. */
#include "schedule/schedule.h"

static const char figure[] =
    "S4  .  .  .  F1 B1 ~  .  .  .  .  .  .\n"
    "S3  .  .  F1 .  .  .  B1 ~  .  .  .  .\n"
    "S2  .  F1 .  .  .  .  .  .  B1 ~  .  .\n"
    "S1  F1 .  .  .  .  .  .  .  .  .  B1 ~\n";

static void row(struct row *row, const struct plan *plan, int rank)
{
    (void)rank;
    for (int mb = 0; mb < plan->micro_batches; mb++) {
        forward(row, 0, mb);
        if (plan->recompute)
            recompute(row, 0, mb);
        backward(row, 0, mb);
    }
}

static double ideal_makespan(const struct plan *plan, double f, double b, double r)
{
    return plan->micro_batches * plan->stages * (f + b + (plan->recompute ? r : 0));
}

static int ideal_in_flight(const struct plan *plan, int rank)
{
    (void)plan;
    (void)rank;
    return 1;
}

const struct schedule schedule_naive = {
    .name = "naive",
    .title = "Naive model parallelism",
    .paper = "the baseline of Huang et al. 2019, GPipe (arXiv 1811.06965), figure 2b",
    .brief = "layers divided over ranks, one rank works at a time",
    .figure = figure,
    .formula = "iteration M P (F + B); utilization 1/P; one micro-batch in flight",
    .recompute = RECOMPUTE_WITH_GRADIENT,
    .row = row,
    .ideal_makespan = ideal_makespan,
    .ideal_in_flight = ideal_in_flight,
};
