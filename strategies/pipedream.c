/* PipeDream: asynchronous 1F1B. Micro-batches are its minibatches. The weights are updated after every backward and
 * nothing is flushed, so in the steady state no rank waits. A forward and its backward use the same stashed version of
 * the weights.
 *
 * Ranks may share a stage (1F1B-RR): they take turns at the minibatches. A minibatch's backward runs on the rank of its
 * forward. The sharers sum their gradients at every update, after one minibatch each (DDP in runtime.py). So they
 * finish forwards at the same time, but the gradients come back one after another; with the paper's number of
 * minibatches in flight, the slowest stage may then wait. Between two shared stages PipeDream's runtime rotates the
 * ranks by one place every round (communication.py, send); here it does not: each rank has the same number of
 * minibatches, but other ones.
 *  */
#include "schedule/schedule.h"

#include <math.h>

static const char figure[] =
    "S4  .  .  .  F1 B1 ~  F2 B2 ~  F3 B3 ~  F4 B4 ~  F5 B5 ~  F6 B6 ~  .  .  .  .  .  .\n"
    "S3  .  .  F1 F2 .  .  B1 ~  F3 B2 ~  F4 B3 ~  F5 B4 ~  F6 B5 ~  .  B6 ~  .  .  .  .\n"
    "S2  .  F1 F2 F3 .  .  .  .  B1 ~  F4 B2 ~  F5 B3 ~  F6 B4 ~  .  B5 ~  .  B6 ~  .  .\n"
    "S1  F1 F2 F3 F4 .  .  .  .  .  .  B1 ~  F5 B2 ~  F6 B3 ~  .  B4 ~  .  B5 ~  .  B6 ~\n";

struct pipedream_options {
    const struct node *node;
    bool vertical_sync;
    struct list stage_replicas;
};

static const struct field fields[] = {
    {KEY(pipedream_options, vertical_sync), .kind = FIELD_BOOL, .fallback = "false",
     .brief = "every stage uses the version of the weights that the input stage used"},
    {KEY(pipedream_options, stage_replicas), .kind = FIELD_INTS, .min = 1, .max = 65536,
     .brief = "number of ranks that share each stage and take turns at the minibatches (1F1B-RR); "
              "[3, 1]: two stages on four ranks; left out: one each"},
};
static const struct table options = {TABLE("strategy", "options of pipedream", pipedream_options, fields)};

/* Forwards before the first backward on the rank: the number of ranks of its own and later stages, less one, divided by
 * the number of ranks that share the stage (runtime.py, num_warmup_minibatches). */
static int warm_up(const struct plan *plan, int rank)
{
    int stage = plan_virtual_stage(plan, rank, 0), sharers = plan_sharers(plan, stage);
    int warm = (plan->stages - 1 - plan_rank(plan, 0, stage, 0, NULL)) / sharers, total = plan->micro_batches / sharers;

    return warm < total ? warm : total;
}

static void row(struct row *row, const struct plan *plan, int rank)
{
    int stage = plan_virtual_stage(plan, rank, 0), sharers = plan_sharers(plan, stage);
    int ahead = warm_up(plan, rank) * sharers, first = rank - plan_rank(plan, 0, stage, 0, NULL);

    for (int mb = first; mb < ahead; mb += sharers)
        forward(row, 0, mb);
    for (int mb = first; mb < plan->micro_batches; mb += sharers) {
        if (ahead + mb < plan->micro_batches)
            forward(row, 0, ahead + mb);
        if (plan->recompute)
            recompute(row, 0, mb);
        backward(row, 0, mb);
        update(row);
    }
}

static const struct list *sharers(const void *chosen)
{
    return chosen ? &((const struct pipedream_options *)chosen)->stage_replicas : NULL;
}

/* Stages that are updated at different rates have no versions in common. */
static int check(const struct plan *plan, struct loc loc, struct error *err)
{
    const struct pipedream_options *chosen = plan->options;

    for (int s = 1; chosen->vertical_sync && s < plan_virtual_stages(plan); s++)
        if (plan_sharers(plan, s) != plan_sharers(plan, 0))
            return error_clash(err, loc,
                               "strategy: vertical_sync: stage %d is on %d ranks and updated at another rate than "
                               "stage 0 on %d; expected as many ranks for all stages in stage_replicas", s,
                               plan_sharers(plan, s), plan_sharers(plan, 0));
    return 0;
}

static bool one_version(const struct plan *plan)
{
    return ((const struct pipedream_options *)plan->options)->vertical_sync;
}

static double ideal_makespan(const struct plan *plan, double f, double b, double r)
{
    if (plan_most_holders(plan) > 1)
        return NAN;
    return (plan->micro_batches + plan->stages - 1) * (f + b + (plan->recompute ? r : 0));
}

static int ideal_in_flight(const struct plan *plan, int rank)
{
    int total = plan->micro_batches / plan_sharers(plan, plan_virtual_stage(plan, rank, 0)), warm = warm_up(plan, rank);

    return warm < total ? warm + 1 : total;
}

const struct schedule schedule_pipedream = {
    .name = "pipedream",
    .title = "PipeDream (asynchronous 1F1B with weight stashing)",
    .paper = "Narayanan et al. 2019, PipeDream (SOSP), section 3; warm-up and stashing as in its runtime "
             "(github.com/msr-fiddle/pipedream, runtime.py and optimizer.py)",
    .brief = "1F1B without a flush: an update after every backward, weight versions are stashed",
    .figure = figure,
    .formula = "steady state: F + B a minibatch, no bubble; P - rank minibatches in flight, as many weight versions; "
               "on a stage of r ranks (F + B) / r at best, ceil(ranks from this stage on / r) in flight on each",
    .options = &options,
    .recompute = RECOMPUTE_WITH_GRADIENT,
    .asynchronous = true,
    .vertical_sync = one_version,
    .sharers = sharers,
    .check = check,
    .row = row,
    .ideal_makespan = ideal_makespan,
    .ideal_in_flight = ideal_in_flight,
};
