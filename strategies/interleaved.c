/* Interleaved 1F1B: each rank holds several chunks of the model, so that a micro-batch visits it several times and the
 * pipeline fills with smaller pieces. In the figure a letter marks the work of the second chunk and later ones. */
#include "interleaving.h"

#include <math.h>

static const char figure[] =
    "S3  .   .   F1  F2  F3  F1b B1b ~   F2b B2b ~   F3b B3b ~   B1  ~   B2  ~   B3  ~   .   .   .   .\n"
    "S2  .   F1  F2  F3  F1b F2b F3b .   B1b ~   .   B2b ~   .   B3b ~   B1  ~   B2  ~   B3  ~   .   .\n"
    "S1  F1  F2  F3  F1b F2b F3b .   .   .   .   B1b ~   .   B2b ~   .   B3b ~   B1  ~   B2  ~   B3  ~\n";

static const struct field fields[] = {
    {KEY(interleaving_options, micro_batch_group), .kind = FIELD_INT, .fallback = "0", .min = 0, .max = 1e6,
     .brief = "number of micro-batches that visit a chunk before the next chunk's turn; the last group may be smaller; "
              "0: the number of ranks. Megatron refuses a group smaller than the ranks or larger than the "
              "micro-batches, and a last group smaller than the ranks. PyTorch refuses micro-batches that are no "
              "multiple of (micro-batches / ranks, rounded down). Here only groups that deadlock are refused"},
};
static const struct table options = {TABLE("strategy", "options of interleaved", interleaving_options, fields)};

static int group(const struct plan *plan)
{
    const struct interleaving_options *option = plan->options;

    return option->micro_batch_group ? option->micro_batch_group : plan->stages;
}

static void row(struct row *row, const struct plan *plan, int rank)
{
    int turns = interleaving_turns(plan), warm = interleaving_warm_up(plan, group(plan), rank, 2);

    for (int k = -warm; k < turns; k++) {
        interleaving_turn(row, plan, group(plan), FORWARD, k + warm);
        interleaving_turn(row, plan, group(plan), BACKWARD, k);
    }
}

extern const struct schedule schedule_interleaved;

static int check(const struct plan *plan, struct loc loc, struct error *err)
{
    return interleaving_check(&schedule_interleaved, plan, group(plan), loc, err);
}

/* Narayanan et al. 2021, section 2.2.2: the bubble of 1F1B, (P-1)(F+B), in chunks, which take a V-th of the time. It
 * asks for micro-batches that are a multiple of the ranks. */
static double ideal_makespan(const struct plan *plan, double f, double b, double r)
{
    int p = plan->stages, m = plan->micro_batches, v = plan->chunks;

    if (!interleaving_is_even(plan, group(plan)))
        return NAN;
    return ((double)v * (m > p ? m : p) + (m < p ? m : p) - 1) * (f + b + (plan->recompute ? r : 0));
}

static int ideal_in_flight(const struct plan *plan, int rank)
{
    return interleaving_in_flight(plan, interleaving_warm_up(plan, group(plan), rank, 2) + 1);
}

const struct schedule schedule_interleaved = {
    .name = "interleaved",
    .title = "Interleaved 1F1B",
    .paper = "Narayanan et al. 2021, Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM "
             "(arXiv 2104.04473), section 2.2.2 and figure 4",
    .brief = "1F1B over several model chunks a rank, which divide the bubble by their number and multiply transfers",
    .figure = figure,
    .formula = "per chunk F and B, N the micro-batch group (P unless it is set):\n"
               "  M <= P and M <= N: iteration (V P + M-1)(F+B)\n"
               "  M >= P, and no group has less than P micro-batches, or V = 1: iteration (V M + P-1)(F+B), bubble\n"
               "  (P-1)/(V M + P-1); with N = P that needs M to be a multiple of P\n"
               "  other M: longer, no closed form: ranks wait for groups of less than P; those that deadlock are refused\n"
               "min(V M, (V-1) N + 2 (P-1-rank) + 1) chunks in flight",
    .options = &options,
    .alternative = true,
    .recompute = RECOMPUTE_WITH_GRADIENT,
    .placement = PLACEMENT_LOOP,
    .min_chunks = 1,
    .max_chunks = 1024,
    .usual_chunks = 2,
    .check = check,
    .row = row,
    .ideal_makespan = ideal_makespan,
    .ideal_in_flight = ideal_in_flight,
};
