/* One shape of a training, simulated. */
#include "train/shapes_internal.h"

#include "base/base.h"
#include "config/conf.h"
#include "run/attempt.h"
#include "scenario/scenario.h"
#include "workload/workload.h"

static int simulate_shape(const struct making *making, struct attempt *attempt, struct shape *shape, int share, const char *set)
{
    const struct scenario *scenario = making->scenario;
    const struct workload *workload = &attempt->workload;

    attempt_set(attempt, "strategy.data=%d\nbatch.global=%d", shape->replicas,
                share * shape->replicas * scenario->batch.micro);
    if (shape->pipeline != scenario->parallelism.pipeline)
        attempt_set(attempt, "strategy.pipeline=%d", shape->pipeline);
    if (node_get(scenario->batch.node, "micro_batches"))
        attempt_set(attempt, "batch.micro_batches=%d", share);
    if (!scenario->cluster.ideal)
        attempt_set(attempt, "cluster.nodes=%d", shape->nodes);
    if (set)
        attempt_set(attempt, "%s", set);
    if (attempt_run(attempt, simulate_numbers_of(scenario)))
        return -1;
    shape->seconds = attempt->run.metrics.iteration_time;
    shape->power = attempt->run.metrics.power;
    for (int i = 0; i < shape->pipeline && i < making->shapes->nodes; i++)
        making->layers[i] = workload->plan.chunks == 1 ? workload->stages[i].layers : 0;
    return 0;
}

int shape_simulate(struct making *making, struct shape *shape, int micro_batches, const char *set, struct error *err)
{
    struct attempt attempt = {.of = making->scenario};
    const struct error *found = &attempt.found;
    int rc;

    if (making->simulated++ == MOST_SHAPES)
        return error_add(err, EXIT_INFEASIBLE, making->scenario->train->node->loc, "train: elastic: more than %d shapes; "
                         "expected fewer numbers of stages, or a larger 'least'", MOST_SHAPES);
    rc = simulate_shape(making, &attempt, shape, micro_batches, set) ? 1 : 0;
    if (rc && error_exit_code(found) != EXIT_INFEASIBLE)
        rc = error_add(err, found->messages[0].code, found->messages[0].loc, "%s", found->messages[0].text);
    return attempt_end(&attempt, err) ? -1 : rc;
}

void shape_take(struct shapes *shapes, const struct shape *shape)
{
    for (int nodes = shape->nodes; nodes < shapes->nodes; nodes++)
        if (!shapes->on[nodes].nodes || shape->seconds < shapes->on[nodes].seconds)
            shapes->on[nodes] = *shape;
}
