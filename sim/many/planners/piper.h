/* piper: Piper's division of layers, one after the other, into stages, each with a data and a tensor degree and a choice,
 * layer by layer, of what is recomputed (Tarnawski et al. 2021, NeurIPS, sections 3 and 4; msr-fiddle/piper d7fc8cf, algo.cpp).
 *
 * For the last layers I, at most k devices and sums s of data degrees,
 *
 *     dp(I, k, s) = min over I' in I, t, d of max( dp(I', k - d t, s - d), TPS(I \ I', t, d, s) )
 *
 * where the stage I \ I' goes before those of I', d divides the micro-batches, and
 *
 *     TPS = ( sum of compute + sum over edges in and out of 2 (bytes + bytes to divide or gather them) / B ) / d
 *           + 4 (d - 1) weights / (d N B),      subject to sum of (a ceil(s / d) + b) <= memory.
 *
 * TPS is s of a sample: N micro-batches. Which layers are recomputed is a knapsack; as in the released program, all of them
 * take their fastest option, and then the layers whose change costs least for the memory that it frees are changed
 * until all fit. */
#ifndef DTSIM_PIPER_H
#define DTSIM_PIPER_H

#include "planners/planned.h"

enum { PIPER_TENSORS = 5, PIPER_OPTIONS = 2, PIPER_NODES = 256 };

/* A layer on each device of a tensor group, for one micro-batch. */
struct piper_option {
    double seconds;     /* of its forward and backward; INFINITY: there is no such option */
    double weights;     /* B */
    double held, fixed; /* B of each micro-batch in flight, and B that do not depend on them */
};
/* options[k]: on tensors[k] devices; first without, then with recomputation. */
struct piper_node {
    struct piper_option options[PIPER_TENSORS][PIPER_OPTIONS];
};
/* B that one layer sends a later one, and, in a tensor group, B with which the sender and the receiver divide or gather
 * them. */
struct piper_edge {
    int from, to;
    double bytes, from_group, to_group;
};

struct piper {
    const struct piper_node *nodes;
    const struct piper_edge *edges;
    size_t nnodes, nedges;
    const int *tensors; /* tensor degrees, at most PIPER_TENSORS */
    size_t ntensors;
    int micro_batches, devices;
    double bandwidth, memory; /* B/s, B */
    int data, tensor;         /* of all stages; 0: any */
};

void piper_plan(const struct piper *question, struct planned *planned);

#endif
