/* How unevenly tokens choose experts. */
#include "kernels/skew.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include "kernels/kernel_time.h"

#include <cmocka.h>

enum { EXPERTS = 256, SMS = 132 };
static const struct matmul_fit fit = {.rate = 600e12, .intensity = 10, .quantization = 1, .bandwidth = 30e12,
                                      .overlap = 3, .overhead = 5e-6, .layout = {1, 1, 1}, .unaligned = 1, .speed = 1};

static void assert_near(double actual, double expected, double tolerance)
{
    if (!(fabs(actual / expected - 1) <= tolerance))
        fail_msg("%.10g instead of %.10g", actual, expected);
}

/* Shares rise and sum to 1. With the exponent 1 their logarithms are evenly spaced; with 2 the mean of the power law
 * between 1 and R is ln R R / (R - 1), and the quantiles' mean comes near it. */
static void shares(void **state)
{
    (void)state;
    for (double exponent = 0; exponent <= 2; exponent += 0.25) {
        const struct skew skew = {exponent, 3000};
        struct skew_shares all = skew_shares(&skew, EXPERTS);
        double sum = 0, before = 0;

        for (int i = 0; i < EXPERTS; i++) {
            double share = skew_share(&all, i);

            assert_true(share >= before);
            sum += before = share;
        }
        assert_near(sum, 1, 1e-12);
    }
    {
        const struct skew even = {1, 3000}, steep = {2, 3000};
        struct skew_shares all = skew_shares(&even, EXPERTS), sums = skew_shares(&steep, 100000);

        assert_near(skew_share(&all, 200) / skew_share(&all, 100), pow(3000, 100. / EXPERTS), 1e-9);
        assert_near(sums.sum / 100000, log(3000) * 3000 / 2999, 0.01);
    }
}

/* The busiest GPU has at least the mean and at most everything; the more GPUs, the more; the same in every run. */
static void busiest(void **state)
{
    double before = 1;

    (void)state;
    for (int gpus = 1; gpus <= EXPERTS; gpus *= 2) {
        const struct skew even = {0, 3000}, skew = {1.2, 3000};
        double factor = skew_busiest(&skew, gpus, EXPERTS / gpus);

        assert_true(skew_busiest(&even, gpus, EXPERTS / gpus) == 1);
        assert_true(factor >= before && factor <= gpus);
        assert_true(factor == skew_busiest(&skew, gpus, EXPERTS / gpus));
        before = factor;
    }
    assert_true(before > 4);
}

static double seconds(double experts, double rows, enum matmul_layout layout, double exponent)
{
    bool deep = layout == LAYOUT_TN;
    struct product product = {
        experts, deep ? 2048 : rows, 2048, deep ? rows : 2048, layout, 2, FORM_GROUPED, {exponent, 3000}};

    return matmul_seconds(&fit, SMS, &product);
}

/* One expert has all rows whatever the skew. Uneven experts take no less time than even ones: they have more tiles,
 * which are partly empty, or one of their tiles is deeper; and with few rows each they take more. */
static void products(void **state)
{
    (void)state;
    for (int layout = LAYOUT_NN; layout < LAYOUT_COUNT; layout++) {
        enum matmul_layout l = (enum matmul_layout)layout;

        assert_near(seconds(1, 65536, l, 1.2), seconds(1, 65536, l, 0), 1e-12);
        for (double rows = 16384; rows <= 262144; rows *= 2)
            assert_true(seconds(64, rows, l, 1.2) > 0.999 * seconds(64, rows, l, 0));
    }
    assert_true(seconds(64, 8192, LAYOUT_NT, 1.2) > 1.1 * seconds(64, 8192, LAYOUT_NT, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(shares), cmocka_unit_test(busiest), cmocka_unit_test(products)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
