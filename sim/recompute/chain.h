/* chain: which activations of a chain of layers stay on the GPU, wait in host memory, or are computed again, so that
 * a memory limit holds and the time is least.
 *
 * Recomputation alone is the dynamic programme of Beaumont, Eyraud-Dubois, Herrmann, Joly and Shilova 2019 (Optimal
 * checkpointing for heterogeneous chains; their tool is Rotor): the least time to compute layers s..t-1 forward and
 * backward in memory m either saves all of layer s and goes on with s + 1, or runs forward to some layer j, keeps its
 * input alone, and comes back to s..j-1 later. Three things are added. A layer may be saved selective, without a part
 * that its own backward computes again (selective recomputation: Korthikanti et al. 2022, section 5). A pipeline has
 * several micro-batches in flight, each of which keeps what its forward left while another one's backward takes working
 * memory: the first pass has a budget of its own. And what the first pass keeps may go to the host at a price for each
 * byte (Beaumont, Eyraud-Dubois, Shilova 2021, Efficient combination of rematerialization and offloading): the price
 * that gives the shortest time, with transfers running beside kernels, is looked for. Where weights are gathered for
 * each use (ZeRO 3), a step takes as long as the slower of its kernels and of what travels beside them; a layer that is
 * computed again right before its backward is gathered once for both.
 *  */
#ifndef DTSIM_CHAIN_H
#define DTSIM_CHAIN_H

#include "base/base.h"

struct chain_layer {
    double forward, backward;    /* s of kernels */
    double exchange;             /* s that its GPUs exchange within a forward, whenever it is computed */
    double gather, scatter;      /* s that its weights take to arrive before they are used, and their gradients to leave
                                    after the backward, both beside kernels (ZeRO 3) */
    double input;                /* B of its input, which alone suffices to compute it again */
    double saved;                /* B of all that its backward needs, the input included */
    double selective, recompute; /* it may keep so many B instead, the input included, and compute the rest of them in
                                    its backward, for so many s; recompute 0: it may not */
    struct { double forward, backward, selective; } space;   /* B on top while each of them runs; the selective
                                    backward's with the part that it computes again */
    bool keep;                   /* it is never computed again */
};

struct chain_limit {
    double memory;               /* B, of all micro-batches in flight together */
    int in_flight;               /* micro-batches whose activations are held at once, the one at work included */
    double host_bandwidth;       /* B/s to the host, and back; 0: nothing is offloaded */
    bool recompute;              /* layers may be computed again */
};

/* What the first forward leaves of a layer. */
struct chain_kept {
    bool input, rest;            /* the input; and what else its backward needs, */
    bool selective;              /* but for what that computes again itself */
    bool input_offloaded, rest_offloaded;
};

/* A forward is one that is computed again; a backward is selective where its layer kept less. */
struct chain_step { bool backward; size_t layer; bool selective; };

struct chain_plan {
    struct chain_kept *kept;     /* a layer */
    struct chain_step *steps;    /* from the end of the first forward to the end of the last backward */
    size_t nsteps;
    double recompute;            /* s of kernels computed again, a micro-batch */
    double held;                 /* B on the GPU from a micro-batch's forward to its backward */
    double working;              /* B on top of that, at most, while its forward or its backward runs */
    double seconds;              /* about, a micro-batch */
    double offloaded;            /* B to the host and back, a micro-batch */
    double moving;               /* B of what is on its way to the host or back, at most */
};

/* Plans the chain; everything lives in the arena. Returns -1 where not even computing everything again (and offloading
 * all that may be) fits. A plan never needs more than the limit; sizes are rounded to a fraction of it for the search,
 * so that the least time may be missed by about as much. */
int chain_plan(struct arena *arena, const struct chain_layer *layers, size_t count, const struct chain_limit *limit,
               struct chain_plan *plan);

#endif
