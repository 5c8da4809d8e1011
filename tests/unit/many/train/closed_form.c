/* Young's, Daly's and the exact interval between checkpoints, against published cases worked out by hand and against
 * the function that they minimise. */
#include "train/closed_form.h"

#include "simulated.h"

/* A stall, a recovery, a mean time between failures (s), the three intervals (s) and the goodput of the exact one: a
 * large job of 2,048 nodes, RSC-1 with 2,048 GPUs, and BLOOM. */
static const struct { double stall, recovery, mtbf, young, daly, exact, goodput; } cases[] = {
    {20, 420, 11134.8, 667.4, 654.1, 654.1, 0.90641},
    {300, 600, 51923.1, 5581.6, 5383.4, 5383.4, 0.88602},
    {40, 1800, 604800, 6955.9, 6929.2, 6929.2, 0.98561},
};

static void test_cases(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        double exact = closed_form_exact(cases[i].stall, cases[i].mtbf);

        assert_true(fabs(closed_form_young(cases[i].stall, cases[i].mtbf) - cases[i].young) < 0.06);
        assert_true(fabs(closed_form_daly(cases[i].stall, cases[i].mtbf) - cases[i].daly) < 0.06);
        assert_true(fabs(exact - cases[i].exact) < 0.06);
        assert_true(fabs(1 / closed_form_wall(exact, cases[i].stall, cases[i].recovery, cases[i].mtbf) -
                         cases[i].goodput) < 6e-6);
    }
}

/* The first-order form of Kokolis et al. 2024 (arXiv 2410.21680), with the same numbers: (1 - (R + tau/2) / M) / (1 +
 * d/tau). */
static void test_first_order(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        double tau = closed_form_young(cases[i].stall, cases[i].mtbf);
        double form = (1 - (cases[i].recovery + tau / 2) / cases[i].mtbf) / (1 + cases[i].stall / tau);

        assert_true(fabs(1 / closed_form_wall(tau, cases[i].stall, cases[i].recovery, cases[i].mtbf) - form) < 0.002);
    }
}

/* W(-ln(2)/2) = -ln(2), W(-1/e) = -1, W(0) = 0; else w exp(w) = x. */
static void test_lambert(void **state)
{
    (void)state;
    assert_true(fabs(closed_form_lambert(-log(2) / 2) + log(2)) < 1e-14);
    assert_true(fabs(closed_form_lambert(-exp(-1)) + 1) < 1e-7);
    assert_true(fabs(closed_form_lambert(0)) < 1e-15);
    for (double x = -0.36; x < 0; x += 0.01) {
        double w = closed_form_lambert(x);

        assert_true(w >= -1 && fabs(w * exp(w) - x) < 1e-15);
    }
}

/* No interval nearby has more goodput, from stalls of a nanosecond to those that take as long as a thousand failures.
 */
static void test_exact_is_the_optimum(void **state)
{
    (void)state;
    for (double share = 1e-12; share < 1e3; share *= 3) {
        double mtbf = 1e4, stall = share * mtbf, exact = closed_form_exact(stall, mtbf);
        double wall = closed_form_wall(exact, stall, 0, mtbf);

        assert_true(exact > 0 && exact <= mtbf);
        assert_true(wall <= closed_form_wall(exact * 1.01, stall, 0, mtbf));
        assert_true(wall <= closed_form_wall(exact * 0.99, stall, 0, mtbf));
        /* its condition: log(1 - u) + u + d/M = 0 of u = tau/M */
        if (share < 30)
            assert_true(fabs(log1p(-exact / mtbf) + exact / mtbf + share) <
                        1e-12 * (1 + share) + 1e-15 / (1 - exact / mtbf));
    }
    assert_true(closed_form_exact(0, 1e4) == 0);
}

/* GEMINI's example: 16 nodes, 2 copies, 2 nodes lost: 93.3 % go on from memory. */
static void test_group_lost(void **state)
{
    (void)state;
    assert_true(fabs(1 - closed_form_group_lost(16, 2) - 0.933) < 0.0005);
    assert_true(fabs(closed_form_group_lost(6, 3) - 2. / 20) < 1e-15);
    assert_true(closed_form_group_lost(2, 2) == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),      cmocka_unit_test(test_first_order),
        cmocka_unit_test(test_lambert),    cmocka_unit_test(test_exact_is_the_optimum),
        cmocka_unit_test(test_group_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
