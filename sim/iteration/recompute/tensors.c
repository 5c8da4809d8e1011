#include "recompute/tensors.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/progress.h"
#include "recompute/chain_steps.h"
#include "recompute/copies.h"

enum { ALL_SETS = 12 }; /* units of which all sets are tried */

/* The best set of a structure's units so far, and the best of all structures. */
struct choice {
    double seconds, bytes, reserve;
    bool *moves;
};

struct choosing {
    struct copied copied;
    struct choice best;
    bool *trial;
    size_t *by_size; /* the units of each layer, the largest first */
    size_t tries;    /* sets so far */
};

static bool is_better(double seconds, double bytes, const struct choice *than)
{
    const double same = 1e-12;

    if (isinf(seconds))
        return false;
    if (seconds < than->seconds * (1 - same))
        return true;
    return seconds <= than->seconds * (1 + same) && bytes < than->bytes;
}

/* The bytes of a layer that sends most. */
static double largest_layer(const struct copied *copied)
{
    double largest = 0;

    for (size_t l = 0; l < copied->n; l++)
        largest = fmax(largest, copied->moved[l]);
    return largest;
}

/* Tries a set: tensors that come back may use all room, or leave as much as a layer of tensors needs on its way out.
 * Returns whether it fits. */
static bool try_set(struct choosing *choosing, const bool *moves)
{
    double longest = choosing->best.seconds * (1 + 1e-9);        /* that could be better, for all roundings */
    double seconds = copied_seconds(&choosing->copied, moves, 0, longest), bytes = 0, reserve = 0;

    choosing->tries++;
    if (seconds > choosing->copied.seconds && isfinite(seconds)) {
        double most = largest_layer(&choosing->copied);
        double later = copied_seconds(&choosing->copied, moves, most, longest);

        if (later < seconds)
            seconds = later, reserve = most;
    }
    if (seconds > longest)
        return isfinite(seconds);
    for (size_t i = 0; i < choosing->copied.nunits; i++)
        bytes += moves[i] ? choosing->copied.units[i].bytes : 0;
    if (is_better(seconds, bytes, &choosing->best)) {
        choosing->best.seconds = seconds, choosing->best.bytes = bytes, choosing->best.reserve = reserve;
        memcpy(choosing->best.moves, moves, choosing->copied.nunits * sizeof *moves);
    }
    return isfinite(seconds);
}

/* No set takes less time. */
static bool is_least(const struct choosing *choosing)
{
    return choosing->best.seconds <= choosing->copied.seconds * (1 + 1e-12);
}

static void sort_units(struct choosing *choosing)
{
    const struct unit *units = choosing->copied.units;

    for (size_t i = 0; i < choosing->copied.nunits; i++) {
        size_t at = i;

        for (; at > 0 && units[choosing->by_size[at - 1]].layer == units[i].layer &&
               units[choosing->by_size[at - 1]].bytes < units[i].bytes;
             at--)
            choosing->by_size[at] = choosing->by_size[at - 1];
        choosing->by_size[at] = i;
    }
}

/* Lets that many bytes leave, from the first layer on, as fast as `share` of the link's bandwidth allows. */
static void send_early(struct choosing *choosing, double share, double bytes)
{
    const struct copied *copied = &choosing->copied;
    double credit = 0, gone = 0;
    size_t passed = 0;

    for (size_t i = 0; i < copied->nunits; i++) {
        size_t unit = choosing->by_size[i];
        const struct unit *here = &copied->units[unit];

        for (; passed <= here->layer; passed++)
            credit += share * copied->limit->host_bandwidth * copied->forward[passed];
        choosing->trial[unit] = gone < bytes && here->bytes <= credit;
        credit -= choosing->trial[unit] ? here->bytes : 0;
        gone += choosing->trial[unit] ? here->bytes : 0;
    }
}

/* About the fewest bytes of sets that fit with this share, and more. */
static void try_share(struct choosing *choosing, double share)
{
    static const double more[] = {1, 1.02, 1.05, 1.1, 1.2, 1.5};
    enum { HALVINGS = 10 };
    double low = 0, high = choosing->copied.held;

    for (int i = 0; i < HALVINGS; i++) {
        send_early(choosing, share, (low + high) / 2);
        *(try_set(choosing, choosing->trial) ? &high : &low) = (low + high) / 2;
    }
    for (size_t i = 0; i < COUNT(more); i++) {
        send_early(choosing, share, high * more[i]);
        try_set(choosing, choosing->trial);
    }
}

static void try_shares(struct choosing *choosing)
{
    static const double shares[] = {1, 0.9, 0.75, 0.5, 1.15, 1.5, 2, 3, 6, 1e9};

    for (size_t i = 0; i < COUNT(shares) && !is_least(choosing); i++)
        try_share(choosing, shares[i]);
}

static void try_all(struct choosing *choosing)
{
    size_t n = choosing->copied.nunits;

    for (size_t set = 0; set < (size_t)1 << n; set++) {
        for (size_t i = 0; i < n; i++)
            choosing->trial[i] = set >> i & 1;
        try_set(choosing, choosing->trial);
    }
}

/* Single tensors that go or stay, and pairs that change places, as long as that is better. */
static void exchange(struct choosing *choosing)
{
    enum { PASSES = 3, TRIES = 4000, NEAR = 24 };
    size_t n = choosing->copied.nunits, most = choosing->tries + TRIES;
    bool better = true;

    for (int pass = 0; pass < PASSES && better; pass++) {
        better = false;
        for (size_t i = 0; i < n && choosing->tries < most && !is_least(choosing); i++)
            for (size_t k = i; k < n && k < i + NEAR; k++) {
                double before = choosing->best.seconds;

                if (k > i && choosing->best.moves[i] == choosing->best.moves[k])
                    continue;
                memcpy(choosing->trial, choosing->best.moves, n * sizeof *choosing->trial);
                choosing->trial[i] = !choosing->trial[i];
                choosing->trial[k] = k > i ? !choosing->trial[k] : choosing->trial[k];
                try_set(choosing, choosing->trial);
                better |= choosing->best.seconds < before;
            }
    }
}

/* The set that a plan of layers sends. */
static void try_blocks(struct choosing *choosing, const struct chain_plan *blocks)
{
    for (size_t i = 0; i < choosing->copied.nunits; i++) {
        const struct unit *unit = &choosing->copied.units[i];
        const struct chain_kept *kept = &blocks->kept[unit->layer];

        choosing->trial[i] = unit->tensor ? kept->rest_offloaded : kept->input_offloaded;
    }
    try_set(choosing, choosing->trial);
}

static void choosing_init(struct choosing *choosing, struct arena *arena, const struct chain_layer *layers, size_t n,
                          const struct chain_limit *limit, const struct chain_plan *plan)
{
    *choosing = (struct choosing){.best = {.seconds = INFINITY}};
    copied_init(&choosing->copied, arena, layers, n, plan, limit);
    choosing->best.moves = ARENA_ARRAY(arena, bool, choosing->copied.nunits);
    choosing->trial = ARENA_ARRAY(arena, bool, choosing->copied.nunits);
    choosing->by_size = ARENA_ARRAY(arena, size_t, choosing->copied.nunits);
    sort_units(choosing);
}

/* Fills the plan with the best set. */
static void set_plan(struct choosing *choosing, struct arena *arena, const struct chain_plan *steps,
                     struct chain_plan *plan)
{
    struct copied *copied = &choosing->copied;

    copied_seconds(copied, choosing->best.moves, choosing->best.reserve, INFINITY);
    *plan = (struct chain_plan){
        .kept = ARENA_ARRAY(arena, struct chain_kept, copied->n),
        .nsteps = steps->nsteps,
        .steps = ARENA_ARRAY(arena, struct chain_step, steps->nsteps),
        .seconds = choosing->best.seconds,
        .copies = ARENA_ARRAY(arena, struct chain_copy, copied->nunits + 1),
        .moving = copied->window,
        .forward_room = ARENA_ARRAY(arena, double, copied->n),
        .step_room = ARENA_ARRAY(arena, double, steps->nsteps),
    };
    memcpy(plan->steps, steps->steps, steps->nsteps * sizeof *plan->steps);
    memcpy(plan->forward_room, copied->forward_room, copied->n * sizeof *plan->forward_room);
    memcpy(plan->step_room, copied->step_room, steps->nsteps * sizeof *plan->step_room);
    for (size_t l = 0; l < copied->n; l++)
        plan->kept[l] = (struct chain_kept){
            .input = steps->kept[l].input,
            .rest = steps->kept[l].rest,
            .selective = steps->kept[l].selective,
        };
    for (size_t i = 0; i < copied->nunits; i++) {
        const struct unit *unit = &copied->units[i];
        struct chain_kept *kept = &plan->kept[unit->layer];

        *(choosing->best.moves[i] ? &plan->offloaded : &plan->held) += unit->bytes;
        if (!choosing->best.moves[i])
            continue;
        *(unit->tensor ? &kept->rest_offloaded : &kept->input_offloaded) = true;
        plan->copies[plan->ncopies++] = (struct chain_copy){
            unit->layer, unit->tensor, unit->bytes, copied->admitted[unit->layer], copied->coming_room[unit->layer],
        };
    }
    plan->working = fmax(0, copied->most - plan->held);
}

/* The best structure and set so far. */
struct best {
    struct chain_plan plan;
    double seconds, bytes;
    bool found;
};

static void consider(struct best *best, struct arena *arena, const struct chain_layer *layers, size_t n,
                     const struct chain_limit *limit, const struct chain_plan *steps, const struct chain_plan *blocks)
{
    struct arena scratch = {0};
    struct choosing choosing;
    struct choice so_far = {.seconds = best->found ? best->seconds : INFINITY, .bytes = best->bytes};

    choosing_init(&choosing, &scratch, layers, n, limit, steps);
    if (choosing.copied.seconds <= so_far.seconds) {
        try_set(&choosing, choosing.trial); /* none */
        if (blocks)
            try_blocks(&choosing, blocks);
        if (choosing.copied.nunits <= ALL_SETS) {
            try_all(&choosing);
        } else {
            try_shares(&choosing);
            if (isfinite(choosing.best.seconds) && choosing.best.seconds < 1.5 * so_far.seconds)
                exchange(&choosing);
        }
    }
    if (is_better(choosing.best.seconds, choosing.best.bytes, &so_far)) {
        set_plan(&choosing, arena, steps, &best->plan);
        best->seconds = choosing.best.seconds, best->bytes = choosing.best.bytes, best->found = true;
    }
    arena_release(&scratch);
}

void structures_note(struct structures *structures, struct arena *arena, size_t layers, const struct chain_plan *plan)
{
    struct chain_plan copy = {.nsteps = plan->nsteps};

    for (size_t i = 0; i < structures->count; i++) {
        const struct chain_plan *known = &structures->items[i];
        bool same = known->nsteps == plan->nsteps;

        for (size_t k = 0; same && k < plan->nsteps; k++)
            same = known->steps[k].layer == plan->steps[k].layer &&
                   known->steps[k].backward == plan->steps[k].backward &&
                   known->steps[k].selective == plan->steps[k].selective;
        for (size_t l = 0; same && l < layers; l++)
            same = known->kept[l].input == plan->kept[l].input && known->kept[l].rest == plan->kept[l].rest;
        if (same)
            return;
    }
    copy.kept = ARENA_ARRAY(arena, struct chain_kept, layers);
    copy.steps = ARENA_ARRAY(arena, struct chain_step, plan->nsteps);
    memcpy(copy.kept, plan->kept, layers * sizeof *copy.kept);
    memcpy(copy.steps, plan->steps, plan->nsteps * sizeof *copy.steps);
    *GROW(structures) = copy;
}

/* Steps that suggest themselves: to keep everything, or to recompute every layer; of short chains all there are. */
static void note_usual(struct structures *structures, struct arena *arena, const struct chain_layer *layers, size_t n,
                       const struct chain_limit *limit)
{
    enum { SHORT = 8 };          /* tensors, inputs included */
    struct every_plan every = {.more = true};
    struct chain_plan plan = full_plan(arena, layers, n, false);
    size_t tensors = n;

    for (size_t l = 0; l < n; l++)
        tensors += layers[l].tensors ? layers[l].ntensors : 1;
    if (limit->recompute || limit->full)
        structures_note(structures, arena, n, &plan);
    if (limit->full)
        return;
    plan = whole_plan(arena, layers, n);
    structures_note(structures, arena, n, &plan);
    while (limit->recompute && tensors <= SHORT && every.more) {
        plan = every_plan(&every, arena, layers, n);
        structures_note(structures, arena, n, &plan);
    }
}

/* s of the steps, without waits: what sorts structures. */
static double steps_seconds(const struct chain_layer *layers, const struct chain_plan *plan)
{
    double seconds = 0;

    for (size_t i = 0; i < plan->nsteps; i++) {
        const struct chain_layer *layer = &layers[plan->steps[i].layer];

        seconds += !plan->steps[i].backward ? layer->forward + layer->exchange :
                                              layer->backward + (plan->steps[i].selective ? layer->recompute : 0);
    }
    return seconds;
}

/* Orders plans by time, and plans of equal time by when they were noted. */
static void sort_structures(const struct chain_layer *layers, struct structures *all)
{
    for (size_t i = 0; i < all->count; i++) {
        struct chain_plan here = all->items[i];
        size_t at = i;

        here.seconds = steps_seconds(layers, &here);
        for (; at > 0 && all->items[at - 1].seconds > here.seconds; at--)
            all->items[at] = all->items[at - 1];
        all->items[at] = here;
    }
}

int tensors_plan(struct arena *arena, const struct chain_layer *layers, size_t count, const struct chain_limit *limit,
                 const struct structures *structures, const struct chain_plan *blocks, struct chain_plan *plan)
{
    enum { MOST = 24 }; /* structures; more only where they are of short chains */
    struct arena scratch = {0};
    struct structures all = {0};
    struct best best = {.seconds = INFINITY};

    if (blocks)
        consider(&best, arena, layers, count, limit, blocks, blocks);
    note_usual(&all, &scratch, layers, count, limit);
    for (size_t i = 0; i < structures->count; i++)
        structures_note(&all, &scratch, count, &structures->items[i]);
    sort_structures(layers, &all);
    for (size_t i = 0; i < all.count && (i < MOST || count < MOST / 4); i++) {
        if (progress_step(limit->progress, "planning", 0, 0, 0))
            break;
        consider(&best, arena, layers, count, limit, &all.items[i], NULL);
    }
    free(all.items);
    arena_release(&scratch);
    if (!best.found)
        return -1;
    *plan = best.plan;
    return 0;
}

void tensors_share(struct arena *arena, size_t layers, double window, struct chain_plan *plan)
{
    if (!plan->copies)
        plan->copies = ARENA_ARRAY(arena, struct chain_copy, 1);
    plan->forward_room = ARENA_ARRAY(arena, double, layers);
    plan->step_room = ARENA_ARRAY(arena, double, plan->nsteps);
    for (size_t l = 0; l < layers; l++)
        plan->forward_room[l] = window;
    for (size_t k = 0; k < plan->nsteps; k++)
        plan->step_room[k] = window;
}
