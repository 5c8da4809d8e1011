/* Products of many experts in one kernel, layers of experts, and products that quantise their activations first. */
#include "kernels/kernel_time.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { SMS = 100 };
static const struct matmul_fit fit = {
    .rate = 100e12,
    .intensity = 10,
    .fill = 1e-6,
    .quantization = 1,
    .bandwidth = 1e12,
    .overlap = 4,
    .overhead = 2e-6,
    .layout = {1, 1.1, 1.2},
    .unaligned = 1.5,
    .odd = 4,
    .quantize = 0.5e12,
    .speed = 1,
};

static double seconds(enum product_form form, double batch, double m, double n, double k, enum matmul_layout layout)
{
    struct product product = {batch, m, n, k, layout, form == FORM_QUANTIZED ? 1 : 2, form, {.exponent = 0}};

    return matmul_seconds(&fit, SMS, &product);
}

static void assert_near(double actual, double expected, double tolerance)
{
    if (!(fabs(actual / expected - 1) <= tolerance))
        fail_msg("%.10g instead of %.10g", actual, expected);
}

/* Experts with many rows each take as long as a product for each expert, whatever the layout. */
static void wide_experts(void **state)
{
    (void)state;
    assert_near(seconds(FORM_GROUPED, 8, 8 * 4096., 4096, 4096, LAYOUT_NT),
                seconds(FORM_MATMUL, 8, 4096, 4096, 4096, LAYOUT_NT), 1e-12);
    assert_near(seconds(FORM_GROUPED, 8, 4096, 4096, 8 * 4096., LAYOUT_TN),
                seconds(FORM_MATMUL, 8, 4096, 4096, 4096, LAYOUT_TN), 1e-12);
}

/* 256 experts of 8 rows fill no tile: they take as long as the narrowest tiles' 32 rows, and load all weights. One
 * expert with all the rows is faster. */
static void narrow_experts(void **state)
{
    (void)state;
    double narrow = seconds(FORM_GROUPED, 256, 256 * 8., 4096, 4096, LAYOUT_NT);
    double weights = 2 * 256. * 4096 * 4096 / fit.bandwidth;

    assert_true(narrow >= weights);
    assert_true(narrow > 5 * seconds(FORM_GROUPED, 1, 256 * 8., 4096, 4096, LAYOUT_NT));
    for (double rows = 1; rows <= 32; rows++) /* only the traffic of the rows grows */
        assert_near(seconds(FORM_GROUPED, 256, 256 * rows, 4096, 4096, LAYOUT_NT), narrow, 0.02);
    /* the same rows in more experts never take less time */
    for (double experts = 1, before = 0; experts <= 512; experts *= 2) {
        double now = seconds(FORM_GROUPED, experts, 8192, 1024, 4096, LAYOUT_NT);

        assert_true(now >= before * (1 - 1e-12));
        before = now;
    }
}

/* Experts without rows load no weights. */
static void few_rows(void **state)
{
    (void)state;
    assert_near(seconds(FORM_GROUPED, 256, 8, 4096, 4096, LAYOUT_NT),
                seconds(FORM_GROUPED, 8, 8, 4096, 4096, LAYOUT_NT), 1e-12);
}

/* Two products, and their rows through memory between them: 2 k + 2 k (permuted), 4 n + 2 n (activation), 4 k (summed)
 * of 2 bytes a value. */
static void layers_of_experts(void **state)
{
    (void)state;
    double m = 65536, n = 1536, k = 4096,
           products = seconds(FORM_GROUPED, 64, m, 2 * n, k, LAYOUT_NT) + seconds(FORM_GROUPED, 64, m, k, n, LAYOUT_NT);

    assert_near(seconds(FORM_EXPERTS, 64, m, n, k, LAYOUT_NT),
                products + m * (8 * k + 6 * n) / fit.quantize + 4 * fit.overhead, 1e-12);
}

/* A product whose A is read in bf16 and written in one byte first. */
static void quantized(void **state)
{
    (void)state;
    struct product plain = {1, 4096, 1024, 2048, LAYOUT_NT, 1, FORM_MATMUL, {.exponent = 0}};

    assert_near(seconds(FORM_QUANTIZED, 1, 4096, 1024, 2048, LAYOUT_NT) - matmul_seconds(&fit, SMS, &plain),
                2e-6 + 3 * 4096. * 2048 / 0.5e12, 1e-9);
}

/* Runs that fit into the cache find A and the results of the run before there; weights are rotated. A run of one and a
 * half times the cache finds half of that, one of twice the cache nothing. */
static void runs_in_the_cache(void **state)
{
    (void)state;
    struct matmul_fit cached = fit;
    struct product product = {1, 64, 65536, 64, LAYOUT_NT, 2, FORM_MATMUL, {.exponent = 0}};
    double a = 2 * 64. * 64, weights = 2 * 65536. * 64, results = 2 * 64. * 65536, run = a + weights + results;
    double whole = matmul_seconds(&fit, SMS, &product);

    cached.overlap = 1; /* traffic adds to the tiles */
    double slow = matmul_seconds(&cached, SMS, &product);
    cached.repeated = (struct repeated_runs){.cache = run, .cache_speed = 4};
    double found = (a + results) * (1 - 0.25) / fit.bandwidth;
    assert_near(slow - matmul_seconds(&cached, SMS, &product), found, 1e-9);
    cached.repeated.cache = run / 1.5;
    assert_near(slow - matmul_seconds(&cached, SMS, &product), found / 2, 1e-9);
    cached.repeated.cache = run / 2;
    assert_near(matmul_seconds(&cached, SMS, &product), slow, 1e-12);
    cached.overlap = fit.overlap;
    assert_near(matmul_seconds(&cached, SMS, &product), whole, 1e-12);
}

/* Where A is quantised first, the product finds what is left of it even if a whole run does not fit. */
static void quantised_in_the_cache(void **state)
{
    (void)state;
    struct matmul_fit cached = fit;
    struct product product = {1, 4096, 65536, 64, LAYOUT_NT, 1, FORM_QUANTIZED, {.exponent = 0}};
    double values = 4096. * 64;

    cached.overlap = 1;
    double slow = matmul_seconds(&cached, SMS, &product);
    cached.repeated = (struct repeated_runs){.cache = 3 * values, .cache_speed = 4};
    assert_near(slow - matmul_seconds(&cached, SMS, &product), 0.75 * values * (1 / fit.quantize + 1 / fit.bandwidth),
                1e-9);
}

/* A layer of few narrow experts finds its weights too. */
static void experts_in_the_cache(void **state)
{
    (void)state;
    struct matmul_fit cached = fit;
    struct product layer = {8, 512, 128, 2048, LAYOUT_NT, 2, FORM_EXPERTS, {.exponent = 0}};
    double slow = matmul_seconds(&fit, SMS, &layer);

    cached.repeated = (struct repeated_runs){.cache = 100e6, .cache_speed = 1e6};
    cached.overhead = cached.fill = 0;
    double tiles = matmul_seconds(&cached, SMS, &layer);
    assert_true(tiles < slow - 5 * fit.overhead);
    cached.repeated.cache = 1e6;
    assert_true(matmul_seconds(&cached, SMS, &layer) > 1.5 * tiles);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wide_experts),      cmocka_unit_test(narrow_experts), cmocka_unit_test(few_rows),
        cmocka_unit_test(layers_of_experts), cmocka_unit_test(quantized),    cmocka_unit_test(runs_in_the_cache),
        cmocka_unit_test(quantised_in_the_cache), cmocka_unit_test(experts_in_the_cache),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
