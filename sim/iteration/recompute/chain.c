#include "recompute/chain_internal.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/cache.h"
#include "base/progress.h"
#include "recompute/chain_steps.h"

/* A plan in the making. */
struct draft {
    struct chain_plan plan;
    double peak, largest;        /* B at the peak; B of the largest offloaded part */
    double duration;             /* s */
};

static void use(struct draft *draft, double bytes)
{
    draft->peak = fmax(draft->peak, bytes);
}

/* `held`: B in use without the layer's workspace, here and in backward_step. */
static void forward_step(const struct planner *planner, struct draft *draft, int layer, double held)
{
    use(draft, held + planner->layers[layer].space.forward);
    draft->plan.steps[draft->plan.nsteps++] = (struct chain_step){.layer = (size_t)layer};
}

static void backward_step(const struct planner *planner, struct draft *draft, int layer, bool selective, double held)
{
    const struct chain_layer *here = &planner->layers[layer];

    use(draft, held + (selective ? selective_of(here) + here->space.selective : rest_of(here) + here->space.backward));
    draft->plan.steps[draft->plan.nsteps++] =
        (struct chain_step){.backward = true, .layer = (size_t)layer, .selective = selective};
}

/* Recomputes a segment, and computes its backward; `used`: B held already, the segment's input included. */
static void write_segment(const struct planner *planner, int s, int t, int m, double used, struct draft *draft)
{
    int how = planner->how[chain_at(planner, s, t, m)], next = how < 0 ? s + 1 : how;
    struct way way = {.next = next, .saves = how < 0, .selective = how == SAVE_SELECTIVE};
    double held = used, input = next < t ? planner->layers[next].input : 0;
    int left = m - (next < t ? planner->input[next] : 0) - way_slots(planner, s, way);

    used += way_rest(planner, s, way);
    for (int l = s; l < next; l++)
        forward_step(planner, draft, l, used + (l + 1 == next ? input : 0));
    if (next < t)
        write_segment(planner, next, t, left, used + input, draft);
    if (!way.saves) {
        write_segment(planner, s, next, m, used, draft);
        return;
    }
    backward_step(planner, draft, s, way.selective, held);
}

static void leave(struct draft *draft, double bytes, bool offloaded)
{
    *(offloaded ? &draft->plan.offloaded : &draft->plan.held) += bytes;
    if (offloaded)
        draft->largest = fmax(draft->largest, bytes);
}

/* The first pass from layer s, whose input is held, and the backward phase down to it. Offloaded activations have come
 * back when their backward begins. */
static void write_first(const struct planner *planner, int s, int budget, double used, struct draft *draft)
{
    struct way way = chain_way(planner, s, budget);
    double rest = way_rest(planner, s, way);
    double input = way.next < planner->n ? planner->layers[way.next].input : 0;
    int left = budget - (way.offloads_rest ? 0 : way_slots(planner, s, way)) -
               (way.next < planner->n && !way.offloads_input ? planner->input[way.next] : 0);

    for (int l = s; l < way.next; l++)
        use(draft, used + rest + planner->layers[l].space.forward);
    draft->plan.kept[s].rest = way.saves;
    draft->plan.kept[s].selective = way.selective;
    draft->plan.kept[s].rest_offloaded = way.offloads_rest;
    leave(draft, rest, way.offloads_rest);
    if (way.next < planner->n) {
        draft->plan.kept[way.next].input = true;
        draft->plan.kept[way.next].input_offloaded = way.offloads_input;
        leave(draft, input, way.offloads_input);
        write_first(planner, way.next, left,
                    used + (way.offloads_rest ? 0 : rest) + (way.offloads_input ? 0 : input), draft);
    }
    if (way.saves)
        backward_step(planner, draft, s, way.selective, used);
    else
        write_segment(planner, s, way.next, budget + planner->spare, used, draft);
}

/* Seconds of the steps after the first forward. */
static double steps_seconds(const struct planner *planner, const struct chain_plan *plan)
{
    double seconds = 0;

    for (size_t i = 0; i < plan->nsteps; i++) {
        const struct chain_step *step = &plan->steps[i], *next = i + 1 < plan->nsteps ? step + 1 : NULL;
        const struct chain_layer *layer = &planner->layers[step->layer];

        if (step->backward)
            seconds += step_backward(layer, step->selective);
        else if (next && next->layer == step->layer)
            seconds += step_both(layer, next->selective), i++;
        else
            seconds += step_forward(layer);
    }
    return seconds;
}

/* Seconds of a micro-batch; transfers to the host and back overlap with all steps. */
static double duration(const struct planner *planner, const struct chain_plan *plan)
{
    double backward = steps_seconds(planner, plan), moving = 0;

    if (plan->offloaded > 0)
        moving = plan->offloaded / planner->host_bandwidth;
    return fmax(planner->sum[planner->n], moving) + fmax(backward, moving);
}

static void draft_init(struct draft *draft, struct arena *arena, size_t n)
{
    *draft = (struct draft){.duration = INFINITY};
    draft->plan.kept = ARENA_ARRAY(arena, struct chain_kept, n);
    /* at each level of the recursion a layer is computed once, and there are at most n levels */
    draft->plan.steps = ARENA_ARRAY(arena, struct chain_step, n * (n + 2));
}

/* Writes the plan with `in_flight` micro-batches that keep at most `budget` slots each, from fill_first's table. */
static void write_plan(const struct planner *planner, double memory, int in_flight, int budget, struct draft *draft)
{
    bool offloads = planner->offloaded > 0;
    double input = planner->layers[0].input;
    int left = budget - (offloads ? 0 : planner->input[0]);
    struct chain_plan *plan = &draft->plan;

    *draft = (struct draft){.plan = {.kept = plan->kept, .steps = plan->steps}, .duration = INFINITY};
    if (left < 0 || isinf(planner->first[left]))
        return;
    memset(plan->kept, 0, (size_t)planner->n * sizeof *plan->kept);
    plan->kept[0] = (struct chain_kept){.input = true, .input_offloaded = offloads && input > 0};
    leave(draft, input, plan->kept[0].input_offloaded);
    write_first(planner, 0, left, input, draft);
    if (planner->structures)
        structures_note(planner->structures, planner->noted, (size_t)planner->n, plan);
    plan->working = fmax(draft->peak - plan->held, 0) + draft->largest;
    if (in_flight * plan->held + plan->working <= memory)
        draft->duration = plan->seconds = duration(planner, plan);
}

static void consider(struct draft *best, struct draft *trial)
{
    struct draft worse = *best;

    if (trial->duration >= best->duration)
        return;
    *best = *trial;
    *trial = worse;
}

/* B of the largest part that may come back while another one is in use. */
static double coming_room(const struct planner *planner)
{
    double largest = 0;

    for (int l = 0; l < planner->offloaded; l++)
        largest = fmax(largest, fmax(planner->layers[l].input, rest_of(&planner->layers[l])));
    return largest;
}

/* One micro-batch has all the memory. Because sizes are rounded, tries a budget a little too large, then smaller
 * ones. */
static void plan_alone(struct planner *planner, double memory, struct draft *best, struct draft *trial)
{
    int most = (int)floor(fmax(memory - coming_room(planner), 0) / planner->slot + 0.5) + planner->rounding;

    chain_first(planner, 0, most);
    for (int budget = most; budget >= 0 && budget > most - 4 * planner->rounding; budget--) {
        write_plan(planner, memory, 1, budget, trial);
        if (isfinite(trial->duration)) {
            consider(best, trial);
            break;
        }
    }
}

/* Tries a budget of the first pass. Rounded sizes may exceed the memory by `more` slots. */
static void try_budget(struct planner *planner, double memory, int in_flight, int budget, int more,
                       struct draft *best, struct draft *trial)
{
    int spare = (int)floor(memory / planner->slot + 0.5) - in_flight * budget;

    if (budget < 0 || budget > planner->slots)
        return;
    for (; more >= 0; more--) {
        chain_first(planner, spare + more > 0 ? spare + more : 0, budget);
        write_plan(planner, memory, in_flight, budget, trial);
        if (isfinite(trial->duration))
            break;
    }
    consider(best, trial);
}

/* Several micro-batches share the memory: searches for the budget that each may keep, against the working memory of
 * one. Good working memories are often the workspace of a kept layer, of a selective layer, or all of a recomputed
 * layer. Because sizes are rounded, tries their neighbours too, and then evenly spaced budgets. */
static void plan_shared(struct planner *planner, double memory, int in_flight, struct draft *best, struct draft *trial)
{
    enum { TRIES = 12 };
    double space = 0, selective = 0, least = INFINITY, rest = 0, input = 0;
    int most = (int)floor(memory / planner->slot + 0.5) / in_flight + 2;

    for (int l = 0; l < planner->n; l++) {
        const struct chain_layer *layer = &planner->layers[l];

        space = fmax(space, fmax(layer->space.forward, layer->keep ? layer->space.backward : 0));
        selective = fmax(selective, layer->space.selective);
        rest = fmax(rest, layer->keep ? 0 : rest_of(layer) + layer->space.backward);
        least = fmin(least, layer->keep ? INFINITY : rest_of(layer) + layer->space.backward);
        input = fmax(input, layer->input);
    }
    selective = fmax(space, selective);
    rest = fmax(selective, rest);
    const double needs[] = {space, selective, fmin(fmax(selective, least), rest), rest, rest + input};
    for (size_t i = 0; i < COUNT(needs); i++)
        for (int more = 1; more >= -1 && (i == 0 || needs[i] > needs[i - 1]); more--)
            try_budget(planner, memory, in_flight,
                       (int)floor((memory - needs[i]) / planner->slot / in_flight + 0.5) + more, 1, best, trial);
    for (int i = 1; i < TRIES; i++)
        try_budget(planner, memory, in_flight, most - most * i / TRIES, 0, best, trial);
}

static void plan_memory(struct planner *planner, double memory, int in_flight, struct draft *best, struct draft *trial)
{
    if (memory < 0)
        return;
    if (in_flight == 1)
        plan_alone(planner, memory, best, trial);
    else
        plan_shared(planner, memory, in_flight, best, trial);
}
/* B of the buffers for transfers to the host and back: twice the activations of the largest layer. */
static double moving_room(const struct planner *planner)
{
    double largest = 0;

    for (int l = 0; l < planner->n; l++)
        largest = fmax(largest, planner->layers[l].input + rest_of(&planner->layers[l]));
    return 2 * largest;
}

/* Offloads the activations of the first layers, which are kept longest. Tries several numbers of layers and two prices
 * of a byte: nearly nothing, so that only memory counts, and a part of its transfer's time. */
static void plan_offloads(struct planner *planner, const struct chain_limit *limit, struct draft *best,
                          struct draft *trial)
{
    static const double prices[] = {0.02, 0.4};
    enum { TRIES = 8 };
    int tries = planner->n < TRIES ? planner->n : TRIES;

    for (size_t p = 0; p < COUNT(prices); p++)
        for (int i = 1; i <= tries; i++) {
            planner->offloaded = (planner->n * i + tries - 1) / tries;
            planner->price = prices[p] / limit->host_bandwidth;
            plan_memory(planner, limit->memory - moving_room(planner), limit->in_flight, best, trial);
        }
}

/* With tensors one by one also from plans for all the memory, as tensors take less on their way. */
static int choose_tensors(struct planner *planner, struct arena *arena, const struct chain_limit *limit,
                          struct draft *best, struct draft *trial, struct chain_plan *plan)
{
    static const struct chain_plan none = {0};
    bool blocks = isfinite(best->duration);
    struct draft other = *trial;

    draft_init(&other, planner->noted, (size_t)planner->n);
    planner->offloaded = planner->n;
    plan_memory(planner, limit->memory, limit->in_flight, &other, trial);
    *plan = none;
    return tensors_plan(arena, planner->layers, (size_t)planner->n, limit, planner->structures,
                        blocks ? &best->plan : NULL, plan);
}

/* Searches for the plan; everything that stays lives in the arena. */
static int search(struct arena *arena, const struct chain_layer *layers, size_t count, const struct chain_limit *limit,
                  struct chain_plan *plan)
{
    struct planner planner = {
        .layers = layers, .n = (int)count, .recompute = limit->recompute,
        .host_bandwidth = limit->host_bandwidth, .progress = limit->progress,
    };
    struct structures structures = {0};
    struct arena scratch = {0};
    struct draft best, trial;
    int rc;

    if (limit->tensors)
        planner.structures = &structures, planner.noted = &scratch;
    if (limit->full)
        return tensors_plan(arena, layers, count, limit, &structures, NULL, plan);

    if (chain_tables(&planner, &scratch, limit->memory)) {
        arena_release(&scratch);
        return -1;
    }
    draft_init(&best, &scratch, count);
    draft_init(&trial, &scratch, count);
    plan_memory(&planner, limit->memory, limit->in_flight, &best, &trial);
    if (limit->host_bandwidth > 0)
        plan_offloads(&planner, limit, &best, &trial);
    rc = isinf(best.duration) ? -1 : 0;
    if (limit->tensors) {
        rc = choose_tensors(&planner, arena, limit, &best, &trial, plan);
    } else if (!rc) {
        *plan = best.plan;
        plan->moving = plan->offloaded > 0 ? moving_room(&planner) : 0;
        plan->kept = ARENA_ARRAY(arena, struct chain_kept, count);
        plan->steps = ARENA_ARRAY(arena, struct chain_step, plan->nsteps);
        memcpy(plan->kept, best.plan.kept, count * sizeof *plan->kept);
        memcpy(plan->steps, best.plan.steps, plan->nsteps * sizeof *plan->steps);
    }
    free(structures.items);
    arena_release(&scratch);
    return rc;
}

/* All that a plan follows from. */
enum { LAYER_NUMBERS = 12 };         /* a layer begins with them */
static void plan_key(const struct chain_layer *layers, size_t count, const struct chain_limit *limit,
                     struct cache_key *key)
{
    const double numbers[] = {limit->memory, limit->in_flight, limit->host_bandwidth, limit->host_latency,
                              limit->recompute + 2 * limit->tensors + 4 * limit->full + 8 * limit->shared};

    _Static_assert(offsetof(struct chain_layer, keep) == LAYER_NUMBERS * sizeof(double) &&
                   offsetof(struct chain_layer, tensors) <= (LAYER_NUMBERS + 1) * sizeof(double), "a member is in no key");
    /* `progress` says when to give up */
    _Static_assert(offsetof(struct chain_limit, progress) <= sizeof numbers, "a member of the limit is in no key");
    cache_key_add(key, numbers, sizeof numbers);
    for (size_t i = 0; i < count; i++) {
        cache_key_add(key, &layers[i], LAYER_NUMBERS * sizeof(double));
        cache_key_add(key, &layers[i].keep, sizeof layers[i].keep);
        if (!limit->tensors)
            continue;
        cache_key_add(key, (const size_t[]){layers[i].ntensors, layers[i].ncore}, 2 * sizeof(size_t));
        cache_key_add(key, layers[i].tensors, layers[i].ntensors * sizeof(double));
    }
}

/* What a search found. */
struct found { int rc; struct chain_plan plan; };

int chain_plan(struct arena *arena, const struct chain_layer *layers, size_t count, const struct chain_limit *limit,
               struct chain_plan *plan)
{
    struct arena own = {0};
    struct cache_key key = {0};
    const struct found *known;
    struct found *found;
    int rc;

    *plan = whole_plan(arena, layers, count);
    if (!limit->full && plan->held * limit->in_flight + plan->working <= limit->memory)
        return 0;
    if (limit->memory <= 0)
        return -1;
    if (!arena->cache)
        return search(arena, layers, count, limit, plan);
    plan_key(layers, count, limit, &key);
    known = cache_find(arena->cache, CACHE_PLAN, key.items, key.count);
    if (!known) {
        found = ARENA_ARRAY(&own, struct found, 1);
        found->rc = search(&own, layers, count, limit, &found->plan);
        known = found;
    }
    rc = known->rc;
    if (!rc)
        *plan = known->plan;
    if (own.last && ((limit->progress && limit->progress->over) ||       /* it was stopped */
                     !cache_put(arena->cache, CACHE_PLAN, key.items, key.count, known, &own)))
        arena_join(arena, &own);
    free(key.items);
    return rc;
}
