/* A pipeline with a hole, under Bamboo's redundancy (Thorpe et al. 2023, arXiv 2204.12013): the node before the lost
 * one does the work of both. The mean over the nodes that may be lost. */
#include "train/shapes_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"

/* The split of the pipeline without a stage, whose layers its predecessor takes too: "strategy.split=[4, 2, 2]". */
static const char *merged(struct arena *arena, const int *layers, int stages, int first)
{
    const char *list = "";

    for (int i = 0; i < stages; i++) {
        int own = layers[i] + (i == first ? layers[i + 1] : 0);

        if (i != first + 1)
            list = arena_printf(arena, "%s%s%d", list, *list ? ", " : "", own);
    }
    return arena_printf(arena, "strategy.split=[%s]", list);
}

/* Of layers: a stage fewer, two of which are one. The first node's neighbour is the last one; in its place the second
 * one has both here, which a split can say. Where it does not run nothing is filled in. */
static int merge(struct making *making, struct shape *shape, const int *layers, int micro_batches, struct error *err)
{
    int stages = shape->pipeline, rc = 0;
    double sum = 0;

    for (int first = 0; first + 1 < stages && !rc; first++) {
        struct shape holed = *shape;
        struct arena arena = {0};

        holed.pipeline = stages - 1;
        holed.gpus = shape->gpus / stages * (stages - 1);
        holed.nodes = shape->nodes / stages * (stages - 1);
        rc = shape_simulate(making, &holed, micro_batches, merged(&arena, layers, stages, first), err);
        sum += holed.seconds * (first ? 1 : 2);
        arena_release(&arena);
    }
    shape->holed_seconds = rc ? 0 : sum / stages;
    return rc < 0 ? -1 : 0;
}

/* Where stages are given, all alike: one of them takes twice as long. */
static int slow(struct making *making, struct shape *shape, int micro_batches, struct error *err)
{
    struct shape holed = *shape;
    struct arena arena = {0};
    int rc;

    if (making->scenario->model.stages.count != 1)
        return error_clash(err, making->scenario->train->elastic->node->loc,
                           "train: elastic: redundancy: expected a model of layers "
                           "with one chunk a stage, or stages that are all alike");
    rc = shape_simulate(
        making, &holed, micro_batches,
        arena_printf(&arena, "simulation.stragglers=[{gpu: %d, slower: 2}]", shape->pipeline / 2 * making->stage_gpus),
        err);
    arena_release(&arena);
    shape->holed_seconds = rc ? 0 : holed.seconds;
    return rc < 0 ? -1 : 0;
}

int shape_add_holes(struct making *making, struct shape *shape, int micro_batches, struct error *err)
{
    size_t count = (size_t)shape->pipeline;
    int *layers, rc;

    if (shape->pipeline == 1)
        return 0;
    if (!making->layers[0])
        return slow(making, shape, micro_batches, err);
    layers = xcalloc(count, sizeof *layers);
    memcpy(layers, making->layers, count * sizeof *layers);
    rc = merge(making, shape, layers, micro_batches, err);
    free(layers);
    return rc;
}
