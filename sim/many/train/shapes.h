/* shapes: what a training is on fewer nodes than it wants: fewer replicas, or another number of pipeline stages, with the
 * same batch. Each is simulated. So Varuna goes on when spot instances come and go (Athlur et al. 2022, "Varuna: Scalable,
 * Low-cost Training of Massive Deep Learning Models", arXiv 2111.04007, job morphing; microsoft/varuna,
 * varuna/auto_config.py: of G GPUs and P stages floor(G/P) replicas, each with the micro-batches that it needs, rounded up;
 * the number of stages that takes least time). */
#ifndef DTSIM_SHAPES_H
#define DTSIM_SHAPES_H

#include "scenario/scenario.h"

/* Replicas, alike but for their stages. Node i holds the i-th part of all GPUs, which the replicas take one after the
 * other, the shallow ones first. */
struct shape {
    int nodes, gpus;
    int replicas, pipeline;          /* all of them; stages of the shallow ones */
    int deep, deep_pipeline;         /* replicas with more stages, and their stages; 0: all replicas have equally
                                        many */
    double stage_nodes;              /* nodes that a stage has */
    double seconds;                  /* of a step with all samples of the scenario's batch */
    double holed_seconds;            /* the same while a node does the work of its lost neighbour too; 0: none can */
    double power;                    /* W of its nodes, mean over the step; NaN: not known */
};

/* The fastest shape for each number of nodes below the scenario's own (nodes 0: there is none), then the scenario's own
 * shape. */
struct shapes { struct shape *on; int nodes; };

/* Simulates all shapes of the scenario's section train.elastic. A shape that does not run, for its memory or its
 * degrees, is none. Errors: too many of them; a cluster whose parts say their nodes; redundancy where a node is no
 * stage. Release in either case. */
int shapes_init(struct shapes *shapes, const struct scenario *scenario, struct error *err);
void shapes_release(struct shapes *shapes);

/* Whether each part of the model is still on a node, when these nodes of the shape are lost (in ascending order). A
 * replica's nodes hold equal parts, in their order, and all replicas hold the same. */
bool shape_keeps(const struct shape *shape, const int *lost, int count);
/* The same where each node, a stage, also holds the next stage of its replica, the last one the first, and other
 * replicas do not help: no two neighbours of a replica are lost. */
bool shape_keeps_neighbours(const struct shape *shape, const int *lost, int count);

#endif
