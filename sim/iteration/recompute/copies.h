/* copies: a micro-batch of a chain whose plan sends single tensors to the host: how long its operations and its copies
 * take together, and how much memory each operation leaves to tensors on their way.
 *
 * A tensor goes to the host when its layer's forward has ended, and is back before the first step of its layer. One
 * stream copies each way, in order; the copies of a layer follow each other, and the first has the link's latency. A
 * copy to the host gives its memory back when it ends; a copy from the host takes memory when it begins. Memory never
 * depends on the order in which copies happen to end: an operation waits until copies to the host have left it enough, and a copy from the host may begin
 * only before a step from which on there is enough. PyTorch's torchtune does so with a fixed number of tensors
 * (training/_activation_offloading.py: OffloadActivations, max_fwd_stash_size), Capuchin with times that it measured
 * (Peng et al. 2020, section 4.4: in-triggers). */
#ifndef DTSIM_COPIES_H
#define DTSIM_COPIES_H

#include "recompute/chain.h"

/* A tensor that the first forward leaves: 0 is its layer's input, i its tensor number i - 1. */
struct unit { size_t layer, tensor; double bytes; };

/* A chain with a plan's steps. */
struct copied {
    const struct chain_layer *layers;
    const struct chain_limit *limit;
    const struct chain_plan *plan;
    size_t n;
    struct unit *units;          /* in the order of the forward */
    size_t nunits;
    double *forward, *step;      /* s of a layer's forward, of a step */
    double *forward_bytes, *step_bytes;  /* B that the micro-batch has on the GPU meanwhile if no tensor leaves it */
    size_t *first;               /* a layer: its first step */
    double held;                 /* B between forward and backward if no tensor leaves the GPU */
    double seconds;              /* s without waiting */
    /* Of the last call of copied_seconds: */
    double *moved;               /* a layer: B that go to the host */
    double *forward_room, *step_room;    /* B that copies to the host may still hold when an operation begins; step -1:
                                            when the one before the first step does, a forward or the end of another
                                            micro-batch's backward */
    int *admitted;               /* a layer: the step before which its tensors may begin to come back; -1: while the
                                    operation before the first step runs */
    double *coming_room;         /* a layer: B that copies to the host may still hold then */
    double most;                 /* B that the micro-batch has on the GPU at most, without tensors on their way */
    double window;               /* B for tensors on their way that no operation counts, where chunks share memory */
    struct out { double done, sum; } *outs;  /* copies to the host: when they end; B of all until then */
    double *ahead, *arrives;     /* a step from -1 on, a layer: B coming back before it is used; when it has come back */
};

/* Prepares the plan's chain: reads `kept` and `steps` of the plan, but not what it offloads. The result lives in the
 * arena. */
void copied_init(struct copied *copied, struct arena *arena, const struct chain_layer *layers, size_t n,
                 const struct chain_plan *plan, const struct chain_limit *limit);
/* Seconds of a micro-batch if the tensors in `moves` (a bool for each unit) go to the host; INFINITY: they leave too
 * little memory. Tensors that come back leave `reserve` B at least to those that go. With several micro-batches in
 * flight: seconds from one to the next. Where they are more than `most`, any number between `most` and them. */
double copied_seconds(struct copied *copied, const bool *moves, double reserve, double most);

#endif
