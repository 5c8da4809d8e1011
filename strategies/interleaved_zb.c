/* Interleaved zero bubble (PyTorch's ScheduleInterleavedZeroBubble): interleaved 1F1B with a shorter warm-up and
 * backwards in two halves, for the input (I) and for the weights (W). W fills idle time. A recomputation comes before
 * I. */
#include "interleaving.h"

#include <math.h>

static const char figure[] =
    "S3  .   .   F1  F2  F3  F1b I1b F2b I2b F3b I3b W1b I1  W2b I2  W3b I3  W1  W2  W3\n"
    "S2  .   F1  F2  F3  F1b F2b .   I1b F3b I2b W1b I3b W2b I1  W3b I2  W1  I3  W2  W3\n"
    "S1  F1  F2  F3  F1b F2b F3b .   .   I1b W1b I2b W2b I3b W3b I1  W1  I2  W2  I3  W3\n";

static const struct field fields[] = {
    {KEY(interleaving_options, micro_batch_group), .kind = FIELD_INT, .fallback = "0", .min = 0, .max = 1e6,
     .brief = "number of micro-batches that visit a chunk before the next chunk's turn; the last group may be smaller; "
              "0: as PyTorch, (micro-batches / ranks, rounded down) groups of the same size; the number of ranks if "
              "these do not divide, which PyTorch refuses. Here only groups that deadlock are refused"},
};
static const struct table options = {TABLE("strategy", "options of interleaved-zb", interleaving_options, fields)};

static int group(const struct plan *plan)
{
    const struct interleaving_options *option = plan->options;
    int groups = plan->micro_batches > plan->stages ? plan->micro_batches / plan->stages : 1;

    if (option->micro_batch_group)
        return option->micro_batch_group;
    return plan->micro_batches % groups ? plan->stages : plan->micro_batches / groups;
}

static void row(struct row *row, const struct plan *plan, int rank)
{
    int turns = interleaving_turns(plan), warm = interleaving_warm_up(plan, group(plan), rank, 1);

    for (int k = -warm; k < turns + rank; k++) {
        interleaving_turn(row, plan, group(plan), FORWARD, k + warm);
        interleaving_turn(row, plan, group(plan), BACKWARD_INPUT, k);
        interleaving_turn(row, plan, group(plan), BACKWARD_WEIGHT, k - rank);
    }
}

extern const struct schedule schedule_interleaved_zb;

static int check(const struct plan *plan, struct loc loc, struct error *err)
{
    return interleaving_check(&schedule_interleaved_zb, plan, group(plan), loc, err);
}

/* ZB-H1's bubble, (P-1)(F+I-W), in chunks, if a W fits into the wait for a forward. */
static double ideal_makespan(const struct plan *plan, double f, double b, double r)
{
    double input = b / 2 + (plan->recompute ? r : 0), weight = b / 2;

    if (weight > f || plan->micro_batches < plan->stages || !interleaving_is_even(plan, group(plan)) ||
        (plan->chunks > 1 && group(plan) > plan->micro_batches))
        return NAN;
    return (double)interleaving_turns(plan) * (f + input + weight) + (plan->stages - 1) * (f + input - weight);
}

static int ideal_in_flight(const struct plan *plan, int rank)
{
    return interleaving_in_flight(plan, interleaving_warm_up(plan, group(plan), rank, 1) + 1 + rank);
}

const struct schedule schedule_interleaved_zb = {
    .name = "interleaved-zb",
    .title = "Interleaved zero bubble",
    .paper = "Qi et al. 2023, Zero Bubble Pipeline Parallelism (arXiv 2401.10241), over several chunks: PyTorch's "
             "ScheduleInterleavedZeroBubble",
    .brief = "interleaved 1F1B with backwards in two halves; the half for the weights runs where the rank would wait",
    .figure = figure,
    .formula = "per chunk F, I and W, with W <= F; N the micro-batch group (P unless it is set):\n"
               "  P <= N <= M, and no group has less than P micro-batches (N = P: M a multiple of P): iteration\n"
               "  V M (F+I+W) + (P-1)(F+I-W), bubble (P-1)(F+I-W); V = 1: the same for any M >= P\n"
               "  other M: no closed form; groups that deadlock are refused\n"
               "min(V M, min(V M, (V-1) N + P-1-rank) + 1 + rank) chunks in flight until their W",
    .options = &options,
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
