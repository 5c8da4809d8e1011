/* Chimera: micro-batches enter at both ends of the pipeline, each direction with its own copy of the model. */
#include "both_ends.h"

#include <math.h>
#include <stdlib.h>

static const char figure[] =
    "S4  f1 f2 .  F1 B1 ~  F2 B2 ~  .  b1 ~  .  .  b2 ~\n"
    "S3  .  f1 F1 f2 F2 .  B1 ~  b1 ~  B2 ~  b2 ~  .  .\n"
    "S2  .  F1 f1 F2 f2 .  b1 ~  B1 ~  b2 ~  B2 ~  .  .\n"
    "S1  F1 F2 .  f1 b1 ~  f2 b2 ~  .  B1 ~  .  .  B2 ~\n";

/* How units of P micro-batches follow one another where there are more (section 3, on more micro-batches). */
#define CONCATENATIONS(X) \
    X(DIRECT, "direct") X(FORWARD_DOUBLING, "forward-doubling") X(BACKWARD_HALVING, "backward-halving")
enum concatenation { CONCATENATIONS(ENUM_VALUE) };
static const char *const concatenation_names[] = ENUM_NAMES(CONCATENATIONS);

struct chimera_options {
    const struct node *node;
    int concatenation;
};

static const struct field fields[] = {
    {KEY(chimera_options, concatenation), .kind = FIELD_CHOICE, .fallback = "direct", .choices = concatenation_names,
     .choice_briefs = NAMES("units of P micro-batches, one after another; bubbles between them where backwards take "
                            "longer than forwards",
                            "a forward takes two micro-batches in one pass, as long as a backward of one: no bubbles "
                            "in between, and more activations",
                            "the same order, for micro-batches that are halves of what a forward takes: halve "
                            "batch.micro too"),
     .brief = "how to go on with more micro-batches than ranks"},
};
static const struct table options = {TABLE("strategy", "options of chimera", chimera_options, fields)};

static bool doubles(const struct plan *plan)
{
    const struct chimera_options *option = plan->options;

    return option->concatenation != DIRECT;
}

static int check(const struct plan *plan, struct loc loc, struct error *err)
{
    return both_ends_check(plan, "chimera", "so that the two directions meet between ranks", loc, err);
}

/* A rank's works by step; a work is one pass of one or two micro-batches. */
struct step { struct work work; int count; };

static void put(struct step *steps, int at, enum work_kind kind, int chunk, int mb, int count)
{
    BUG_IF(steps[at].count);
    steps[at] = (struct step){{.kind = kind, .chunk = chunk, .mb = mb}, count};
}

/* A unit has P/2 forward passes a direction, one every second step. A pass goes down the pipeline and its backward up,
 * a step a stage; the steps of the directions interleave without a clash, and the next unit begins where they are free
 * again, 2P steps later. Of doubled forwards the second micro-batch's backwards take what would be the next unit's
 * forwards, P steps after the first's, and the next unit begins 3P steps later. P = 4, M = 8, a step each:
 *
 *     S4  f1+2 f3+4 .    F1+2 B1   F3+4 B3   b1   B2   b3   B4   b2   .    b4
 *     S3  .    f1+2 F1+2 f3+4 F3+4 B1   b1   B3   b3   B2   b2   B4   b4   .
 *     S2  .    F1+2 f1+2 F3+4 f3+4 b1   B1   b3   B3   b2   B2   b4   B4   .
 *     S1  F1+2 F3+4 .    f1+2 b1   f3+4 b3   B1   b2   B3   b4   B2   .    B4
 */
static void take_steps(struct step *steps, const struct plan *plan, int rank)
{
    int stages = plan->stages, each = plan_micro_batches(plan), half = stages / 2, pass = doubles(plan) ? 2 : 1;

    for (int chunk = 0; chunk < 2; chunk++) {
        int stage = plan_virtual_stage(plan, rank, chunk);

        for (int mb = 0; mb < each; mb += pass) {
            int enters = (pass + 1) * stages * (mb / pass / half) + 2 * (mb / pass % half);
            int count = mb + pass <= each ? pass : each - mb;

            put(steps, enters + stage, FORWARD, chunk, mb, count);
            for (int i = 0; i < count; i++)
                put(steps, enters + 2 * stages - 1 - stage + i * stages, BACKWARD, chunk, mb + i, 1);
        }
    }
}

static void row(struct row *row, const struct plan *plan, int rank)
{
    int count = 3 * plan->stages * ((plan_micro_batches(plan) - 1) / (plan->stages / 2) + 2);
    struct step *steps = xcalloc((size_t)count, sizeof *steps);

    take_steps(steps, plan, rank);
    for (int i = 0; i < count; i++) {
        struct work work = steps[i].work;

        if (steps[i].count == 0)
            continue;
        if (steps[i].count == 2) {
            forward_both(row, work.chunk, work.mb, work.mb + 1);
            continue;
        }
        if (work.kind == BACKWARD && plan->recompute)
            recompute(row, work.chunk, work.mb);
        *GROW(row) = work;
    }
    free(steps);
}

/* With M = P the critical path is P of the shorter work, forward or backward, and 2P-2 of the longer (Li and Hoefler
 * 2021, section 3.1, for backwards that are longer); each further unit adds 2 of the shorter and 2P-2 of the longer.
 * Where a doubled forward takes as long as a backward, all steps are equal: 3P for each 2P micro-batches, and P-2 in
 * which ranks wait. */
static double ideal_makespan(const struct plan *plan, double f, double b, double r)
{
    double back = b + (plan->recompute ? r : 0), stages = plan->stages, units = plan->micro_batches / stages;

    if (fmod(plan->micro_batches, stages) != 0)
        return NAN;
    if (!doubles(plan))
        return (stages - 2 + 2 * units) * fmin(f, back) + units * (2 * stages - 2) * fmax(f, back);
    if (fmod(units, 2) != 0 || 2 * f != back)
        return NAN;
    return (3 * stages * units / 2 + stages - 2) * back;
}

static int ideal_in_flight(const struct plan *plan, int rank)
{
    int block = plan->stages < plan->micro_batches ? plan->stages : plan->micro_batches;
    int most = block / 2 + 1 + both_ends_outside(plan, rank);

    if (doubles(plan))
        return -1;
    return most < block ? most : block;
}

const struct schedule schedule_chimera = {
    .name = "chimera",
    .title = "Chimera",
    .paper = "Li and Hoefler 2021, Chimera: Efficiently Training Large-Scale Neural Networks with Bidirectional "
             "Pipelines (arXiv 2107.06925), section 3 and figure 3",
    .brief = "micro-batches enter at both ends; two copies of the model; with M = P half to two thirds of 1F1B's "
             "bubble",
    .figure = figure,
    .formula = "with M = K P: iteration (P-2+2K) F + K (2P-2) B; with M = P about half the bubble of 1F1B if B = F,\n"
               "two thirds where B = 2 F, and shorter than 1F1B's iteration while K < (2P-1)/(P-2);\n"
               "concatenation: forward-doubling with M = K P, K even, and B = 2 F: (3/2 K P + P-2) B;\n"
               "P/2+1 (outer ranks) to P (middle) micro-batches in flight; twice the parameters",
    .options = &options,
    .placement = PLACEMENT_BIDIRECTIONAL,
    .min_chunks = 2, .max_chunks = 2,
    .check = check,
    .recompute = RECOMPUTE_WITH_GRADIENT,
    .row = row,
    .ideal_makespan = ideal_makespan,
    .ideal_in_flight = ideal_in_flight,
};
