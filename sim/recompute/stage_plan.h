/* stage_plan: a stage computed layer by layer: what each layer's forward leaves on the GPU or in host memory, what its
 * backward computes again, and when all of that comes and goes.
 *
 * - recompute: optimal plans every stage with chain.h for what its rank may hold (rank_plan.h) beside all that
 *   memory_states says and fragmentation, with as many micro-batches in flight as the rows have. It may keep of each
 *   block everything, all but the core of attention, its input or nothing. With offload: activations the plan may also
 *   send to the host; without recompute: optimal, that alone.
 * - Else all layers keep everything; or under recompute: full their inputs, which go to the host with offload:
 *   activations (DeepSpeed's cpu_checkpointing).
 * Under ZeRO 3 memory_states says which layers are there whole: any two blocks, as a plan may turn from any to any
 * other. The times that plans weigh are stage_chain.h's. */
#ifndef DTSIM_STAGE_PLAN_H
#define DTSIM_STAGE_PLAN_H

#include "recompute/stage_chain.h"

/* One step of the backward phase, and the bytes that it takes when it begins and frees when it ends; a selective
 * backward computes the core of its layer's attention again. */
struct plan_step { bool backward, selective; size_t layer; double takes, frees; };

struct stage_plan {
    struct chain_plan chain;     /* layers in the order of the forward */
    size_t count;
    double *forward;             /* a layer: B that its forward takes */
    double *moved;               /* a layer: B of these that wait in host memory until its first step */
    struct plan_step *steps;     /* chain.nsteps */
};

/* Fills stage.plan and stage.recomputed, for the rows of all ranks; what it allocates lives in the arena. Errors: no
 * plan fits (EXIT_INFEASIBLE, with the least that does), the host's memory does not suffice (EXIT_INFEASIBLE), the
 * schedule splits its backwards (EXIT_INPUT). */
int stage_plans_build(struct arena *arena, const struct scenario *scenario, struct stage *stages,
                      const struct row *rows, struct error *err);
/* Has the stage, whose `chain` is known, computed so; what comes and goes step by step follows. */
void stage_plan_set(struct arena *arena, struct stage *stage, const struct chain_plan *plan);

#endif
