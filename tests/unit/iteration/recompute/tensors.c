/* tensors: plans that send single tensors to the host, against a replay that counts bytes at every moment, and against
 * all sets of tensors of short chains. */
#include "recompute/tensors.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "all_plans.h"
#include "recompute/chain_steps.h"
#include "recompute/copies.h"

enum { MOST = 8, PARTS = 4, EVENTS = 4096 };

static double uniform(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (double)(*seed >> 40) / (double)(1 << 24);
}

static double drawn(uint64_t *seed, int least, int most)
{
    return least + floor(uniform(seed) * (most - least + 1));
}

/* A chain of at most `tensors` tensors, inputs included; its layers' tensors are in `bytes`. */
static size_t random_chain(uint64_t *seed, size_t tensors, bool selective, struct chain_layer *layers,
                           double bytes[][PARTS])
{
    size_t n = 0;

    while (tensors > 1 && n < MOST) {
        struct chain_layer *layer = &layers[n];

        *layer = (struct chain_layer){
            .forward = drawn(seed, 1, 5), .input = drawn(seed, 1, 4), .tensors = bytes[n],
            .space = {drawn(seed, 0, 2), drawn(seed, 0, 3), 0},
        };
        layer->backward = layer->forward * drawn(seed, 1, 3);
        layer->saved = layer->selective = layer->input;
        layer->ntensors = (size_t)drawn(seed, 1, (int)fmin(PARTS, (double)tensors - 1));
        layer->ncore = selective && layer->ntensors > 1 && uniform(seed) < 0.5;
        for (size_t i = 0; i < layer->ntensors; i++) {
            bytes[n][i] = drawn(seed, 1, 9);
            layer->saved += bytes[n][i];
            layer->selective += i < layer->ntensors - layer->ncore ? bytes[n][i] : 0;
        }
        layer->recompute = layer->ncore ? 0.5 : 0;
        layer->space.selective = layer->space.backward + layer->saved - layer->selective;
        tensors -= 1 + layer->ntensors;
        n++;
        if (uniform(seed) < 0.15)
            break;
    }
    return n;
}

/* ---- a replay: what begins and ends when, and the bytes on the GPU ---- */

struct event { double at, bytes; bool takes; };
struct replay {
    struct event events[EVENTS];
    size_t count;
    double sent[MOST * (PARTS + 1)], back[MOST * (PARTS + 1)];   /* when each copy to the host, and back, has ended */
    double seconds, most;
};

static void note(struct replay *replay, double at, double bytes, bool takes)
{
    assert_true(replay->count < EVENTS);
    replay->events[replay->count++] = (struct event){at, bytes, takes};
}

/* When the copies so far that have not ended hold so much at most. */
static double wait_for_room(const struct replay *replay, const struct chain_plan *plan, size_t copies, double room)
{
    double held = 0, at = 0;

    for (size_t c = copies; c-- > 0 && at == 0;) {
        held += plan->copies[c].bytes;
        if (held > room)
            at = replay->sent[c];
    }
    return at;
}

/* At one time what is freed is free before anything is taken. */
static int by_time(const void *a, const void *b)
{
    const struct event *x = a, *y = b;

    if (x->at < y->at || x->at > y->at)
        return x->at < y->at ? -1 : 1;
    return (int)x->takes - (int)y->takes;
}

static void find_most(struct replay *replay)
{
    double held = 0;

    qsort(replay->events, replay->count, sizeof *replay->events, by_time);
    for (size_t i = 0; i < replay->count; i++) {
        held += replay->events[i].takes ? replay->events[i].bytes : -replay->events[i].bytes;
        replay->most = fmax(replay->most, held);
    }
    assert_true(fabs(held) < 1e-9);
}

static double copy_seconds(const struct chain_limit *limit, const struct chain_plan *plan, size_t c, bool first)
{
    return (first ? limit->host_latency : 0) + plan->copies[c].bytes / limit->host_bandwidth;
}

/* A micro-batch alone. Its steps' bytes are chain_steps'; what a layer's forward takes follows from what it keeps. */
static void play(struct replay *replay, const struct chain_layer *layers, size_t n, const struct chain_limit *limit,
                 const struct chain_plan *plan)
{
    struct arena arena = {0};
    struct plan_step *steps = chain_steps(&arena, layers, n, plan);
    double now = 0, before = 0, to = 0, from = 0;
    size_t copies = 0, back = plan->ncopies;

    *replay = (struct replay){0};
    for (size_t l = 0; l < n; l++) {
        const struct chain_kept *kept = &plan->kept[l];
        double saved = kept->selective ? layers[l].selective : layers[l].saved, begins;
        double takes = (kept->input ? layers[l].input : 0) + (kept->rest ? saved - layers[l].input : 0);

        begins = fmax(now, wait_for_room(replay, plan, copies, plan->forward_room[l]));
        note(replay, begins, takes + layers[l].space.forward, true);
        before = now;
        now = begins + layers[l].forward;
        note(replay, now, layers[l].space.forward, false);
        for (bool first = true; copies < plan->ncopies && plan->copies[copies].layer == l; first = false) {
            to = fmax(to, now) + copy_seconds(limit, plan, copies, first);
            replay->sent[copies] = to;
            note(replay, to, plan->copies[copies++].bytes, false);
        }
    }
    for (size_t k = 0; k < plan->nsteps; k++) {
        const struct plan_step *step = &steps[k];
        const struct chain_layer *layer = &layers[step->layer];
        double begins = fmax(now, wait_for_room(replay, plan, copies, plan->step_room[k]));
        double space = !step->backward ? layer->space.forward : step->selective ? layer->space.selective :
                                                                                  layer->space.backward;

        for (; back > 0 && plan->copies[back - 1].step <= (int)k; back--) {
            const struct chain_copy *copy = &plan->copies[back - 1];
            bool first = back == plan->ncopies || copy[1].layer != copy->layer;
            double may = fmax(copy->step < 0 ? before : now, wait_for_room(replay, plan, copies, copy->room));

            from = fmax(fmax(from, may), replay->sent[back - 1]);
            note(replay, from, copy->bytes, true);
            from += copy_seconds(limit, plan, back - 1, first);
            replay->back[back - 1] = from;
        }
        for (size_t c = back; c < plan->ncopies; c++)
            begins = plan->copies[c].layer == step->layer ? fmax(begins, replay->back[c]) : begins;
        note(replay, begins, step->takes + space, true);
        now = begins + (step->backward ? layer->backward + (step->selective ? layer->recompute : 0) : layer->forward);
        note(replay, now, step->frees + space, false);
    }
    assert_true(back == 0 && copies == plan->ncopies);
    replay->seconds = now;
    find_most(replay);
    arena_release(&arena);
}

/* ---- all sets of tensors ---- */

/* The plan of the last copied_seconds(). */
static struct chain_plan plan_of(struct arena *arena, const struct copied *copied, const bool *moves)
{
    struct chain_plan plan = *copied->plan;

    plan.copies = ARENA_ARRAY(arena, struct chain_copy, copied->nunits + 1);
    plan.forward_room = copied->forward_room;
    plan.step_room = copied->step_room;
    for (size_t i = 0; i < copied->nunits; i++)
        if (moves[i])
            plan.copies[plan.ncopies++] = (struct chain_copy){
                copied->units[i].layer, copied->units[i].tensor, copied->units[i].bytes,
                copied->admitted[copied->units[i].layer], copied->coming_room[copied->units[i].layer],
            };
    return plan;
}

static double largest_layer(const struct copied *copied)
{
    double largest = 0;

    for (size_t l = 0; l < copied->n; l++)
        largest = fmax(largest, copied->moved[l]);
    return largest;
}

/* The least time of all sets of a plan's tensors; each is played, and keeps the limit. */
static double least_of_sets(const struct chain_layer *layers, size_t n, const struct chain_limit *limit,
                            const struct chain_plan *steps)
{
    static struct replay replay;
    struct arena arena = {0};
    struct copied copied;
    bool moves[MOST * (PARTS + 1)];
    double least = INFINITY;

    copied_init(&copied, &arena, layers, n, steps, limit);
    for (size_t set = 0; set < (size_t)1 << copied.nunits; set++) {
        double reserve = 0;

        for (size_t i = 0; i < copied.nunits; i++)
            moves[i] = set >> i & 1;
        for (int with = 0; with < 2; with++) {
            double none = copied_seconds(&copied, moves, reserve, copied.seconds), much, bound;
            double seconds = copied_seconds(&copied, moves, reserve, INFINITY);
            struct chain_plan plan = plan_of(&arena, &copied, moves);

            if (isinf(seconds))
                break;
            play(&replay, layers, n, limit, &plan);
            if (fabs(replay.seconds - seconds) > 1e-9 * seconds || replay.most > limit->memory + 1e-9)
                fail_msg("set %zu of %zu tensors: %g s, played %g s, %g B of %g", set, copied.nunits, seconds,
                         replay.seconds, replay.most, limit->memory);
            much = copied.seconds + (seconds - copied.seconds) / 2;
            bound = copied_seconds(&copied, moves, reserve, much);
            if (none > seconds * (1 + 1e-12) || bound > seconds * (1 + 1e-12) || (seconds > much && bound < much) ||
                (seconds <= much && bound != seconds))
                fail_msg("set %zu: %g s; if more than %g s do not matter, %g s, than %g s, %g s", set, seconds,
                         copied.seconds, none, much, bound);
            least = fmin(least, seconds);
            reserve = largest_layer(&copied);
        }
    }
    arena_release(&arena);
    return least;
}

static double total_saved(const struct chain_layer *layers, size_t n)
{
    double sum = 0;

    for (size_t l = 0; l < n; l++)
        sum += layers[l].saved;
    return sum;
}

static double most_space(const struct chain_layer *layers, size_t n)
{
    double most = 0;

    for (size_t l = 0; l < n; l++)
        most = fmax(most, fmax(layers[l].space.forward, layers[l].space.backward));
    return most;
}

static struct chain_limit random_limit(uint64_t *seed, const struct chain_layer *layers, size_t n)
{
    double all = total_saved(layers, n) + most_space(layers, n);

    return (struct chain_limit){
        .memory = ceil(all * (0.25 + 0.8 * uniform(seed))), .in_flight = 1, .tensors = true,
        .host_bandwidth = 0.5 + 4 * uniform(seed), .host_latency = 0.2 * uniform(seed),
    };
}

/* Without recomputation: the search finds the best of all sets of up to 8 tensors, or that none fits. */
static void test_all_sets(void **state)
{
    enum { CHAINS = 1500 };
    uint64_t seed = 40;
    int fitting = 0, moving = 0;

    (void)state;
    for (int i = 0; i < CHAINS; i++) {
        double bytes[MOST][PARTS];
        struct chain_layer layers[MOST];
        size_t n = random_chain(&seed, 8, false, layers, bytes);
        struct chain_limit limit = random_limit(&seed, layers, n);
        struct arena arena = {0};
        struct chain_plan whole = whole_plan(&arena, layers, n), plan;
        double least = least_of_sets(layers, n, &limit, &whole);

        if (chain_plan(&arena, layers, n, &limit, &plan))
            plan.seconds = INFINITY;
        if (!(plan.seconds <= least * (1 + 1e-12) && plan.seconds >= least * (1 - 1e-12)))
            fail_msg("chain %d of %zu layers, %g B: planned %g s, best %g s", i, n, limit.memory, plan.seconds, least);
        fitting += isfinite(least);
        moving += isfinite(least) && plan.offloaded > 0;
        arena_release(&arena);
    }
    assert_true(fitting > CHAINS / 3 && moving > CHAINS / 5);
}

/* The best of all plans of recomputation, each with all sets of its tensors. */
static double least_of_plans(const struct chain_layer *layers, size_t n, const struct chain_limit *limit)
{
    struct tape tape = {0};
    double least = INFINITY;

    do {
        struct arena arena = {0};
        struct chain_plan plan = make_plan(&arena, layers, n, false, &tape);

        least = fmin(least, least_of_sets(layers, n, limit, &plan));
        arena_release(&arena);
    } while (tape_next(&tape));
    return least;
}

static void test_all_plans(void **state)
{
    enum { CHAINS = 300 };
    uint64_t seed = 4;
    int fitting = 0, both = 0;

    (void)state;
    for (int i = 0; i < CHAINS; i++) {
        double bytes[MOST][PARTS], least;
        struct chain_layer layers[MOST];
        size_t n = random_chain(&seed, 8, true, layers, bytes);
        struct chain_limit limit = random_limit(&seed, layers, n);
        struct arena arena = {0};
        struct chain_plan plan;

        limit.recompute = true;
        least = least_of_plans(layers, n, &limit);
        if (chain_plan(&arena, layers, n, &limit, &plan))
            plan.seconds = INFINITY;
        if (!(plan.seconds <= least * (1 + 1e-12) && plan.seconds >= least * (1 - 1e-12)))
            fail_msg("chain %d of %zu layers, %g B: planned %g s, best %g s", i, n, limit.memory, plan.seconds, least);
        fitting += isfinite(least);
        both += isfinite(least) && plan.offloaded > 0 && plan.nsteps > n;
        arena_release(&arena);
    }
    assert_true(fitting > CHAINS / 3 && both > CHAINS / 20);
}

/* No set is faster than the link allows: before each forward, all that is made so far and does not fit has been sent;
 * after each backward, all that did not fit has still to come back. */
static double bound(const struct chain_layer *layers, size_t n, const struct chain_limit *limit)
{
    double forward = 0, backward = 0, made = 0, most = 0, back = 0, rest = 0;

    for (size_t l = 0; l < n; l++)
        forward += layers[l].forward, backward += layers[l].backward;
    for (size_t l = 0; l < n; l++) {
        double left = 0;

        made += layers[l].saved;
        for (size_t k = l; k < n; k++)
            left += layers[k].forward;
        most = fmax(most, layers[0].forward + (made + layers[l].space.forward - limit->memory) / limit->host_bandwidth +
                              left);
    }
    for (size_t l = n; l-- > 0; made -= layers[l].saved) {
        rest += layers[l].backward;
        back = fmax(back, rest - layers[l].backward + layers[0].backward +
                              (made + layers[l].space.backward - limit->memory) / limit->host_bandwidth);
    }
    return fmax(forward, most) + fmax(backward, back);
}

/* A plan that is played keeps the limit and takes the time that it says, which is never less than the bound, and often
 * no more than a twentieth above it. */
static void test_long_chains(void **state)
{
    enum { CHAINS = 400 };
    static struct replay replay;
    uint64_t seed = 11;
    int fitting = 0, at_bound = 0;

    (void)state;
    for (int i = 0; i < CHAINS; i++) {
        double bytes[MOST][PARTS];
        struct chain_layer layers[MOST];
        size_t n = random_chain(&seed, 36, true, layers, bytes);
        struct chain_limit limit = random_limit(&seed, layers, n);
        struct arena arena = {0};
        struct chain_plan plan;

        limit.recompute = i % 2;
        if (!chain_plan(&arena, layers, n, &limit, &plan) && plan.copies) {
            double least = bound(layers, n, &limit);

            play(&replay, layers, n, &limit, &plan);
            if (fabs(replay.seconds - plan.seconds) > 1e-9 * plan.seconds || replay.most > limit.memory + 1e-9)
                fail_msg("chain %d: planned %g s, played %g s, %g B of %g", i, plan.seconds, replay.seconds,
                         replay.most, limit.memory);
            if (!limit.recompute && plan.seconds < least * (1 - 1e-9))
                fail_msg("chain %d: planned %g s, bound %g s", i, plan.seconds, least);
            fitting++;
            at_bound += !limit.recompute && plan.seconds <= least * 1.05;
        }
        arena_release(&arena);
    }
    assert_true(fitting > CHAINS / 3 && at_bound > fitting / 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_sets), cmocka_unit_test(test_all_plans), cmocka_unit_test(test_long_chains),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
