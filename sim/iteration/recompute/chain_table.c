#include "recompute/chain_internal.h"

#include <stdint.h>

#include "base/base.h"
#include "base/progress.h"

/* Rounds to the nearest slot: write_plan checks with bytes whether a plan fits. */
static int slots_of(const struct planner *planner, double bytes)
{
    return (int)fmin(floor(bytes / planner->slot + 0.5), planner->slots + 1.0);
}

/* Segments s..t-1, the shorter ones of the same start first. */
size_t chain_at(const struct planner *planner, int s, int t, int m)
{
    size_t before = (size_t)s * (size_t)planner->n - (size_t)s * (size_t)(s - 1) / 2;

    return (before + (size_t)(t - s - 1)) * (size_t)(planner->slots + 1) + (size_t)m;
}

static bool repeatable(const struct planner *planner, int s, int t)
{
    for (int l = s; l < t; l++)
        if (planner->layers[l].keep)
            return false;
    return planner->recompute;
}

static bool may_be_selective(const struct planner *planner, int l)
{
    return planner->recompute && planner->layers[l].recompute > 0 && !planner->layers[l].keep;
}

static double forward_between(const struct planner *planner, int s, int t)
{
    return planner->sum[t] - planner->sum[s];
}

static int larger(int a, int b)
{
    return a > b ? a : b;
}

/* Tries to save layer s, all of it or selectively, and to go on with s + 1. */
static void save_layer(struct planner *planner, int s, int t, bool selective)
{
    const struct chain_layer *layer = &planner->layers[s];
    double *restrict time = &planner->time[chain_at(planner, s, t, 0)];
    int *restrict how = &planner->how[chain_at(planner, s, t, 0)];
    bool alone = t == s + 1;
    const double *restrict behind = alone ? NULL : &planner->time[chain_at(planner, s + 1, t, 0)];
    int rest = selective ? planner->selective[s] : planner->rest[s], saved = rest + (alone ? 0 : planner->input[s + 1]);
    int least = larger(saved + planner->space[s].forward,
                       rest + (selective ? planner->space[s].selective : planner->space[s].backward));
    int choice = selective ? SAVE_SELECTIVE : SAVE_ALL;
    double own = alone ? step_both(layer, selective) : step_forward(layer) + step_backward(layer, selective);

    for (int m = least; m <= planner->slots; m++) {
        double all = behind ? own + behind[m - saved] : own;

        how[m] = all < time[m] ? choice : how[m];
        time[m] = all < time[m] ? all : time[m];
    }
}

/* The least time over all choices, a table row (all m) at a time. `time`, `left` and `right` are different rows. */
static void fill_segment(struct planner *planner, int s, int t)
{
    double *restrict time = &planner->time[chain_at(planner, s, t, 0)];
    int *restrict how = &planner->how[chain_at(planner, s, t, 0)], space = 0;

    for (int m = 0; m <= planner->slots; m++)
        time[m] = INFINITY, how[m] = SAVE_ALL;
    save_layer(planner, s, t, false);
    if (planner->selective[s] >= 0)
        save_layer(planner, s, t, true);
    for (int j = s + 1; j < t && repeatable(planner, s, j); j++) {
        const double *restrict left = &planner->time[chain_at(planner, s, j, 0)];
        const double *restrict right = &planner->time[chain_at(planner, j, t, 0)];
        double forward = forward_between(planner, s, j);
        int input = planner->input[j], last = input + planner->space[j - 1].forward;

        for (int m = larger(space, last); m <= planner->slots; m++) {
            double all = forward + left[m] + right[m - input];

            how[m] = all < time[m] ? j : how[m];
            time[m] = all < time[m] ? all : time[m];
        }
        space = larger(space, planner->space[j - 1].forward);
    }
}

double way_rest(const struct planner *planner, int s, struct way way)
{
    return !way.saves ? 0 : way.selective ? selective_of(&planner->layers[s]) : rest_of(&planner->layers[s]);
}

int way_slots(const struct planner *planner, int s, struct way way)
{
    return !way.saves ? 0 : way.selective ? planner->selective[s] : planner->rest[s];
}

/* A way in a number, as the table has it; 0: no choice fits. */
enum { WAY_SAVES = 1, WAY_SELECTIVE = 2, WAY_OFFLOADS_REST = 4, WAY_OFFLOADS_INPUT = 8, WAY_NEXT = 16 };

static uint32_t way_code(struct way way)
{
    return (uint32_t)(way.next * WAY_NEXT + way.saves * WAY_SAVES + way.selective * WAY_SELECTIVE +
                      way.offloads_rest * WAY_OFFLOADS_REST + way.offloads_input * WAY_OFFLOADS_INPUT);
}

struct way chain_way(const struct planner *planner, int s, int budget)
{
    uint32_t code = planner->ways[(size_t)s * (size_t)(planner->slots + 1) + (size_t)budget];

    return (struct way){.next = (int)(code / WAY_NEXT), .saves = code & WAY_SAVES, .selective = code & WAY_SELECTIVE,
                        .offloads_rest = code & WAY_OFFLOADS_REST, .offloads_input = code & WAY_OFFLOADS_INPUT};
}

/* One choice at a layer, for all budgets from `least` on. */
struct option {
    uint32_t code;
    int cut;                     /* slots of what it keeps */
    double seconds, price;       /* s without later layers and without `times`; s that its copies are taken to cost */
    const double *times;         /* by budget: s of the segment that is recomputed; NULL: none is */
    const double *behind;        /* by what is left of the budget: s of the layers behind; NULL: there are none */
};

/* Rows of equal length, so that a compiler may take several budgets at once. */
static void try_option(const struct option *option, int least, int budget, double *restrict time,
                       uint32_t *restrict codes)
{
    const double *restrict times = option->times, *restrict behind = option->behind;
    double seconds = option->seconds, price = option->price;
    uint32_t code = option->code;
    int cut = option->cut;

    for (int b = larger(least, cut); b <= budget; b++) {
        double total = (times ? seconds + times[b] : seconds) + price;

        total = behind ? total + behind[b - cut] : total;
        codes[b] = total < time[b] ? code : codes[b];
        time[b] = total < time[b] ? total : time[b];
    }
}

/* Tries to keep or to offload each of a way's two parts: the saved part of the layer, and the next layer's input. */
static void try_way(const struct planner *planner, int s, int least, int budget, double seconds, const double *times,
                    struct way way)
{
    size_t row = (size_t)(planner->slots + 1), here = (size_t)s * row;
    bool last = way.next == planner->n;
    double rest = way_rest(planner, s, way), input = last ? 0 : planner->layers[way.next].input;
    int rest_slots = way_slots(planner, s, way), input_slots = input > 0 ? planner->input[way.next] : 0;

    for (int choice = 0; choice < (planner->offloaded ? 4 : 1); choice++) {
        way.offloads_rest = choice & 1, way.offloads_input = choice & 2;
        if ((way.offloads_rest && (rest == 0 || s >= planner->offloaded)) ||
            (way.offloads_input && (input == 0 || way.next >= planner->offloaded)))
            continue;
        try_option(&(struct option){
                       .code = way_code(way),
                       .cut = (way.offloads_rest ? 0 : rest_slots) + (way.offloads_input ? 0 : input_slots),
                       .seconds = seconds, .times = times,
                       .price = planner->price * ((way.offloads_rest ? rest : 0) + (way.offloads_input ? input : 0)),
                       .behind = last ? NULL : &planner->first[(size_t)way.next * row],
                   }, least, budget, &planner->first[here], &planner->ways[here]);
    }
}

/* The slots that the saved part of layer s, offloaded or not, needs with the workspace of its forward, and of its
 * backward. */
static int way_needs(const struct planner *planner, int s, struct way way)
{
    int backward = way.selective ? planner->space[s].selective : planner->space[s].backward;

    return way_slots(planner, s, way) + larger(planner->space[s].forward, backward);
}

/* The first pass from layer s, which may keep up to `budget` slots. */
static void fill_first(struct planner *planner, int s, int budget)
{
    const struct chain_layer *layer = &planner->layers[s];
    const struct way all = {.next = s + 1, .saves = true};
    const struct way selective = {.next = s + 1, .saves = true, .selective = true};
    size_t here = (size_t)s * (size_t)(planner->slots + 1);
    int spare = planner->spare, space = 0;

    for (int b = 0; b <= budget; b++)
        planner->first[here + (size_t)b] = INFINITY, planner->ways[here + (size_t)b] = 0;
    try_way(planner, s, way_needs(planner, s, all) - spare, budget, step_forward(layer) + step_backward(layer, false),
            NULL, all);
    if (planner->selective[s] >= 0)
        try_way(planner, s, way_needs(planner, s, selective) - spare, budget,
                step_forward(layer) + step_backward(layer, true), NULL, selective);
    for (int j = s + 1; j <= planner->n && repeatable(planner, s, j); j++) {
        space = larger(space, planner->space[j - 1].forward);
        try_way(planner, s, space - spare, budget, forward_between(planner, s, j),
                &planner->time[chain_at(planner, s, j, spare)], (struct way){.next = j});
    }
}

/* The slot size near memory / slots with the least rounding errors: many equal layers would add up equal errors. */
static double slot_size(const struct planner *planner, double memory, int slots)
{
    enum { TRIES = 64 };
    double best = memory / slots, least = INFINITY;

    for (int i = 0; i < TRIES; i++) {
        double size = memory / slots * (1 - 0.5 * i / TRIES), error = 0;

        for (int l = 0; l < planner->n; l++) {
            double input = planner->layers[l].input / size, rest = rest_of(&planner->layers[l]) / size;
            double selective = may_be_selective(planner, l) ? selective_of(&planner->layers[l]) / size : 0;

            error += size * (fabs(input - floor(input + 0.5)) + fabs(rest - floor(rest + 0.5)) +
                             fabs(selective - floor(selective + 0.5)));
        }
        if (error < least)
            least = error, best = size;
    }
    return best;
}

/* Of the limit on memory; the slot is a little smaller (slot_size). */
static int slots_for(size_t layers)
{
    return (int)fmin(1000, fmax(300, 1e9 / pow((double)layers, 3)));
}

/* A segment of each length begins at each layer; it is tried to be cut at each of its layers, for each number of
 * slots. */
struct chain_effort chain_effort(size_t layers)
{
    double n = (double)layers, each = slots_for(layers) * (n * (n + 1) / 2);

    return (struct chain_effort){.bytes = each * (sizeof(double) + sizeof(int)), .steps = each * (n + 2) / 3};
}

int chain_tables(struct planner *planner, struct arena *arena, double memory)
{
    size_t n = (size_t)planner->n, each;

    planner->slot = slot_size(planner, memory, slots_for(n));
    planner->rounding = planner->n / 8 + 2;
    planner->slots = (int)ceil(memory / planner->slot) + planner->rounding;
    each = (size_t)planner->slots + 1;
    planner->sum = ARENA_ARRAY(arena, double, n + 1);
    planner->input = ARENA_ARRAY(arena, int, n);
    planner->rest = ARENA_ARRAY(arena, int, n);
    planner->selective = ARENA_ARRAY(arena, int, n);
    planner->space = arena_alloc(arena, n * sizeof *planner->space);
    planner->time = arena_take(arena, n * (n + 1) / 2 * each * sizeof *planner->time);
    planner->how = arena_take(arena, n * (n + 1) / 2 * each * sizeof *planner->how);
    planner->first = arena_take(arena, n * each * sizeof *planner->first);
    planner->ways = arena_take(arena, n * each * sizeof *planner->ways);
    for (size_t l = 0; l < n; l++) {
        planner->sum[l + 1] = planner->sum[l] + step_forward(&planner->layers[l]);
        planner->input[l] = slots_of(planner, planner->layers[l].input);
        planner->space[l].forward = slots_of(planner, planner->layers[l].space.forward);
        planner->space[l].backward = slots_of(planner, planner->layers[l].space.backward);
        planner->space[l].selective = slots_of(planner, planner->layers[l].space.selective);
        planner->rest[l] = slots_of(planner, rest_of(&planner->layers[l]));
        planner->selective[l] =
            may_be_selective(planner, (int)l) ? slots_of(planner, selective_of(&planner->layers[l])) : -1;
    }
    for (int s = planner->n; s-- > 0;) {
        if (progress_step(planner->progress, "planning", 0, 0, 0))
            return -1;
        for (int t = s + 1; t <= planner->n; t++)
            fill_segment(planner, s, t);
    }
    return 0;
}

void chain_first(struct planner *planner, int spare, int budget)
{
    planner->spare = spare;
    for (int s = planner->n; s-- > 0;)
        fill_first(planner, s, budget);
}
