/* stage_plan: a stage computed layer by layer: the activations that each layer's forward leaves on the GPU or in host
 * memory, those that its backward recomputes, and when their memory is taken and freed.
 *
 * - recompute: optimal plans every stage with chain.h, for the memory that rank_plan.h finds. Of each block it keeps
 *   everything, everything but the core of attention, its input, or nothing. With offload: activations the plan may
 *   also send activations to the host; without recompute: optimal it may do only this.
 * - offload: tensors sends single tensors to the host instead of all of a layer (tensors.h); under recompute: full they
 *   are the blocks' inputs, of which as many go as must.
 * - Else all layers keep everything. Under recompute: full they keep their inputs, which go to the host with offload:
 *   activations (DeepSpeed's cpu_checkpointing).
 * Under ZeRO 3 memory_states counts any two blocks as whole, because a plan may go from any block to any other.
 * Plans are made from the times of one class of GPUs (stage_chain.h), and all ranks follow them. They hold no times. */
#ifndef DTSIM_STAGE_PLAN_H
#define DTSIM_STAGE_PLAN_H

#include "recompute/chain_steps.h"
#include "recompute/stage_chain.h"

/* The limits of what copies to the host may still hold: bytes, and number of copies. */
struct room {
    double bytes;
    size_t copies;
};
/* Tensors of a layer that go to the host together and come back together. They may begin to come back before step
 * `step`, when the operation before it has ended and copies to the host leave the room; step -1: while the operation
 * before the first step runs. */
struct plan_copy {
    size_t layer;
    double bytes;
    int step;
    struct room room;
};

struct stage_plan {
    struct chain_kept *kept;     /* a layer, in the order of the forward */
    size_t count;
    double *forward;             /* a layer: B that its forward takes */
    double *moved;               /* a layer: B of `forward` that are in host memory until its first step */
    struct plan_copy *copies;    /* in the order of the forward: `moved`, of each layer at once or tensor by tensor */
    size_t ncopies;
    struct room *forward_room, *step_room; /* a layer, a step: when it begins */
    const struct chain_copy *tensors;      /* ncopies, the tensor of each; NULL: layers go at once */
    struct plan_step *steps;     /* from the end of the forward to the end of the backward */
    size_t nsteps;
    double held, working, offloaded;     /* B, as in struct chain_plan */
};

/* Fills stage.plan and stage.recomputed, for the rows of all ranks and the times of one class of GPUs; all of it lives
 * in the arena. Errors: no plan fits (EXIT_INFEASIBLE, with the least memory that suffices), the host's memory does not
 * suffice (EXIT_INFEASIBLE), the schedule splits its backwards, or ranks share a stage (both EXIT_INFEASIBLE). */
int stage_plans_build(struct arena *arena, const struct scenario *scenario, struct stage *stages,
                      const struct stage_times *times, const struct row *rows, struct error *err);
/* Sets the stage's plan, and finds the bytes that each step takes and frees; layers: stage_chain's. */
void stage_plan_set(struct arena *arena, struct stage *stage, const struct chain_layer *layers,
                    const struct chain_plan *chain);
/* The times of what the stage's plan recomputes in a backward; 0 without a plan. */
struct work_times stage_plan_recomputed(const struct stage *stage, const struct stage_times *times);

#endif
