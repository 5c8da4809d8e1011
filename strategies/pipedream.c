/* PipeDream: asynchronous 1F1B. Micro-batches are its minibatches: the weights are updated after every backward and
 * nothing is flushed, so in the steady state no rank waits; a forward and its backward use the same stashed version of
 * the weights.
 *
 *     S4  .  .  .  F1 B1 ~  F2 B2 ~  F3 B3 ~  F4 B4 ~  F5 B5 ~  F6 B6 ~  .  .  .  .  .  .
 *     S3  .  .  F1 F2 .  .  B1 ~  F3 B2 ~  F4 B3 ~  F5 B4 ~  F6 B5 ~  .  B6 ~  .  .  .  .
 *     S2  .  F1 F2 F3 .  .  .  .  B1 ~  F4 B2 ~  F5 B3 ~  F6 B4 ~  .  B5 ~  .  B6 ~  .  .
 *     S1  F1 F2 F3 F4 .  .  .  .  .  .  B1 ~  F5 B2 ~  F6 B3 ~  .  B4 ~  .  B5 ~  .  B6 ~
 */
#include "schedule.h"

struct pipedream_options {
    const struct node *node;
    bool vertical_sync;
};

static const struct field fields[] = {
    {.key = "vertical_sync", .kind = FIELD_BOOL, .offset = offsetof(struct pipedream_options, vertical_sync),
     .fallback = "false", .brief = "every stage uses the version of the weights that the input stage used"},
};
static const struct table options = {
    .name = "strategy", .brief = "options of pipedream", .fields = fields, .count = COUNT(fields),
    .size = sizeof(struct pipedream_options), .node_offset = offsetof(struct pipedream_options, node),
};

static void row(struct row *row, const struct plan *plan, int rank)
{
    int behind = plan->stages - 1 - rank, total = plan->micro_batches;
    int warm = behind < total ? behind : total;

    for (int mb = 0; mb < warm; mb++)
        forward(row, 0, mb);
    for (int mb = 0; mb < total; mb++) {
        if (warm + mb < total)
            forward(row, 0, warm + mb);
        if (plan->recompute)
            recompute(row, 0, mb);
        backward(row, 0, mb);
        update(row);
    }
}

static bool one_version(const struct plan *plan)
{
    return ((const struct pipedream_options *)plan->options)->vertical_sync;
}

static double ideal_makespan(const struct plan *plan, double f, double b, double r)
{
    return (plan->micro_batches + plan->stages - 1) * (f + b + (plan->recompute ? r : 0));
}

static int ideal_in_flight(const struct plan *plan, int rank)
{
    int limit = plan->stages - rank;

    return limit < plan->micro_batches ? limit : plan->micro_batches;
}

const struct strategy strategy_pipedream = {
    .name = "pipedream",
    .title = "PipeDream (asynchronous 1F1B with weight stashing)",
    .paper = "Narayanan et al. 2019, PipeDream (SOSP), section 3; warm-up and stashing as in its runtime "
             "(github.com/msr-fiddle/pipedream, runtime.py and optimizer.py)",
    .brief = "1F1B without a flush: an update after every backward, weight versions are stashed",
    .figure = "S4  .  .  .  F1 B1 ~  F2 B2 ~  F3 B3 ~  F4 B4 ~  F5 B5 ~  F6 B6 ~  .  .  .  .  .  .\n"
              "S3  .  .  F1 F2 .  .  B1 ~  F3 B2 ~  F4 B3 ~  F5 B4 ~  F6 B5 ~  .  B6 ~  .  .  .  .\n"
              "S2  .  F1 F2 F3 .  .  .  .  B1 ~  F4 B2 ~  F5 B3 ~  F6 B4 ~  .  B5 ~  .  B6 ~  .  .\n"
              "S1  F1 F2 F3 F4 .  .  .  .  .  .  B1 ~  F5 B2 ~  F6 B3 ~  .  B4 ~  .  B5 ~  .  B6 ~\n",
    .formula = "steady state: F + B a minibatch, no bubble; P - rank minibatches in flight, as many weight versions",
    .options = &options,
    .recompute = RECOMPUTE_WITH_GRADIENT,
    .asynchronous = true,
    .vertical_sync = one_version,
    .row = row,
    .ideal_makespan = ideal_makespan,
    .ideal_in_flight = ideal_in_flight,
};
