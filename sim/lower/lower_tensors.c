/* ZeRO 3 tensor by tensor (struct tensor_walk). A gather begins when the kernels of the step before have ended, because
 * it may need their memory. The gathers of a step go before the scatter of its gradients. All on one stream. */
#include "lower/lower_internal.h"
#include "stage/stage_memory.h"

#include <stdlib.h>

struct tensors_walk {
    struct lowering *lowering;
    struct place here;
    struct work work;
    struct tensor_walk steps;
    struct event *gathered;          /* a piece: its last gather */
    struct contention *contention;
    uint32_t *latest;
};

/* Lowers the gathers of step k, the kernels of which wait for its own one and overlap with the others. */
static void gather_tensors(struct tensors_walk *walk, size_t k)
{
    struct lowering *lowering = walk->lowering;
    const struct scenario *scenario = lowering->scenario;
    struct event before = event_of(*walk->latest);
    struct contention contention = *walk->contention;
    size_t next;

    while (tensor_walk_gathers(&walk->steps, k, &next)) {
        const struct tensor_step *step = &walk->steps.steps.items[next];

        walk->gathered[step->piece] =
            exchange_alone(lowering, walk->here, scenario->groups.sums[step->class], (struct emission){
                scenario->recipe.weights.collective, WHAT_WEIGHTS,
                step->parameters * scenario_parameter_bytes(scenario).weights,
            }, before);
        if (next == k || next == walk->steps.held || zero_in_turn(lowering))
            *walk->contention = contention;
        if (next == walk->steps.held || zero_in_turn(lowering))
            wait_for(&lowering->waits, walk->gathered[step->piece]);
    }
    wait_for(&lowering->waits, walk->gathered[walk->steps.steps.items[k].piece]);
}

/* Scatters the gradients of a step, and at the end of the iteration sums each share over the replicas that hold it. */
static void scatter_tensor(struct tensors_walk *walk, const struct tensor_step *step, bool last)
{
    struct lowering *lowering = walk->lowering;
    const struct recipe *recipe = &lowering->scenario->recipe;
    double bytes = step->trained * scenario_parameter_bytes(lowering->scenario).sent;
    struct event done = exchange_alone(lowering, walk->here, lowering->scenario->groups.sums[step->class],
                                       (struct emission){recipe->gradients.collective, WHAT_SYNC, bytes},
                                       event_of(*walk->latest));

    if (recipe->gradients.across && last && done.count)
        done = exchange_alone(lowering, walk->here, GROUP_SAME_SHARE, (struct emission){
            recipe->gradients.across, WHAT_SYNC, bytes / recipe->divided[HELD_STATES][step->class],
        }, done);
    if (done.count)
        walk->here.chunk_state->synced = done;
    if (zero_in_turn(lowering)) {
        wait_for(&lowering->waits, done);
        *walk->contention = (struct contention){0};
    }
}

/* Its part of the layer's kernels; the exchanges within the layer go with its last step. */
static void compute_tensor(struct tensors_walk *walk, const struct tensor_step *step, struct new_op op)
{
    struct work_cost all = slice_cost(&walk->here, step->slice, step->kind);
    struct work_cost part = step->ends ? all : (struct work_cost){0};
    struct work work = {.kind = step->kind, .chunk = walk->work.chunk, .mb = walk->work.mb};

    part.times.seconds = all.times.seconds * step->share;
    lower_compute(walk->lowering, &walk->here, work, &part, &op);
    *walk->contention = (struct contention){0};
}

uint32_t tensors_work(struct lowering *lowering, struct place here, struct work work, bool fused, bool completes,
                      struct new_op op)
{
    int prank = here.prank;
    struct tensors_walk walk = {
        .lowering = lowering, .here = here, .work = work, .contention = &lowering->overlapped[prank],
        .latest = &lowering->latest[prank],
    };
    bool scatters = work.kind == BACKWARD || work.kind == BACKWARD_WEIGHT;
    double frees = op.frees;

    op.frees = 0;
    if (fused)                       /* the span begins as a backward */
        lower_compute(lowering, &here, work, &(struct work_cost){0}, &op);
    if (fused)
        op = (struct new_op){.continues = true};
    tensor_walk_init(&walk.steps, lowering->scenario, here.held, work.kind, fused);
    walk.gathered = xcalloc(walk.steps.steps.count + 1, sizeof *walk.gathered);
    for (size_t k = 0; k < walk.steps.steps.count; k++) {
        const struct tensor_step *step = &walk.steps.steps.items[k];

        if (work.kind != BACKWARD_WEIGHT)
            gather_tensors(&walk, k);
        op.frees = k + 1 == walk.steps.steps.count ? frees : 0;
        compute_tensor(&walk, step, op);
        op = (struct new_op){.continues = true};
        if (scatters && step->kind == work.kind)
            scatter_tensor(&walk, step, completes);
        tensor_walk_leave(&walk.steps, k);
    }
    tensor_walk_release(&walk.steps);
    free(walk.gathered);
    return *walk.latest;
}
