/* ZB-H1 and ZB-H2: orders as the authors' scheduler builds them, closed forms, and properties for any times. */
#include <time.h>

#include "schedule_rows.h"

#include "strategies/zero_bubble.h"

enum { STAGES = 16, MICRO_BATCHES = 40 };

static const struct zero_bubble_options greedy = {.input_frees = 2.0 / 34}, fixed = {.variant = ZERO_BUBBLE_FIXED};

static struct plan plan_of(int stages, int micro_batches, struct plan_times times)
{
    return (struct plan){
        .stages = stages, .chunks = 1, .micro_batches = micro_batches, .batches = 1, .times = times, .options = &greedy,
    };
}

static const struct { const char *schedule; int stages, micro_batches; const char *orders; } peers[] = {
    {"zb-h1", 2, 2, "0F0,0F1,0I0,0W0,0I1,0W1\n1F0,1I0,1F1,1I1,1W0,1W1\n"},
    {"zb-h1", 4, 8,
     "0F0,0F1,0F2,0F3,0I0,0W0,0F4,0I1,0W1,0F5,0I2,0W2,0F6,0I3,0W3,0F7,0I4,0W4,0I5,0W5,0I6,0W6,0I7,0W7\n"
     "1F0,1F1,1F2,1I0,1F3,1I1,1W0,1F4,1I2,1W1,1F5,1I3,1W2,1F6,1I4,1W3,1F7,1I5,1W4,1I6,1W5,1I7,1W6,1W7\n"
     "2F0,2F1,2I0,2F2,2I1,2F3,2I2,2W0,2F4,2I3,2W1,2F5,2I4,2W2,2F6,2I5,2W3,2F7,2I6,2W4,2I7,2W5,2W6,2W7\n"
     "3F0,3I0,3F1,3I1,3F2,3I2,3F3,3I3,3W0,3F4,3I4,3W1,3F5,3I5,3W2,3F6,3I6,3W3,3F7,3I7,3W4,3W5,3W6,3W7\n"},
    {"zb-h2", 2, 2, "0F0,0F1,0I0,0W0,0I1,0W1\n1F0,1I0,1F1,1I1,1W0,1W1\n"},
    {"zb-h2", 3, 6,
     "0F0,0F1,0F2,0F3,0F4,0I0,0F5,0W0,0I1,0W1,0I2,0W2,0I3,0W3,0I4,0W4,0I5,0W5\n"
     "1F0,1F1,1F2,1I0,1F3,1I1,1F4,1I2,1F5,1I3,1W0,1I4,1W1,1I5,1W2,1W3,1W4,1W5\n"
     "2F0,2I0,2F1,2I1,2F2,2I2,2F3,2I3,2F4,2I4,2F5,2I5,2W0,2W1,2W2,2W3,2W4,2W5\n"},
};

static void test_orders_of_peers(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(peers); i++) {
        struct plan plan = plan_of(peers[i].stages, peers[i].micro_batches, (struct plan_times){1, 1, 1, 0});

        expect_orders(schedule_named(peers[i].schedule), &plan, peers[i].orders);
        plan.times = (struct plan_times){0};         /* if nothing takes time, the order is the same as with equal
                                                      * times */
        expect_orders(schedule_named(peers[i].schedule), &plan, peers[i].orders);
    }
}

static const struct schedule *peer_schedule(const char *peer, int group, struct plan *plan)
{
    plan->times = (struct plan_times){1, 1, 1, 0};
    plan->options = &greedy;
    if (group || (strcmp(peer, "zb_h1") && strcmp(peer, "zb_h2")))
        return NULL;
    return schedule_named(peer[4] == '1' ? "zb-h1" : "zb-h2");
}

static void test_orders_of_folder(void **state)
{
    (void)state;
    expect_orders_of_folder(peer_schedule);
}

static const double equal[WORK_KIND_COUNT] = {[FORWARD] = 1, [BACKWARD_INPUT] = 1, [BACKWARD_WEIGHT] = 1};

/* The memory of k P micro-batches. An I frees 2 parts of 34, so there is room for one more micro-batch in 16 that wait
 * only for their W. */
static int most(int k, int stages)
{
    return k * stages + k * stages / 16;
}

static void test_equal_times(void **state)
{
    (void)state;
    for (int k = 1; k <= 2; k++)
        for (int p = 1; p <= STAGES; p++)
            for (int m = 1; m <= MICRO_BATCHES; m++) {
                const struct schedule *strategy = schedule_named(k == 1 ? "zb-h1" : "zb-h2");
                struct plan plan = plan_of(p, m, (struct plan_times){1, 1, 1, 0});
                struct row *rows = rows_of(strategy, &plan);
                double span, makespan = replay_in_order(rows, &plan, equal, 0, &span);

                /* fewer micro-batches than ranks: only the last W is left over */
                assert_true(makespan == (m >= p ? 3 * m + p - 1 : 2 * (m + p - 1) + 1));
                assert_true(strategy->ideal_makespan(&plan, 1, 2, 0) == makespan);
                if (k == 2 && m >= 2 * p - 1)
                    assert_true(span == 3 * m);
                for (int rank = 0; rank < p; rank++) {
                    expect_complete(&rows[rank], &plan);
                    assert_true(most_in_flight(&rows[rank]) <= most(k, p));
                    if (k == 1)
                        assert_int_equal(most_in_flight(&rows[rank]), m < p ? m : p);
                    if (k == 1)
                        assert_int_equal(strategy->ideal_in_flight(&plan, rank), m < p ? m : p);
                }
                rows_release(rows, p);
            }
}

/* Whole, and with a backward for the input (or its recomputation) that is longer, up to what a closed form covers. */
static void test_closed_forms(void **state)
{
    static const struct { double f, half, r; } cases[] = {
        {2, 1, 0}, {3, 2, 0}, {17, 13, 0}, {1, 1, 1}, {2, 1, 3}, {1, 1.5, 0},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++)
        for (int k = 1; k <= 2; k++)
            for (int p = 1; p <= 9; p++)
                for (int m = 1; m <= 24; m++) {
                    const struct schedule *strategy = schedule_named(k == 1 ? "zb-h1" : "zb-h2");
                    double f = cases[i].f, half = cases[i].half, r = cases[i].r, ideal, makespan;
                    struct plan plan = plan_of(p, m, (struct plan_times){f, half + r, half, 0});
                    const double cost[WORK_KIND_COUNT] = {
                        [FORWARD] = f, [BACKWARD_INPUT] = half, [BACKWARD_WEIGHT] = half, [RECOMPUTE] = r,
                    };

                    plan.recompute = r > 0;
                    struct row *rows = rows_of(strategy, &plan);
                    ideal = strategy->ideal_makespan(&plan, f, 2 * half, r);
                    makespan = replay_in_order(rows, &plan, cost, 0, NULL);
                    assert_int_equal(isnan(ideal), half > f || (k == 2 && r > 0));
                    assert_true(isnan(ideal) ? makespan > 0 : makespan == ideal);
                    for (int rank = 0; rank < p; rank++)
                        expect_complete(&rows[rank], &plan);
                    rows_release(rows, p);
                }
}

/* Whatever the times: complete rows that do not wait for each other, within the memory. */
static void test_any_times(void **state)
{
    uint64_t seed = 1;

    (void)state;
    for (int i = 0; i < 3000; i++) {
        int k = 1 + i % 2, p = 1 + random_below(&seed, 12), m = 1 + random_below(&seed, 30);
        struct plan_times times = {random_below(&seed, 6), random_below(&seed, 6), random_below(&seed, 6),
                                   i % 3 ? 0 : random_below(&seed, 4)};
        struct plan plan = plan_of(p, m, times);
        struct row *rows = rows_of(schedule_named(k == 1 ? "zb-h1" : "zb-h2"), &plan);
        const double cost[WORK_KIND_COUNT] = {
            [FORWARD] = times.forward, [BACKWARD_INPUT] = times.backward_input,
            [BACKWARD_WEIGHT] = times.backward_weight,
        };

        assert_true(replay_in_order(rows, &plan, cost, times.communication, NULL) >= 0);
        assert_false(rows_deadlock(rows, &plan));
        for (int rank = 0; rank < p; rank++) {
            expect_complete(&rows[rank], &plan);
            assert_true(most_in_flight(&rows[rank]) <= most(k, p));
        }
        rows_release(rows, p);
    }
}

/* The unit of time does not matter, nor the rounding of times that are no binary fractions. */
static void test_scaled_times(void **state)
{
    static const double scales[] = {0.1, 0.0017, 1e-6 / 3, 7e5};

    (void)state;
    for (int p = 1; p <= 8; p++)
        for (int m = 1; m <= 24; m += 1 + m / 8)
            for (size_t s = 0; s < COUNT(scales); s++) {
                const struct schedule *strategy = schedule_named(m % 2 ? "zb-h1" : "zb-h2");
                struct plan plan = plan_of(p, m, (struct plan_times){4, 5, 3, m % 3});
                struct row *rows = rows_of(strategy, &plan);
                char *orders = orders_of(rows, &plan);

                plan.times = (struct plan_times){4 * scales[s], 5 * scales[s], 3 * scales[s], m % 3 * scales[s]};
                expect_orders(strategy, &plan, orders);
                free(orders);
                rows_release(rows, p);
            }
}

/* The orders in the paper's figures (table 2, and the authors' calculation of their tables 5 and 8): from its first
 * work to its last a rank takes (P-1) (F + I - W) more than its works in ZB-H1; in ZB-H2 it takes, with each hop's
 * time, (P-1) (F + I + 2 C - 2 W) more, if this is positive. */
static void test_fixed(void **state)
{
    static const struct { double f, i, w, c; } cases[] = {{1, 1, 1, 0}, {18522, 18086, 9337, 601}, {3, 3, 2, 0}};

    (void)state;
    for (size_t n = 0; n < COUNT(cases); n++)
        for (int k = 1; k <= 2; k++)
            for (int p = 1; p <= 9; p++)
                for (int m = 1; m <= 24; m++) {
                    const struct schedule *strategy = schedule_named(k == 1 ? "zb-h1" : "zb-h2");
                    double f = cases[n].f, i = cases[n].i, w = cases[n].w, c = cases[n].c, span, makespan;
                    const double cost[WORK_KIND_COUNT] = {
                        [FORWARD] = f, [BACKWARD_INPUT] = i, [BACKWARD_WEIGHT] = w,
                    };
                    struct plan plan = plan_of(p, m, (struct plan_times){f, i, w, c});

                    plan.options = &fixed;
                    struct row *rows = rows_of(strategy, &plan);
                    makespan = replay_in_order(rows, &plan, cost, c, &span);
                    for (int rank = 0; rank < p; rank++)
                        expect_complete(&rows[rank], &plan);
                    if (m >= 2 * p && k == 1 && c == 0)
                        assert_true(makespan == m * (f + i + w) + (p - 1) * (f + i - w));
                    if (m >= 2 * p && k == 2)
                        assert_true(span == m * (f + i + w) + (p - 1) * (f + i + 2 * c - 2 * w));
                    if (i == w)
                        assert_true(isnan(strategy->ideal_makespan(&plan, f, i + w, 0)) ||
                                    strategy->ideal_makespan(&plan, f, i + w, 0) == makespan);
                    rows_release(rows, p);
                }
}

/* The whole way, on both engines; a backward's memory is freed by its W. */
static void test_simulated(void **state)
{
    (void)state;
    for (int i = 0; i < 48; i++) {
        int p = 1 + i % 5, m = 1 + i % 11;
        struct simulated simulated;
        const struct schedule *strategy;

        run_text(&simulated, "model: {stages: {forward: 1 s, backward: 2 s, activation: 1 B}}\ncluster: ideal\n"
                 "batch: {micro_batches: %d}\nstrategy: {schedule: %s, pipeline: %d}\nsimulation: {engine: %s}\n",
                 m, i % 3 ? "zb-h1" : "zb-h2", p, i % 2 ? "ideal" : "simgrid");
        strategy = scenario_schedule(&simulated.scenario);
        expect_near("makespan", simulated.run.metrics.iteration_time,
                    strategy->ideal_makespan(&simulated.workload.plan, 1, 2, 0), simulated.text);
        for (int rank = 0; rank < p; rank++)
            expect_near("in flight", simulated.run.metrics.ranks[rank].peak_activation,
                        most_in_flight(&simulated.workload.rows[rank]), simulated.text);
        simulated_release(&simulated);
    }
}

/* With a recomputation before the I, what it made is held until the W: of all blocks of the stage. Else of one: 8 B of
 * the first, when the second and its input are done with. */
static void test_recomputed_until_weights(void **state)
{
    static const char *const model =
        "model: {layers: [{name: a, forward: 1 s, backward: 2 s, recompute: 1 s, activation: 8 B, boundary: 1 B}, "
        "{name: b, forward: 1 s, backward: 2 s, recompute: 1 s, activation: 4 B, boundary: 1 B}]}";
    static const struct { const char *schedule; double bytes; } cases[] = {{"1f1b", 8}, {"zb-h1", 1 + 12}};

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct simulated simulated;

        run_text(&simulated, "%s\ncluster: ideal\nbatch: {micro_batches: 3}\nstrategy: {schedule: %s}\n"
                 "memory: {recompute: full}\nsimulation: {engine: ideal}\n", model, cases[i].schedule);
        expect_near("peak", simulated.run.metrics.ranks[0].peak_activation, cases[i].bytes, simulated.text);
        simulated_release(&simulated);
    }
}

/* Rows whose works were shuffled a little deadlock if and only if a replay of them never ends. */
static void test_deadlocks(void **state)
{
    const double cost[WORK_KIND_COUNT] = {0};
    uint64_t seed = 2;
    int deadlocks = 0;
    enum { TRIALS = 4000 };

    (void)state;
    for (int i = 0; i < TRIALS; i++) {
        int p = 1 + random_below(&seed, 8), m = 1 + random_below(&seed, 12);
        struct plan plan = plan_of(p, m, (struct plan_times){1, 1, 1, 0});
        struct row *rows = rows_of(schedule_named("zb-h1"), &plan);

        for (int swaps = random_below(&seed, 4); swaps; swaps--) {
            struct row *row = &rows[random_below(&seed, p)];
            struct work *a = &row->items[random_below(&seed, (int)row->count)], *b, work = *a;

            b = a > row->items ? a - 1 : a;
            *a = *b;
            *b = work;
        }
        bool deadlock = replay_in_order(rows, &plan, cost, 0, NULL) < 0;
        assert_int_equal(rows_deadlock(rows, &plan), deadlock);
        deadlocks += deadlock;
        rows_release(rows, p);
    }
    assert_true(deadlocks > TRIALS / 20 && deadlocks < TRIALS / 2);
}

/* The time grows with the number of works, not with the number of works times the number of ranks: these ranks go on
 * one by one, from the last to the first. */
static void test_many_stages(void **state)
{
    enum { RANKS = 1 << 16 };
    struct plan plan = plan_of(RANKS, 2, (struct plan_times){1, 1, 1, 0});
    struct row *rows = xcalloc(RANKS, sizeof *rows);
    clock_t begun;

    (void)state;
    for (int rank = 0; rank < RANKS; rank++)
        for (int i = 0; i < 4; i++)
            *GROW(&rows[rank]) = (struct work){.kind = i < 2 ? FORWARD : BACKWARD, .mb = i % 2};
    begun = clock();
    assert_false(rows_deadlock(rows, &plan));
    assert_true(clock() - begun < 5 * CLOCKS_PER_SEC);
    rows[RANKS / 2].items[0].mb = 1;
    rows[RANKS / 2].items[1].mb = 0;
    rows[RANKS / 2].items[2].kind = FORWARD;             /* its first micro-batch never goes back */
    assert_true(rows_deadlock(rows, &plan));
    rows_release(rows, RANKS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_orders_of_peers),
        cmocka_unit_test(test_orders_of_folder),
        cmocka_unit_test(test_equal_times),
        cmocka_unit_test(test_closed_forms),
        cmocka_unit_test(test_any_times),
        cmocka_unit_test(test_scaled_times),
        cmocka_unit_test(test_fixed),
        cmocka_unit_test(test_simulated),
        cmocka_unit_test(test_recomputed_until_weights),
        cmocka_unit_test(test_deadlocks),
        cmocka_unit_test(test_many_stages),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
