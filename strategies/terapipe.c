/* TeraPipe: GPipe whose micro-batches are cut along their tokens. A slice attends to the slices before it, whose keys and
 * values its rank has, so that the next stage can begin as soon as the first slice arrives. Backwards go from the last slice
 * to the first, because later slices give gradients to the keys and values of earlier ones. */
#include "schedule/schedule.h"

static const char figure[] =
    "S4  .  .  .  F1 F2 F3 F4 B4 ~  B3 ~  B2 ~  B1 ~  .  .  .  .  .  .\n"
    "S3  .  .  F1 F2 F3 F4 .  .  .  B4 ~  B3 ~  B2 ~  B1 ~  .  .  .  .\n"
    "S2  .  F1 F2 F3 F4 .  .  .  .  .  .  B4 ~  B3 ~  B2 ~  B1 ~  .  .\n"
    "S1  F1 F2 F3 F4 .  .  .  .  .  .  .  .  .  B4 ~  B3 ~  B2 ~  B1 ~\n";

struct terapipe_options {
    const struct node *node;
    int slices;
};

static const struct field fields[] = {
    {KEY(terapipe_options, slices), .kind = FIELD_INT, .min = 1, .max = 65536, .fallback = "1",
     .brief = "slices of the tokens of each micro-batch, with equally many tokens; 1: as gpipe"},
};
static const struct table options = {TABLE("strategy", "options of terapipe", terapipe_options, fields)};

static int slices(const void *given)
{
    const struct terapipe_options *option = given;

    return option->slices;
}

static int count(const struct plan *plan)
{
    return plan->micro_batches * slices(plan->options);
}

/* With recomputation, which is there with whole micro-batches alone, the last one keeps its activations. */
static void row(struct row *row, const struct plan *plan, int rank)
{
    (void)rank;
    for (int i = 0; i < count(plan); i++)
        forward(row, 0, i);
    for (int i = count(plan); i-- > 0;) {
        if (plan->recompute && i + 1 < count(plan))
            recompute(row, 0, i);
        backward(row, 0, i);
    }
}

/* Li et al. 2021, section 3.3: the sum of all slices' times, and for each other stage the times of the longest slice.
 * Here slices take f and b each. */
static double ideal_makespan(const struct plan *plan, double f, double b, double r)
{
    return (count(plan) + plan->stages - 1) * (f + b) + (plan->recompute ? (count(plan) - 1) * r : 0);
}

static int ideal_in_flight(const struct plan *plan, int rank)
{
    (void)rank;
    return count(plan);
}

const struct schedule schedule_terapipe = {
    .name = "terapipe",
    .title = "TeraPipe",
    .paper = "Li et al. 2021, TeraPipe (arXiv 2102.07988), figure 2d and section 3",
    .brief = "gpipe whose micro-batches are cut along their tokens into slices that follow each other",
    .figure = figure,
    .formula = "iteration: the sum of the slices' F+B, and (P-1) times the longest slice's; with equal slices "
               "(MN+P-1)(F+B), bubble (P-1)/(MN+P-1), of N slices for each of M micro-batches, whose activations are all "
               "in flight",
    .options = &options,
    .recompute = RECOMPUTE_EARLY,
    .slices = slices,
    .row = row,
    .ideal_makespan = ideal_makespan,
    .ideal_in_flight = ideal_in_flight,
};
