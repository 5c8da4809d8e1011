#include "recompute/chain_steps.h"

#include <math.h>
#include <stdint.h>

#include "base/base.h"
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

/* A plan in the making. */
struct making {
    struct every_plan *every;
    const struct chain_layer *layers;
    struct chain_plan plan;
};

/* The next choice out of `of`; after the choices of the last plan it is the first. */
static int choose(struct every_plan *every, int of)
{
    size_t at = every->made++;

    BUG_IF(at == COUNT(every->choice));
    if (at == every->count) {
        every->choice[at] = 0;
        every->count++;
    }
    every->of[at] = of;
    return every->choice[at];
}

static void add_step(struct making *making, bool backward, size_t layer, bool selective)
{
    making->plan.steps[making->plan.nsteps++] =
        (struct chain_step){.backward = backward, .layer = layer, .selective = selective};
}

/* The steps of layers s..t-1, of the first forward or of a recomputation. A recomputation of all of them at once, only to
 * come back to all of them again, is no choice. */
static void make_steps(struct making *making, size_t s, size_t t, bool first)
{
    const struct chain_layer *layer = &making->layers[s];
    size_t end = s, next;
    int saves = 1 + (layer->recompute > 0 && !layer->keep), choice;

    while (end < t - !first && !making->layers[end].keep)
        end++;
    choice = choose(making->every, saves + (int)(end - s));
    next = choice < saves ? s + 1 : s + (size_t)(choice - saves) + 1;
    if (first)
        making->plan.kept[s] = (struct chain_kept){
            .input = true, .rest = choice < saves, .selective = choice == 1 && saves == 2,
        };
    for (size_t l = s; l < next && !first; l++)
        add_step(making, false, l, false);
    if (next < t)
        make_steps(making, next, t, first);
    if (choice < saves)
        add_step(making, true, s, choice == 1);
    else
        make_steps(making, s, next, false);
}

struct chain_plan every_plan(struct every_plan *every, struct arena *arena, const struct chain_layer *layers,
                             size_t count)
{
    struct making making = {
        .every = every, .layers = layers,
        .plan = {.kept = ARENA_ARRAY(arena, struct chain_kept, count),
                 .steps = ARENA_ARRAY(arena, struct chain_step, count * (count + 2))},
    };

    every->made = 0;
    make_steps(&making, 0, count, true);
    while (every->count > 0 && every->choice[every->count - 1] + 1 == every->of[every->count - 1])
        every->count--;
    every->more = every->count > 0;
    if (every->more)
        every->choice[every->count - 1]++;
    return making.plan;
}
