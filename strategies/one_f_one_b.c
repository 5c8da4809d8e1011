/* 1F1B with a flush (PipeDream-Flush, DAPPLE, Megatron-LM): a few forwards, then one forward and one backward in turns,
 * so that a rank holds the activations of at most P - rank micro-batches. */
#include "schedule/schedule.h"

static const char figure[] =
    "S4  .  .  .  F1 B1 ~  F2 B2 ~  F3 B3 ~  F4 B4 ~  .  .  .  .  .  .\n"
    "S3  .  .  F1 F2 .  .  B1 ~  F3 B2 ~  F4 B3 ~  .  B4 ~  .  .  .  .\n"
    "S2  .  F1 F2 F3 .  .  .  .  B1 ~  F4 B2 ~  .  B3 ~  .  B4 ~  .  .\n"
    "S1  F1 F2 F3 F4 .  .  .  .  .  .  B1 ~  .  B2 ~  .  B3 ~  .  B4 ~\n";

static int warm_up(const struct plan *plan, int rank)
{
    int behind = plan->stages - 1 - rank;

    return behind < plan->micro_batches ? behind : plan->micro_batches;
}

static void backward_of(struct row *row, const struct plan *plan, int mb)
{
    if (plan->recompute)
        recompute(row, 0, mb);
    backward(row, 0, mb);
}

static void row(struct row *row, const struct plan *plan, int rank)
{
    int warm = warm_up(plan, rank), steady = plan->micro_batches - warm;

    for (int mb = 0; mb < warm; mb++)
        forward(row, 0, mb);
    for (int mb = 0; mb < steady; mb++) {
        forward(row, 0, warm + mb);
        backward_of(row, plan, mb);
    }
    for (int mb = steady; mb < plan->micro_batches; mb++)
        backward_of(row, plan, mb);
}

/* Narayanan et al. 2021 (PipeDream-Flush, arXiv 2006.09503, section 2): the bubble of GPipe, (P-1)/(M+P-1). */
static double ideal_makespan(const struct plan *plan, double f, double b, double r)
{
    return (plan->micro_batches + plan->stages - 1) * (f + b + (plan->recompute ? r : 0));
}

static int ideal_in_flight(const struct plan *plan, int rank)
{
    int limit = plan->stages - rank;

    return limit < plan->micro_batches ? limit : plan->micro_batches;
}

const struct schedule schedule_one_f_one_b = {
    .name = "1f1b",
    .title = "1F1B with flush (PipeDream-Flush)",
    .paper = "Narayanan et al. 2021, Memory-Efficient Pipeline-Parallel DNN Training (arXiv 2006.09503), section 2; "
             "Fan et al. 2021, DAPPLE (arXiv 2007.01045)",
    .brief = "one forward, one backward in turns; at most P - rank micro-batches in flight",
    .figure = figure,
    .formula = "iteration (M+P-1)(F+B); bubble (P-1)/(M+P-1); min(M, P - rank) micro-batches in flight",
    .alternative = true,
    .recompute = RECOMPUTE_WITH_GRADIENT,
    .row = row,
    .ideal_makespan = ideal_makespan,
    .ideal_in_flight = ideal_in_flight,
};
