/* Every plan of a short chain: each layer is saved, saved selectively, or recomputed in any nesting of segments; the
 * first forward leaves its tensors on the GPU or in host memory. */
#ifndef DTSIM_TEST_ALL_PLANS_H
#define DTSIM_TEST_ALL_PLANS_H

#include "recompute/chain.h"

/* The choices that made a plan, and the number of alternatives of each. The next plan differs in the last choice that
 * can still change. */
struct tape { int value[64], of[64]; size_t used, count; };

static inline int choose(struct tape *tape, int of)
{
    if (tape->used == tape->count) {
        tape->value[tape->count] = 0;
        tape->of[tape->count++] = of;
    }
    return tape->value[tape->used++];
}

/* False when all have been. */
static inline bool tape_next(struct tape *tape)
{
    while (tape->count > 0 && ++tape->value[tape->count - 1] == tape->of[tape->count - 1])
        tape->count--;
    tape->used = 0;
    return tape->count > 0;
}

struct maker {
    const struct chain_layer *layers;
    size_t n;
    bool offloads;
    struct tape *tape;
    struct chain_plan *plan;
};

static inline void add_step(const struct maker *maker, struct chain_step step)
{
    maker->plan->steps[maker->plan->nsteps++] = step;
}

/* The layer behind those that s saves or leaves to be recomputed, up to t (of a segment: not all of it). */
static inline size_t next_of(const struct maker *maker, size_t s, size_t t, bool *saves, bool *selective)
{
    bool may_selective = maker->layers[s].recompute > 0 && !maker->layers[s].keep;
    size_t most = s;
    int choice;

    while (most < t && !maker->layers[most].keep)
        most++;
    choice = choose(maker->tape, (int)(1 + may_selective + most - s));
    *saves = choice < 1 + may_selective;
    *selective = choice == 1 && may_selective;
    return *saves ? s + 1 : s + (size_t)choice - may_selective;
}

static inline void make_segment(const struct maker *maker, size_t s, size_t t)
{
    bool saves, selective;
    size_t next = next_of(maker, s, t - 1, &saves, &selective);

    for (size_t l = s; l < next; l++)
        add_step(maker, (struct chain_step){.layer = l});
    if (next < t)
        make_segment(maker, next, t);
    if (saves)
        add_step(maker, (struct chain_step){.backward = true, .layer = s, .selective = selective});
    else
        make_segment(maker, s, next);
}

static inline bool leave(const struct maker *maker, double bytes)
{
    bool goes = maker->offloads && bytes > 0 && choose(maker->tape, 2);

    *(goes ? &maker->plan->offloaded : &maker->plan->held) += bytes;
    return goes;
}

static inline void make_first(const struct maker *maker, size_t s)
{
    const struct chain_layer *layer = &maker->layers[s];
    struct chain_kept *kept = &maker->plan->kept[s];
    bool saves, selective;
    size_t next;

    kept->input = true;
    kept->input_offloaded = leave(maker, layer->input);
    next = next_of(maker, s, maker->n, &saves, &selective);
    kept->rest = saves;
    kept->selective = selective;
    if (saves)
        kept->rest_offloaded = leave(maker, (selective ? layer->selective : layer->saved) - layer->input);
    if (next < maker->n)
        make_first(maker, next);
    if (saves)
        add_step(maker, (struct chain_step){.backward = true, .layer = s, .selective = selective});
    else
        make_segment(maker, s, next);
}

/* The tape's plan; everything lives in the arena. */
static inline struct chain_plan make_plan(struct arena *arena, const struct chain_layer *layers, size_t n,
                                          bool offloads, struct tape *tape)
{
    struct chain_plan plan = {
        .kept = ARENA_ARRAY(arena, struct chain_kept, n), .steps = ARENA_ARRAY(arena, struct chain_step, n * (n + 2)),
    };

    make_first(&(struct maker){layers, n, offloads, tape, &plan}, 0);
    return plan;
}

#endif
