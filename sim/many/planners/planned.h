/* planned: what the planners of papers read and give: a network as a chain of layers, and stages of it on devices. Each
 * planner has a file of its own, which follows its paper's recurrence; its objective is the paper's, not this
 * simulator's. */
#ifndef DTSIM_PLANNED_H
#define DTSIM_PLANNED_H

#include "base/base.h"

/* A layer of a chain, for one micro-batch (PipeDream: minibatch) on one device. */
struct planner_layer {
    double seconds; /* of its forward and backward */
    double weights; /* B */
    double output;  /* B that it gives to the next layer */
};

/* The layers from `begin` to `end` - 1, on `data` replicas of `tensor` devices each. */
struct planned_stage {
    size_t begin, end;
    int data, tensor;
    size_t recomputed; /* number of its layers whose activations are recomputed */
};

enum { PLANNED_MOST = 256 }; /* stages of a plan */
struct planned {
    double objective; /* the planner's; INFINITY: it found no plan */
    size_t count;
    struct planned_stage stages[PLANNED_MOST];
};

#endif
