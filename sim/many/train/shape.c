/* One shape of a training, simulated. */
#include "train/shapes_internal.h"

#include "base/base.h"
#include "config/conf.h"
#include "run/memory_advice.h"
#include "run/run.h"
#include "scenario/scenario.h"
#include "workload/workload.h"

static int simulate_shape(const struct making *making, const struct scenario *scenario, struct shape *shape,
                          struct error *err)
{
    struct simulate_options options = simulate_numbers_of(scenario);
    struct workload workload = {0};
    struct run run = {0};
    int rc;

    options.no_advice = true;
    rc = simulate_scenario(scenario, options, &workload, &run, err);
    if (!rc) {
        shape->seconds = run.metrics.iteration_time;
        shape->power = run.metrics.power;
        for (int i = 0; i < shape->pipeline && i < making->shapes->nodes; i++)
            making->layers[i] = workload.plan.chunks == 1 ? workload.stages[i].layers : 0;
    }
    run_release(&run);
    workload_release(&workload);
    return rc;
}

static int vary_and_simulate(const struct making *making, struct shape *shape, int share, const char *set,
                             struct error *err)
{
    const struct scenario *scenario = making->scenario;
    struct arena arena = {0};
    struct scenario varied;
    const char *sets[6];
    size_t count = 0;
    int rc;

    sets[count++] = arena_printf(&arena, "strategy.data=%d", shape->replicas);
    if (shape->pipeline != scenario->parallelism.pipeline)
        sets[count++] = arena_printf(&arena, "strategy.pipeline=%d", shape->pipeline);
    sets[count++] = arena_printf(&arena, "batch.global=%d", share * shape->replicas * scenario->batch.micro);
    if (node_get(scenario->batch.node, "micro_batches"))
        sets[count++] = arena_printf(&arena, "batch.micro_batches=%d", share);
    if (!scenario->cluster.ideal)
        sets[count++] = arena_printf(&arena, "cluster.nodes=%d", shape->nodes);
    if (set)
        sets[count++] = set;
    rc = scenario_vary(scenario, sets, count, &varied, err);
    if (!rc) {
        varied.simulation.engine = scenario->simulation.engine;
        rc = simulate_shape(making, &varied, shape, err);
    }
    scenario_release(&varied);
    arena_release(&arena);
    return rc;
}

int shape_simulate(struct making *making, struct shape *shape, int micro_batches, const char *set, struct error *err)
{
    struct error own = {0};
    int rc;

    if (making->simulated++ == MOST_SHAPES)
        return error_add(err, EXIT_INFEASIBLE, making->scenario->train->node->loc, "train: elastic: more than %d shapes; "
                         "expected fewer numbers of stages, or a larger 'least'", MOST_SHAPES);
    rc = vary_and_simulate(making, shape, micro_batches, set, &own) ? 1 : 0;
    if (rc && (own.system || error_exit_code(&own) != EXIT_INFEASIBLE))
        rc = error_add(err, own.messages[0].code, own.messages[0].loc, "%s", own.messages[0].text);
    error_release(&own);
    return rc;
}

void shape_take(struct shapes *shapes, const struct shape *shape)
{
    for (int nodes = shape->nodes; nodes < shapes->nodes; nodes++)
        if (!shapes->on[nodes].nodes || shape->seconds < shapes->on[nodes].seconds)
            shapes->on[nodes] = *shape;
}
