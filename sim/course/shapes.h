/* shapes: what a training is on fewer nodes than it wants: fewer replicas, or another number of pipeline stages, with the
 * same batch. Each is simulated. So Varuna goes on when spot instances come and go (Athlur et al. 2022, "Varuna: Scalable,
 * Low-cost Training of Massive Deep Learning Models", arXiv 2111.04007, job morphing; microsoft/varuna,
 * varuna/auto_config.py: of G GPUs and P stages floor(G/P) replicas, each with the micro-batches that it needs, rounded up;
 * the number of stages that takes least time). */
#ifndef DTSIM_SHAPES_H
#define DTSIM_SHAPES_H

#include "scenario/scenario.h"

struct shape {
    int nodes, gpus, replicas, pipeline;
    double seconds;                  /* of a step with all samples of the scenario's batch */
    double power;                    /* W of its nodes, mean over the step; NaN: not known */
};

/* Of each number of nodes below the scenario's own the fastest shape; nodes 0: there is none. */
struct shapes { struct shape *on; int nodes; };

/* Simulates all shapes of the scenario's section train.elastic. A shape that does not run, for its memory or its degrees,
 * is none. Errors: too many of them; a cluster whose parts say their nodes. Release in either case. */
int shapes_init(struct shapes *shapes, const struct scenario *scenario, struct error *err);
void shapes_release(struct shapes *shapes);

#endif
