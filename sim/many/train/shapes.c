#include "train/shapes_internal.h"

#include <math.h>
#include <stdlib.h>

#include "base/base.h"
#include "hardware/cluster.h"
#include "run/energy.h"
#include "scenario/scenario.h"

/* The fullest replica has its micro-batches rounded up, and the step takes as long as its. */
static int add_shape(struct making *making, struct shape shape, struct error *err)
{
    int share = (making->micro_batches + shape.replicas - 1) / shape.replicas,
        rc = shape_simulate(making, &shape, share, NULL, err);

    if (!rc && making->scenario->train->elastic->system == ELASTIC_REDUNDANCY)
        rc = shape_add_holes(making, &shape, share, err);
    if (rc)
        return rc < 0 ? -1 : 0;
    if (shape.nodes == making->shapes->nodes)
        making->shapes->on[shape.nodes] = shape;
    else
        shape_take(making->shapes, &shape);
    return 0;
}

/* All shapes of that number of stages. */
static int add_depth(struct making *making, int pipeline, int least, struct error *err)
{
    int node = cluster_node_gpus(&making->scenario->cluster, 0);

    for (int replicas = least; replicas <= making->micro_batches; replicas++) {
        int gpus = making->stage_gpus * pipeline * replicas, nodes = (gpus + node - 1) / node;
        struct shape shape = {
            .nodes = nodes,
            .gpus = gpus,
            .replicas = replicas,
            .pipeline = pipeline,
            .stage_nodes = (double)making->stage_gpus / node,
        };

        if (nodes >= making->shapes->nodes)
            return 0;
        if (add_shape(making, shape, err))
            return -1;
    }
    return 0;
}

/* The scenario's own shape. With redundancy it is simulated with a hole. */
static int add_own(struct making *making, struct error *err)
{
    const struct scenario *scenario = making->scenario;
    const struct parallelism *parallelism = &scenario->parallelism;
    int node = cluster_node_gpus(&scenario->cluster, 0);
    struct shape own = {
        .nodes = making->shapes->nodes,
        .gpus = scenario_gpus(scenario),
        .replicas = parallelism->data,
        .pipeline = parallelism->pipeline,
        .stage_nodes = (double)making->stage_gpus / node,
    };

    making->shapes->on[own.nodes] = own;
    if (scenario->train->elastic->system != ELASTIC_REDUNDANCY)
        return 0;
    if (own.stage_nodes != 1)
        return error_clash(err, scenario->train->elastic->node->loc,
                           "train: elastic: redundancy: found stages of %d and nodes of %d in "
                           "GPUs; expected as many: a node that is lost is a stage",
                           making->stage_gpus, node);
    return add_shape(making, own, err);
}

static int add_all(struct making *making, struct error *err)
{
    const struct scenario *scenario = making->scenario;
    const struct elastic_spec *spec = scenario->train->elastic;
    bool parts = cluster_given_parts(&scenario->cluster);
    const struct clash clashes[] = {
        {parts, spec->node->loc, "train: elastic: a cluster that says 'parts' has a number of nodes for each of them; expected one "
         "kind of node", {0}},
        {!parts && scenario->views, spec->node->loc, "train: elastic: the pipeline ranks have unequal degrees (strategy.stages), "
         "of which more or fewer replicas are not known; expected equal degrees", {0}},
    };

    if (clashes_add(err, clashes, COUNT(clashes)))
        return -1;
    if (add_own(making, err))
        return -1;
    if (spec->system == ELASTIC_TEMPLATES)
        return shapes_add_templates(making, err);
    if (!spec->pipeline.count)
        return add_depth(making, scenario->parallelism.pipeline, spec->least, err);
    for (size_t i = 0; i < spec->pipeline.count; i++)
        if (add_depth(making, ((const int *)spec->pipeline.items)[i], spec->least, err))
            return -1;
    return 0;
}

int shapes_init(struct shapes *shapes, const struct scenario *scenario, struct error *err)
{
    struct making making = {
        .scenario = scenario,
        .shapes = shapes,
        .micro_batches = scenario->batch.global / scenario->batch.micro,
        .stage_gpus = scenario_gpus(scenario) / scenario->parallelism.data / scenario->parallelism.pipeline,
    };
    int rc;

    shapes->nodes = energy_nodes(scenario);
    shapes->on = xcalloc((size_t)shapes->nodes + 1, sizeof *shapes->on);
    making.layers = xcalloc((size_t)shapes->nodes + 1, sizeof *making.layers);
    rc = add_all(&making, err);
    free(making.layers);
    return rc;
}

void shapes_release(struct shapes *shapes)
{
    free(shapes->on);
    *shapes = (struct shapes){0};
}

static bool among(int node, const int *lost, int count)
{
    for (int i = 0; i < count; i++)
        if (lost[i] == node)
            return true;
    return false;
}

/* Nodes of a replica. */
static double width_of(const struct shape *shape, int replica)
{
    return shape->stage_nodes * (replica < shape->replicas - shape->deep ? shape->pipeline : shape->deep_pipeline);
}

/* A part of the model, from 0 to below 1, is on one of the nodes that are left. */
static bool is_held(const struct shape *shape, double part, const int *lost, int count)
{
    double begin = 0;

    for (int r = 0; r < shape->replicas; begin += width_of(shape, r), r++)
        if (!among((int)floor(begin + part * width_of(shape, r) + 1e-9), lost, count))
            return true;
    return false;
}

/* A part that no node holds begins where a lost node begins to hold one, in some replica. */
bool shape_keeps(const struct shape *shape, const int *lost, int count)
{
    double begin = 0, narrow = shape->stage_nodes * shape->pipeline;

    if (count * ceil(1 + 1 / narrow) < shape->replicas)
        return true;
    for (int r = 0; r < shape->replicas; begin += width_of(shape, r), r++)
        for (int i = 0; i < count; i++) {
            double width = width_of(shape, r), part = fmax(0, (lost[i] - begin) / width);

            if (part < 1 && lost[i] + 1 > begin + 1e-9 && !is_held(shape, part, lost, count))
                return false;
        }
    return true;
}

bool shape_keeps_neighbours(const struct shape *shape, const int *lost, int count)
{
    for (int i = 0; i < count; i++) {
        int first = lost[i] / shape->pipeline * shape->pipeline;

        if (among(first + (lost[i] + 1 - first) % shape->pipeline, lost, count))
            return false;
    }
    return true;
}
