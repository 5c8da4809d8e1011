/* chain: a checkpoint plan for a chain of layers. It says which activations stay on the GPU, go to host memory, or are
 * recomputed, so that a memory limit holds and the time is least.
 *
 * Recomputation alone is the dynamic programme of Beaumont, Eyraud-Dubois, Herrmann, Joly and Shilova 2019 (Optimal
 * checkpointing for heterogeneous chains; their tool is Rotor). The least time to compute layers s..t-1 forward and
 * backward in memory m either saves all of layer s and goes on with s + 1, or runs forward to some layer j, keeps only
 * j's input, and comes back to s..j-1 later. Five things are added:
 * - A layer may be saved selectively: its own backward recomputes a part of it (selective recomputation: Korthikanti et
 *   al. 2022, section 5).
 * - A pipeline has several micro-batches in flight. Each keeps the activations of its forward while another one's
 *   backward takes working memory. So the first pass has a budget of its own.
 * - Activations that the first pass keeps may go to the host at a price for each byte (Beaumont, Eyraud-Dubois, Shilova
 *   2021, Efficient combination of rematerialization and offloading). Transfers overlap with kernels. The search takes
 *   the price that gives the shortest time.
 * - Or single tensors may go to the host (tensors.h).
 * - If weights are gathered for each use (ZeRO 3), a step takes as long as its kernels or its transfers, whichever is
 *   longer. A layer that is recomputed right before its backward is gathered once for both. */
#ifndef DTSIM_CHAIN_H
#define DTSIM_CHAIN_H

#include "base/progress.h"

struct chain_layer {
    double forward, backward;    /* s of kernels */
    double exchange;             /* s of exchanges within a forward or a recomputation */
    double gather, scatter;      /* s to gather its weights before each use, and to scatter their gradients after its
                                    backward; both overlap with kernels (ZeRO 3) */
    double input;                /* B of its input; it can be recomputed from this alone */
    double saved;                /* B of all tensors that its backward needs, with its input */
    double selective, recompute; /* B that it keeps if saved selectively, with its input, and s of its backward's
                                    recomputation then; recompute 0: it cannot be */
    struct { double forward, backward, selective; } space;   /* B of workspace while each of them runs; a selective
                                    backward's includes its recomputed part */
    bool keep;                   /* it is never recomputed */
    const double *tensors;       /* B of each tensor of `saved` except the input; NULL: they are one tensor */
    size_t ntensors, ncore;      /* the last `ncore` are recomputed by a selective backward */
};

struct chain_limit {
    double memory;               /* B for all micro-batches in flight together */
    int in_flight;               /* micro-batches whose activations are held at once, the one at work included */
    double host_bandwidth;       /* B/s to the host, and back; 0: nothing is offloaded */
    double host_latency;         /* s of a copy, with `tensors` */
    bool recompute;              /* layers may be recomputed */
    bool tensors;                /* tensors go to the host one by one (tensors.h); false: whole parts of layers */
    bool full;                   /* with `tensors`: every layer is recomputed right before its backward */
    bool shared;                 /* other chunks, which have limits of their own, use the same memory */
    struct progress *progress;   /* its budget ends the search; or NULL */
};

/* The activations that the first forward leaves of a layer. */
struct chain_kept {
    bool input, rest;            /* the input; all other tensors that its backward needs, */
    bool selective;              /* without the part that its backward recomputes */
    bool input_offloaded, rest_offloaded;
};

/* A step without `backward` recomputes a layer; a selective backward recomputes a part of its layer. */
struct chain_step { bool backward; size_t layer; bool selective; };

/* A tensor that goes to the host: its layer's input (0) or its tensor number `tensor` - 1. It may begin to come back
 * before step `step`, when the operation before has ended and copies to the host hold `room` B at most; step -1: while
 * the operation before the first step runs. */
struct chain_copy {
    size_t layer, tensor;
    double bytes;
    int step;
    double room;
};

struct chain_plan {
    struct chain_kept *kept;     /* a layer; with `copies`, an offloaded part is offloaded in part at least */
    struct chain_step *steps;    /* from the end of the first forward to the end of the last backward */
    size_t nsteps;
    double held;                 /* B on the GPU from a micro-batch's forward to its backward */
    double working;              /* B in addition to `held`, at most, while its forward or its backward runs */
    double seconds;              /* estimated s, a micro-batch */
    double offloaded;            /* B to the host and back, a micro-batch */
    double moving;               /* B on their way to the host or back, at most, that `working` does not count */
    struct chain_copy *copies;   /* in the order of the forward; NULL: whole parts go, and two copies are under way */
    size_t ncopies;
    double *forward_room, *step_room; /* with `copies`, a layer, a step: B that copies to the host may still hold when
                                         it begins */
};

/* The cost of the search for a chain of that many layers: B of tables, and steps of some ns each to fill them. */
struct chain_effort { double bytes, steps; };
struct chain_effort chain_effort(size_t layers);
/* Plans the chain; with limit.tensors as tensors.h says; everything lives in the arena. Returns -1 if no plan fits,
 * even with full recomputation and offloading, or if the budget is spent (progress_check() tells). A plan never needs
 * more than the limit. The search rounds sizes to a fraction of the limit, so it may miss the least time by about this
 * fraction. */
int chain_plan(struct arena *arena, const struct chain_layer *layers, size_t count, const struct chain_limit *limit,
               struct chain_plan *plan);

#endif
