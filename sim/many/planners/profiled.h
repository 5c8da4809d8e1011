/* profiled: a scenario's model and cluster as planners profile them: each layer alone, on tensor groups of several
 * sizes. Layers are the embedding, the blocks and the output layer, or the layers whose times are given. */
#ifndef DTSIM_PROFILED_H
#define DTSIM_PROFILED_H

#include "planners/piper.h"
#include "scenario/scenario.h"

/* A layer on each GPU of a tensor group, for one micro-batch; the group's sums are part of its times. */
struct profiled_layer {
    double forward, backward; /* s */
    double weights;           /* B of gradients, as they are sent */
    double states;            /* B of weights, gradients and optimizer states */
    double activation, input; /* B that its backward needs, and of these its input */
    bool block;               /* strategy.split counts it */
};

struct profiled {
    struct arena arena;
    const struct scenario *scenario;
    int micro;                  /* samples of a micro-batch */
    int gpus, per_node;         /* of the cluster; of a node */
    double inside, between;     /* B/s of a GPU to another one in its node, or in another node */
    double memory;              /* B of a GPU for states and activations */
    size_t count, blocks;       /* layers; of these blocks */
    int tensors[PIPER_TENSORS]; /* the scenario's tensor degree, or powers of two that it allows, up to a node */
    size_t ntensors;
    struct profiled_layer *layers[PIPER_TENSORS];
};

/* Reads the scenario with micro-batches of that number of samples. Errors as scenario_vary and workload_init have.
 * Release in either case. */
int profiled_read(const struct scenario *scenario, int micro, struct profiled *profiled, struct error *err);
void profiled_release(struct profiled *profiled);
/* Whether that number of replicas may each take a part of a micro-batch: its samples divide, and its times are not
 * given. */
bool profiled_divides(const struct profiled *profiled, int data);
/* B/s between neighbours in a group of consecutive GPUs, by their number. */
double profiled_bandwidth(const struct profiled *profiled, int gpus);
/* B that a layer gives to the next one, on the k-th tensor degree; 0 behind the last. */
double profiled_output(const struct profiled *profiled, size_t k, size_t layer);

#endif
