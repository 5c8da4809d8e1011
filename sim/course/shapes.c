#include "course/shapes.h"

#include <stdlib.h>

#include "energy/energy.h"
#include "run/run.h"

enum { MOST_SHAPES = 2000 };

/* A shape in the making. */
struct making {
    const struct scenario *scenario;
    struct shapes *shapes;
    int micro_batches;               /* of the batch, over all replicas */
    size_t simulated;
};

static int simulate_shape(const struct scenario *scenario, struct shape *shape, struct error *err)
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
    }
    run_release(&run);
    workload_release(&workload);
    return rc;
}

/* The fullest replica has its micro-batches rounded up, and the step takes as long as its. */
static int vary_and_simulate(const struct making *making, struct shape *shape, struct error *err)
{
    const struct scenario *scenario = making->scenario;
    int share = (making->micro_batches + shape->replicas - 1) / shape->replicas;
    struct arena arena = {0};
    struct scenario varied;
    const char *sets[5];
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
    rc = scenario_vary(scenario, sets, count, &varied, err);
    if (!rc) {
        varied.simulation.engine = scenario->simulation.engine;
        rc = simulate_shape(&varied, shape, err);
    }
    scenario_release(&varied);
    arena_release(&arena);
    return rc;
}

/* Takes the shape for as many nodes as it has and for more, where it is the fastest so far. */
static void take(struct shapes *shapes, const struct shape *shape)
{
    for (int nodes = shape->nodes; nodes < shapes->nodes; nodes++)
        if (!shapes->on[nodes].nodes || shape->seconds < shapes->on[nodes].seconds)
            shapes->on[nodes] = *shape;
}

static int add_shape(struct making *making, struct shape shape, struct error *err)
{
    struct error own = {0};
    int rc = 0;

    if (making->simulated++ == MOST_SHAPES)
        return error_add(err, EXIT_INFEASIBLE, making->scenario->train->node->loc, "train: elastic: more than %d shapes; "
                         "expected fewer numbers of stages, or a larger 'least'", MOST_SHAPES);
    if (!vary_and_simulate(making, &shape, &own))
        take(making->shapes, &shape);
    else if (own.system || error_exit_code(&own) != EXIT_INFEASIBLE)
        rc = error_add(err, own.messages[0].code, own.messages[0].loc, "%s", own.messages[0].text);
    error_release(&own);
    return rc;
}

/* All shapes of so many stages. */
static int add_depth(struct making *making, int pipeline, int least, struct error *err)
{
    const struct scenario *scenario = making->scenario;
    const struct parallelism *own = &scenario->parallelism;
    int replica = scenario_gpus(scenario) / own->data / own->pipeline * pipeline;
    int node = cluster_node_gpus(&scenario->cluster, 0);

    for (int replicas = least; replicas <= making->micro_batches; replicas++) {
        int gpus = replica * replicas, nodes = (gpus + node - 1) / node;

        if (nodes >= making->shapes->nodes)
            return 0;
        if (add_shape(making, (struct shape){nodes, gpus, replicas, pipeline, 0, 0}, err))
            return -1;
    }
    return 0;
}

int shapes_init(struct shapes *shapes, const struct scenario *scenario, struct error *err)
{
    const struct elastic_spec *spec = scenario->train->elastic;
    struct making making = {
        .scenario = scenario, .shapes = shapes, .micro_batches = scenario->batch.global / scenario->batch.micro,
    };

    shapes->nodes = energy_nodes(scenario);
    shapes->on = xcalloc((size_t)shapes->nodes + 1, sizeof *shapes->on);
    if (cluster_said_parts(&scenario->cluster))
        return error_clash(err, spec->node->loc, "train: elastic: a cluster that says 'parts' has a number of nodes for each "
                           "of them; expected one kind of node");
    if (!spec->pipeline.count)
        return add_depth(&making, scenario->parallelism.pipeline, spec->least, err);
    for (size_t i = 0; i < spec->pipeline.count; i++)
        if (add_depth(&making, ((const int *)spec->pipeline.items)[i], spec->least, err))
            return -1;
    return 0;
}

void shapes_release(struct shapes *shapes)
{
    free(shapes->on);
    *shapes = (struct shapes){0};
}
