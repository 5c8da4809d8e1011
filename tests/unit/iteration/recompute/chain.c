/* chain: plans of recomputation and offloading, against liveness counted from their steps, an exhaustive search over
 * every schedule of short chains, and closed forms. */
#include "chain_search.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 10 };

static double uniform(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (double)(*seed >> 40) / (double)(1 << 24);
}

static size_t random_chain(uint64_t *seed, struct chain_layer *layers, size_t most)
{
    size_t n = 1 + (size_t)(uniform(seed) * (double)most);

    for (size_t l = 0; l < n; l++) {
        layers[l] = (struct chain_layer){
            .forward = 1 + floor(4 * uniform(seed)), .input = 1 + floor(3 * uniform(seed)),
        };
        layers[l].backward = 2 * layers[l].forward;
        layers[l].saved = layers[l].input + floor(6 * uniform(seed));
        layers[l].selective = layers[l].input + floor((layers[l].saved - layers[l].input) * uniform(seed));
        layers[l].recompute = layers[l].selective < layers[l].saved ? 0.25 * (1 + floor(4 * uniform(seed))) : 0;
        layers[l].space.selective = layers[l].saved - layers[l].selective;
    }
    return n;
}

static double total_saved(const struct chain_layer *layers, size_t n)
{
    double sum = 0;

    for (size_t l = 0; l < n; l++)
        sum += layers[l].saved;
    return sum;
}

/* B of the activations, without the input, that a layer's backward finds. */
static double rest_found(const struct chain_layer *layer, bool selective)
{
    return (selective ? layer->selective : layer->saved) - layer->input;
}

/* Finds the steps where each value (the inputs, then the other activations) is made and last used, counted backwards
 * over the steps, and the most bytes alive at once. Offloaded values count from their first use in the backward phase
 * on. */
static double most_alive(const struct chain_layer *layers, size_t n, const struct chain_plan *plan)
{
    bool input[MOST + 1] = {false}, rest[MOST] = {false}, backwarded[MOST] = {false}, selective[MOST] = {false};
    double most = 0;

    for (size_t i = plan->nsteps; i-- > 0;) {
        size_t l = plan->steps[i].layer;
        double alive = 0;

        assert_true(l < n);
        if (plan->steps[i].backward) {
            assert_false(backwarded[l]);
            for (size_t k = 0; k < l; k++)          /* counted from the end: steps of earlier layers come later */
                assert_true(backwarded[k]);
            backwarded[l] = input[l] = rest[l] = true;
            selective[l] = plan->steps[i].selective;
            assert_true(!selective[l] || layers[l].recompute > 0);
            /* while it runs, its recomputed part is alive too */
            alive += selective[l] ? layers[l].saved - layers[l].selective : 0;
        } else {
            assert_false(layers[l].keep);
            rest[l] = false;
            if (l + 1 < n)
                input[l + 1] = false;
            input[l] = true;
        }
        for (size_t k = 0; k < n; k++)
            alive += (input[k] ? layers[k].input : 0) + (rest[k] ? rest_found(&layers[k], selective[k]) : 0);
        most = fmax(most, alive);
    }
    for (size_t k = 0; k < n; k++) {
        assert_true(backwarded[k]);
        /* the values alive before the first step are those that the first forward has left */
        assert_true(!rest[k] || plan->kept[k].rest);
        assert_true(!input[k] || plan->kept[k].input);
    }
    return most;
}

/* s of recomputed kernels. */
static double recomputed(const struct chain_layer *layers, const struct chain_plan *plan)
{
    double seconds = 0;

    for (size_t i = 0; i < plan->nsteps; i++) {
        const struct chain_step *step = &plan->steps[i];

        seconds += !step->backward ? layers[step->layer].forward : step->selective ? layers[step->layer].recompute : 0;
    }
    return seconds;
}

static void check_plan(const struct chain_layer *layers, size_t n, const struct chain_limit *limit,
                       const struct chain_plan *plan)
{
    double held = 0, offloaded = 0, largest = 0, alive = most_alive(layers, n, plan);

    for (size_t l = 0; l < n; l++) {
        const struct chain_kept *kept = &plan->kept[l];
        double rest = kept->rest ? rest_found(&layers[l], kept->selective) : 0;
        double input = kept->input ? layers[l].input : 0;

        *(kept->rest_offloaded ? &offloaded : &held) += rest;
        *(kept->input_offloaded ? &offloaded : &held) += input;
        largest = fmax(largest, fmax(kept->rest_offloaded ? rest : 0, kept->input_offloaded ? input : 0));
    }
    assert_true(fabs(held - plan->held) < 1e-9);
    assert_true(fabs(offloaded - plan->offloaded) < 1e-9);
    assert_true(limit->host_bandwidth > 0 || offloaded == 0);
    assert_true(limit->recompute || recomputed(layers, plan) == 0);
    if (offloaded == 0)
        assert_true(alive <= plan->held + plan->working + 1e-9);
    assert_true(limit->in_flight * plan->held + plan->working <= limit->memory * (1 + 1e-9));
}

static void test_valid(void **state)
{
    uint64_t seed = 1;
    int fitting = 0, offloading = 0;

    (void)state;
    for (int i = 0; i < 150; i++) {
        struct chain_layer layers[MOST];
        size_t n = random_chain(&seed, layers, MOST);
        struct arena arena = {0};
        struct chain_plan plan;
        struct chain_limit limit = {
            .in_flight = 1 + (int)(4 * uniform(&seed)), .host_bandwidth = i % 2 ? 4 * uniform(&seed) : 0,
            .recompute = i % 3 != 0,
        };

        limit.memory = (0.2 + uniform(&seed)) * total_saved(layers, n) * limit.in_flight;
        layers[0].keep = i % 5 == 0;
        layers[n - 1].keep = i % 7 == 0;
        if (!chain_plan(&arena, layers, n, &limit, &plan)) {
            check_plan(layers, n, &limit, &plan);
            fitting++;
            offloading += plan.offloaded > 0;
        }
        arena_release(&arena);
    }
    assert_true(fitting > 80 && offloading > 20);
}

static struct chain_limit limited(double memory, int in_flight, double host_bandwidth, bool recompute)
{
    return (struct chain_limit){
        .memory = memory, .in_flight = in_flight, .host_bandwidth = host_bandwidth, .recompute = recompute,
    };
}

static double planned(const struct chain_layer *layers, size_t n, struct chain_limit limit)
{
    struct arena arena = {0};
    struct chain_plan plan;
    double time = INFINITY;

    if (!chain_plan(&arena, layers, n, &limit, &plan)) {
        time = recomputed(layers, &plan);
        for (size_t l = 0; l < n; l++)
            time += layers[l].forward + layers[l].backward;
    }
    arena_release(&arena);
    return time;
}

/* The programme searches persistent schedules, which keep a stored value until its backward: it is never better than
 * the best of all schedules, and nearly always equal. A memory of a whole number of slots loses nothing to rounding. */
static void test_optimal(void **state)
{
    uint64_t seed = 7;
    int same = 0, both = 0;

    (void)state;
    for (int i = 0; i < 60; i++) {
        struct chain_layer layers[SHORT];
        size_t n = random_chain(&seed, layers, SHORT);
        double memory = floor(total_saved(layers, n) * (0.5 + 0.5 * uniform(&seed)));
        double least = exhaustive(layers, n, memory);
        double time = planned(layers, n, (struct chain_limit){.memory = memory, .in_flight = 1, .recompute = true});

        assert_true(time >= least - 1e-9);
        if (isinf(time))
            continue;
        both++;
        same += time < least * (1 + 1e-9);
    }
    assert_true(both > 25);
    assert_true(same >= both * 9 / 10);
}

/* With layers that may be selective a plan is never slower; without recomputation no layer is selective. */
static void test_selective(void **state)
{
    struct chain_layer layers[MOST], plain[MOST];
    int faster = 0;

    (void)state;
    for (size_t l = 0; l < MOST; l++) {
        plain[l] = layers[l] = (struct chain_layer){.forward = 1, .backward = 2, .input = 1, .saved = 10};
        layers[l].selective = 6;
        layers[l].recompute = 0.1;
        layers[l].space.selective = 4;
    }
    /* all selective, and one whole for a while: 6 each and 4 */
    assert_true(fabs(planned(layers, MOST, limited(2 * 6 * MOST + 4, 2, 0, true)) - 3.1 * MOST) <
                1e-9);
    assert_true(isinf(planned(layers, MOST, limited(2 * 6 * MOST + 4, 2, 0, false))));
    for (double memory = 40; memory <= 200; memory += 10) {
        double with = planned(layers, MOST, limited(memory, 2, 0, true));
        double without = planned(plain, MOST, limited(memory, 2, 0, true));

        assert_true(with <= without * (1 + 1e-9));
        faster += with < 0.99 * without;
    }
    assert_true(faster >= 5);
}

static void alike(struct chain_layer *layers, size_t n)
{
    for (size_t l = 0; l < n; l++)
        layers[l] = (struct chain_layer){.forward = 1, .backward = 2, .input = 1, .saved = 10};
}

/* Memory for one input a layer and for one layer's activations: Megatron's full recomputation. With one micro-batch in
 * flight the last layer's backward follows its forward; with several it is recomputed too. */
static void test_full_recomputation(void **state)
{
    struct chain_layer layers[MOST];

    (void)state;
    alike(layers, MOST);
    assert_true(planned(layers, MOST, limited(MOST + 9, 1, 0, true)) == 3 * MOST + MOST - 1);
    assert_true(planned(layers, MOST, limited(4 * MOST + 9.5, 4, 0, true)) == 3 * MOST + MOST);
    assert_true(planned(layers, MOST, limited(4 * MOST * 10, 4, 0, true)) == 3 * MOST);
    assert_true(isinf(planned(layers, MOST, limited(11.5, 1, 0, true))) == 0);
    assert_true(isinf(planned(layers, MOST, limited(9.5, 1, 0, true))));
    assert_true(isinf(planned(layers, MOST, limited(99, 1, 0, false))));
}

/* More memory never makes a plan slower, except for rounding to slots. */
static void test_memory_helps(void **state)
{
    struct chain_layer layers[MOST];
    double before = INFINITY;

    (void)state;
    alike(layers, MOST);
    for (double memory = 11; memory <= 101; memory += 2) {
        double time = planned(layers, MOST, limited(memory, 1, 0, true));

        assert_true(time <= before);
        before = time;
    }
    assert_true(before == 3 * MOST);
}

static double both_ways(const struct chain_layer *layers, double memory, double bandwidth, bool recompute)
{
    struct arena arena = {0};
    struct chain_limit limit = limited(memory, 2, bandwidth, recompute);
    struct chain_plan plan;
    double time = INFINITY, moving;

    if (!chain_plan(&arena, layers, MOST, &limit, &plan)) {
        moving = plan.offloaded > 0 ? plan.offloaded / bandwidth : 0;
        time = fmax(MOST, moving) + fmax(2 * MOST + recomputed(layers, &plan), moving);
    }
    arena_release(&arena);
    return time;
}

/* Recomputation and offloading together are never slower than either alone, and faster if neither alone suffices. */
static void test_combined(void **state)
{
    struct chain_layer layers[MOST];
    int faster = 0;

    (void)state;
    alike(layers, MOST);
    for (double memory = 50; memory <= 200; memory += 20)
        for (double bandwidth = 1; bandwidth <= 8; bandwidth *= 2) {
            double together = both_ways(layers, memory, bandwidth, true);
            double again = both_ways(layers, memory, 0, true), away = both_ways(layers, memory, bandwidth, false);

            assert_true(together <= fmin(again, away) * (1 + 1e-9));
            faster += together < fmin(again, away) * 0.99;
        }
    assert_true(faster >= 3);
    assert_true(both_ways(layers, 90, 1e9, false) < 3 * MOST * (1 + 1e-6));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_valid), cmocka_unit_test(test_selective),
        cmocka_unit_test(test_optimal),
        cmocka_unit_test(test_full_recomputation),
        cmocka_unit_test(test_memory_helps),
        cmocka_unit_test(test_combined),
    };

    return cmocka_run_group_tests_name("chain", tests, NULL, NULL);
}
