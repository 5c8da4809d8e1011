/* Chimera: micro-batches enter at both ends of the pipeline, each direction with its own copy of the model. */
#include "schedule/schedule.h"

#include <math.h>
#include <stdlib.h>

static const char figure[] =
    "S4  f1 f2 .  F1 B1 ~  F2 B2 ~  .  b1 ~  .  .  b2 ~\n"
    "S3  .  f1 F1 f2 F2 .  B1 ~  b1 ~  B2 ~  b2 ~  .  .\n"
    "S2  .  F1 f1 F2 f2 .  b1 ~  B1 ~  b2 ~  B2 ~  .  .\n"
    "S1  F1 F2 .  f1 b1 ~  f2 b2 ~  .  B1 ~  .  .  B2 ~\n";

static int check(const struct plan *plan, struct loc loc, struct error *err)
{
    if (plan->stages % 2 == 0)
        return 0;
    return error_infeasible(err, ERROR_SCHEDULE, loc,
                            "strategy: schedule: chimera found pipeline %d; expected an even number, so that the two "
                            "directions meet between ranks",
                            plan->stages);
}

/* What the two directions do on a rank, by the step in which it is done; a block of P/2 micro-batches a direction
 * enters every 2P steps, one every second step. It goes down and up the pipeline, a step a stage; the steps of the
 * directions interleave without a clash. */
static void row(struct row *row, const struct plan *plan, int rank)
{
    int stages = plan->stages, each = plan_micro_batches(plan), half = stages / 2;
    int steps = 2 * stages * ((each - 1) / half + 2);
    struct work *at = xcalloc((size_t)steps, sizeof *at);
    bool *busy = xcalloc((size_t)steps, sizeof *busy);

    for (int chunk = 0; chunk < 2; chunk++) {
        int stage = plan_virtual_stage(plan, rank, chunk);

        for (int mb = 0; mb < each; mb++) {
            int enters = 2 * stages * (mb / half) + 2 * (mb % half);
            int down = enters + stage, up = enters + 2 * stages - 1 - stage;

            BUG_IF(busy[down] || busy[up]);
            busy[down] = busy[up] = true;
            at[down] = (struct work){.kind = FORWARD, .chunk = chunk, .mb = mb};
            at[up] = (struct work){.kind = BACKWARD, .chunk = chunk, .mb = mb};
        }
    }
    for (int step = 0; step < steps; step++) {
        if (busy[step] && at[step].kind == BACKWARD && plan->recompute)
            recompute(row, at[step].chunk, at[step].mb);
        if (busy[step])
            *GROW(row) = at[step];
    }
    free(at);
    free(busy);
}

/* With M = P the critical path is P of the shorter work, forward or backward, and 2P-2 of the longer (Li and Hoefler
 * 2021, section 3.1, for backwards that are longer). */
static double ideal_makespan(const struct plan *plan, double f, double b, double r)
{
    double back = b + (plan->recompute ? r : 0);

    if (plan->micro_batches != plan->stages)
        return NAN;
    return plan->stages * fmin(f, back) + (2 * plan->stages - 2) * fmax(f, back);
}

static int ideal_in_flight(const struct plan *plan, int rank)
{
    int mirrored = plan->stages - 1 - rank, outside = rank < mirrored ? rank : mirrored;
    int block = plan->stages < plan->micro_batches ? plan->stages : plan->micro_batches;

    return block / 2 + 1 + outside < block ? block / 2 + 1 + outside : block;
}

const struct schedule schedule_chimera = {
    .name = "chimera",
    .title = "Chimera",
    .paper = "Li and Hoefler 2021, Chimera: Efficiently Training Large-Scale Neural Networks with Bidirectional "
             "Pipelines (arXiv 2107.06925), section 3.1 and figure 3",
    .brief = "micro-batches enter at both ends; two copies of the model, half the bubble of 1F1B",
    .figure = figure,
    .formula = "with M = P: iteration P F + (2P-2) B; P/2+1 (outer ranks) to P (middle) micro-batches in flight; "
               "twice the parameters",
    .placement = PLACEMENT_BIDIRECTIONAL,
    .min_chunks = 2, .max_chunks = 2,
    .check = check,
    .recompute = RECOMPUTE_WITH_GRADIENT,
    .row = row,
    .ideal_makespan = ideal_makespan,
    .ideal_in_flight = ideal_in_flight,
};
