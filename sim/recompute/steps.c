#include "recompute/steps.h"

#include <math.h>
#include <stdint.h>

#include "recompute/chain_internal.h"

struct chain_plan whole_plan(struct arena *arena, const struct chain_layer *layers, size_t count)
{
    double most = 0;
    struct chain_plan plan = {
        .kept = ARENA_ARRAY(arena, struct chain_kept, count),
        .steps = ARENA_ARRAY(arena, struct chain_step, count),
    };

    for (size_t l = 0; l < count; l++) {
        plan.kept[l] = (struct chain_kept){.input = true, .rest = true};
        plan.steps[count - 1 - l] = (struct chain_step){.backward = true, .layer = l};
        plan.held += layers[l].input + rest_of(&layers[l]);
        plan.seconds += step_forward(&layers[l]) + step_backward(&layers[l], false);
        most = fmax(most, plan.held + fmax(layers[l].space.forward, layers[l].space.backward));
    }
    plan.nsteps = count;
    plan.working = fmax(most - plan.held, 0);
    return plan;
}

struct chain_plan full_plan(struct arena *arena, const struct chain_layer *layers, size_t count, bool offload)
{
    struct chain_plan plan = {
        .kept = ARENA_ARRAY(arena, struct chain_kept, count),
        .steps = ARENA_ARRAY(arena, struct chain_step, 2 * count),
    };

    for (size_t l = count; l-- > 0;) {
        bool moves = offload && !layers[l].keep && layers[l].input > 0;

        plan.kept[l] = (struct chain_kept){.input = true, .rest = layers[l].keep, .input_offloaded = moves};
        if (!layers[l].keep)
            plan.steps[plan.nsteps++] = (struct chain_step){.layer = l};
        plan.steps[plan.nsteps++] = (struct chain_step){.backward = true, .layer = l};
        *(moves ? &plan.offloaded : &plan.held) += layers[l].keep ? layers[l].saved : layers[l].input;
        plan.working = fmax(plan.working, layers[l].saved);
    }
    return plan;
}

/* The steps at which each layer's backward is, and the last one that makes its input (SIZE_MAX: none does): the last
 * step of the layer before it that comes before its own backward. */
struct uses {
    size_t *back, *last;
};

static struct uses find_uses(struct arena *arena, size_t n, const struct chain_plan *plan)
{
    struct uses uses = {.back = ARENA_ARRAY(arena, size_t, n + 1), .last = ARENA_ARRAY(arena, size_t, n + 1)};

    for (size_t i = 0; i < plan->nsteps; i++)
        if (plan->steps[i].backward)
            uses.back[plan->steps[i].layer] = i;
    for (size_t l = 0; l < n; l++)
        uses.last[l] = SIZE_MAX;
    for (size_t i = 0; i < plan->nsteps; i++) {
        size_t l = plan->steps[i].layer;

        if (!plan->steps[i].backward && l + 1 < n && !plan->kept[l + 1].input && i < uses.back[l + 1])
            uses.last[l + 1] = i;
    }
    return uses;
}

/* The last recomputation of a layer before its backward takes the tensors that the backward needs. The last
 * recomputation of the layer before it takes its input. */
struct plan_step *chain_steps(struct arena *arena, const struct chain_layer *layers, size_t count,
                              const struct chain_plan *plan)
{
    struct plan_step *steps = ARENA_ARRAY(arena, struct plan_step, plan->nsteps);
    struct uses uses = find_uses(arena, count, plan);
    size_t *latest = ARENA_ARRAY(arena, size_t, count); /* a layer: 1 + the last of its steps before its backward */

    for (size_t i = 0; i < plan->nsteps; i++)
        if (!plan->steps[i].backward && i < uses.back[plan->steps[i].layer])
            latest[plan->steps[i].layer] = i + 1;
    for (size_t i = 0; i < plan->nsteps; i++) {
        size_t l = plan->steps[i].layer;
        bool selective = plan->steps[uses.back[l]].selective;
        double saved = selective ? layers[l].selective : layers[l].saved;
        struct plan_step *step = &steps[i];

        *step = (struct plan_step){
            .backward = plan->steps[i].backward,
            .selective = plan->steps[i].selective,
            .layer = l,
        };
        if (step->backward)
            step->frees = saved;
        else if (latest[l] == i + 1)
            step->takes += saved - layers[l].input;
        if (!step->backward && l + 1 < count && uses.last[l + 1] == i)
            step->takes += layers[l + 1].input;
    }
    return steps;
}
