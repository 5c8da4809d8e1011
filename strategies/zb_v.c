/* ZB-V: two chunks a rank in a V, backwards in two halves, and weight gradients where a rank would wait. A rank holds
 * the memory of 1F1B's first rank, and only the first forwards leave a bubble. */
#include "zb_v.h"

#include <math.h>

static const char figure[] =
    "S3  .  .  F1 f1 F2 f2 F3 f3 i1 w1 F4 I1 W1 f4 i2 w2 F5 I2 W2 f5 i3 I3 i4 I4 i5 I5 w3 W3 w4 W4 w5 W5\n"
    "S2  .  F1 F2 F3 f1 F4 f2 i1 w1 f3 i2 w2 F5 I1 W1 f4 i3 w3 I2 W2 f5 i4 I3 i5 I4 w4 I5 W3 w5 W4 W5 .\n"
    "S1  F1 F2 F3 F4 F5 f1 i1 w1 f2 i2 w2 f3 i3 w3 I1 W1 f4 i4 w4 I2 W2 f5 i5 I3 w5 I4 W3 I5 W4 W5 .  .\n";

#define VARIANTS(X) X(GREEDY, "greedy") X(FIXED, "fixed")
enum { VARIANTS(ENUM_VALUE) };

struct zb_v_options {
    const struct node *node;
    int variant;
};

static const struct field fields[] = {
    {KEY(zb_v_options, variant), .kind = FIELD_CHOICE, .fallback = "greedy", .choices = CHOICES(VARIANTS),
     .brief = "how the order is made",
     .choice_briefs = NAMES("built for the times of the works, as the authors' scheduler does",
                            "an order for F = I = W, as in PyTorch")},
};
static const struct table options = {TABLE("strategy", "options of zb-v", zb_v_options, fields)};

/* A row of the fixed order. The order is written for at least 2P-1 micro-batches; missing ones are left out. */
struct walk { struct row *row; const struct plan *plan; int forwards[2], inputs[2], weights[2]; };

static void next(struct walk *walk, enum work_kind kind, int chunk)
{
    int *counts = kind == FORWARD ? walk->forwards : kind == BACKWARD_INPUT ? walk->inputs : walk->weights;
    int mb = counts[chunk]++;

    if (mb < walk->plan->micro_batches)
        zb_v_append(walk->row, walk->plan, kind, chunk, mb);
}

static void there_and_back(struct walk *walk)
{
    next(walk, FORWARD, 1);
    next(walk, BACKWARD_INPUT, 1);
    next(walk, BACKWARD_WEIGHT, 1);
}

/* PyTorch's ScheduleZBVZeroBubble. */
static void fixed_row(struct row *row, const struct plan *plan, int rank)
{
    struct walk walk = {.row = row, .plan = plan};
    int behind = plan->stages - rank, fewest = 2 * plan->stages - 1;
    int count = plan->micro_batches > fewest ? plan->micro_batches : fewest;

    for (int i = 0; i < 2 * behind - 1; i++)
        next(&walk, FORWARD, 0);
    for (int i = 0; i < rank; i++) {
        next(&walk, FORWARD, 1);
        next(&walk, FORWARD, 0);
    }
    for (int i = 0; i < behind; i++)
        there_and_back(&walk);
    while (walk.forwards[1] < walk.forwards[0] || walk.forwards[0] < count) {
        if (walk.forwards[0] < count)
            next(&walk, FORWARD, 0);
        next(&walk, BACKWARD_INPUT, 0);
        next(&walk, BACKWARD_WEIGHT, 0);
        there_and_back(&walk);
    }
    for (int i = 0; i < rank; i++) {
        next(&walk, BACKWARD_INPUT, 0);
        next(&walk, BACKWARD_INPUT, 1);
    }
    for (int i = 0; i < behind; i++) {
        next(&walk, BACKWARD_INPUT, 0);
        next(&walk, BACKWARD_WEIGHT, 0);
    }
    while (walk.weights[1] < walk.inputs[1])
        next(&walk, BACKWARD_WEIGHT, 1);
    while (walk.weights[0] < walk.inputs[0])
        next(&walk, BACKWARD_WEIGHT, 0);
}

static void rows(struct row *rows, const struct plan *plan)
{
    const struct zb_v_options *option = plan->options;

    if (option->variant == GREEDY)
        zb_v_greedy(rows, plan);
    for (int rank = 0; option->variant == FIXED && rank < plan->stages; rank++)
        fixed_row(&rows[rank], plan, rank);
}

static int least(int a, int b)
{
    return a < b ? a : b;
}

static bool alike(double a, double b)
{
    return fabs(a - b) <= 1e-9 * fabs(a);
}

/* Qi et al. 2023, section 6: with F = I = W every rank but for its start is always busy; enough micro-batches given. */
static double ideal_makespan(const struct plan *plan, double f, double b, double r)
{
    (void)r;
    if (plan->recompute || plan->micro_batches < 2 * plan->stages - 1 || !alike(b, 2 * f))
        return NAN;
    return (6 * plan->micro_batches + plan->stages - 1) * f;
}

/* In the greedy order it depends on the times, and is never above 2P. */
static int ideal_in_flight(const struct plan *plan, int rank)
{
    const struct zb_v_options *option = plan->options;
    const struct plan_times *times = &plan->times;
    int m = plan->micro_batches;

    if (option->variant == FIXED)
        return least(2 * plan->stages, least(2 * m, m + rank + 1));
    if (!alike(times->forward, times->backward_input) || !alike(times->forward, times->backward_weight))
        return -1;
    return least(2 * plan->stages, 2 * m);
}

const struct schedule schedule_zb_v = {
    .name = "zb-v",
    .title = "ZB-V",
    .paper = "Qi et al. 2023, Zero Bubble Pipeline Parallelism (arXiv 2401.10241), section 6",
    .brief = "backwards in two halves, chunks in a V: no bubble in the memory of 1F1B",
    .figure = figure,
    .formula = "with F = I = W and M >= 2P-1: iteration (6M + P-1) F; at most 2P chunks' micro-batches in flight, as "
               "much as P whole ones",
    .options = &options,
    .alternative = true,
    .recompute = RECOMPUTE_WITH_GRADIENT,
    .own_spans = true,
    .timed = true,
    .placement = PLACEMENT_V,
    .min_chunks = 2, .max_chunks = 2,
    .rows = rows,
    .ideal_makespan = ideal_makespan,
    .ideal_in_flight = ideal_in_flight,
};
