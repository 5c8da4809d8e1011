/* How long iterations of V-shaped and bidirectional schedules and of Varuna take: as their authors say. */
#include "schedule_v.h"

static double iteration(enum shape schedule, int p, int m, const struct times *t)
{
    struct simulated simulated;
    double seconds_taken;

    run_shape(&simulated, schedule, p, m, false, t);
    seconds_taken = simulated.run.metrics.iteration_time;
    simulated_release(&simulated);
    return seconds_taken;
}

/* Iterations that the authors' programs report, or their formulas give, in slots. */
static void test_makespans(void **state)
{
    static const struct { enum shape schedule; int p, m; double slots; } cases[] = {
        {VARUNA, 4, 1, 12}, {VARUNA, 4, 2, 15}, {VARUNA, 4, 3, 18}, {VARUNA, 4, 4, 24}, {VARUNA, 4, 5, 27},
        {VARUNA, 4, 8, 39}, {VARUNA, 4, 16, 72}, {VARUNA, 8, 8, 51}, {VARUNA, 8, 24, 114},
        {ZB_V, 4, 4, 27}, {ZB_V_FIXED, 4, 4, 30}, {ZB_V, 4, 8, 51}, {ZB_V_FIXED, 4, 8, 51},
        {CHIMERA, 4, 4, 16}, {CHIMERA, 8, 8, 36},
        {CHIMERA, 4, 16, 58}, {CHIMERA, 8, 32, 126}, {CHIMERA_DOUBLING, 4, 16, 52}, {CHIMERA_DOUBLING, 8, 32, 108},
        {DUALPIPE_V, 4, 10, 60 + 6}, {DUALPIPE, 8, 20, 60 + 6},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++)
        expect_near("iteration", iteration(cases[i].schedule, cases[i].p, cases[i].m, &even), cases[i].slots,
                    shapes[cases[i].schedule]);
    for (int p = 1; p <= 16; p++)
        for (int m = 2 * p - 1; m <= 2 * p + 9; m += 5) {
            expect_near("iteration", iteration(ZB_V, p, m, &even), 6 * m + p - 1, "zb-v");
            expect_near("iteration", iteration(ZB_V_FIXED, p, m, &even), 6 * m + p - 1, "zb-v, fixed");
        }
}

/* Chimera with K units of P micro-batches: directly one after another, each further one adds 2 of the shorter work and
 * 2P-2 of the longer; with doubled forwards and B = 2F there are no bubbles in between, and the iteration is shorter
 * than 1F1B's, (M+P-1)(F+B), for every number of units. */
static void test_chimera_units(void **state)
{
    static const struct times times[] = {{1, 1, 1, 1}, {2, 1, 1, 1}, {1, 2.5, 2.5, 1}, {3, 0.5, 0.5, 1}};

    (void)state;
    for (int p = 2; p <= 10; p += 2)
        for (int units = 1; units <= 6; units++) {
            for (size_t t = 0; t < COUNT(times); t++) {
                double f = times[t].forward, b = 2 * times[t].input;

                expect_near("direct", iteration(CHIMERA, p, units * p, &times[t]),
                            (p - 2 + 2 * units) * fmin(f, b) + units * (2 * p - 2) * fmax(f, b), "chimera");
            }
            if (units % 2 == 1)
                continue;
            double doubled = iteration(CHIMERA_DOUBLING, p, units * p, &even);
            expect_near("doubled", doubled, 3 * units * p + 2 * p - 4, "chimera, forward doubling");
            assert_true(doubled < 3 * (units * p + p - 1));
        }
}

/* Backward halving is the order of forward doubling, for micro-batches that are halves. */
static void test_chimera_halving(void **state)
{
    static const char *const names[] = {"forward-doubling", "backward-halving"};
    char *orders[2];

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct simulated simulated;

        simulated_load(&simulated, "model: {stages: {forward: 1 s, backward: 2 s}}\ncluster: ideal\n"
                       "batch: {micro_batches: 16}\nstrategy: {schedule: chimera, pipeline: 4, concatenation: %s}\n",
                       names[i]);
        orders[i] = orders_text(&simulated);
        simulated_release(&simulated);
    }
    assert_string_equal(orders[0], orders[1]);
    assert_non_null(strstr(orders[0], "(0F0@0;0F1@0)O"));
    free(orders[0]);
    free(orders[1]);
}

/* DeepSeek: a rank is idle for (PP/2-1)(F&B + B - 3W), PP the stages. */
static void test_dualpipe_idle(void **state)
{
    (void)state;
    for (int p = 1; p <= 12; p++)
        for (int m = 2 * p; m <= 2 * p + 6; m += 2) {
            double both = 3, backward = 2, weight = 1;

            expect_near("iteration", iteration(DUALPIPE_V, p, m, &even),
                        2 * m * both + (p - 1) * (both + backward - 3 * weight), "dualpipe-v");
            if (p % 2 == 0)
                expect_near("iteration", iteration(DUALPIPE, p, m, &even),
                            m * both + (p / 2 - 1) * (both + backward - 3 * weight), "dualpipe");
        }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_makespans),
        cmocka_unit_test(test_chimera_units),
        cmocka_unit_test(test_chimera_halving),
        cmocka_unit_test(test_dualpipe_idle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
