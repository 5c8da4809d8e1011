/* How unevenly tokens choose experts. */
#include "kernels/skew.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include "base/base.h"
#include "base/random.h"
#include "kernels/kernel_time.h"

#include <cmocka.h>

enum { EXPERTS = 256, SMS = 132 };
static const struct matmul_fit fit = {.rate = 600e12, .intensity = 10, .quantization = 1, .bandwidth = 30e12,
                                      .overlap = 3, .overhead = 5e-6, .layout = {1, 1, 1}, .unaligned = 1, .speed = 1};

static int below(uint64_t *seed, int limit)
{
    return (int)(random_bits(55, (*seed)++) % (uint64_t)limit);
}

static void assert_near(double actual, double expected, double tolerance)
{
    if (!(fabs(actual / expected - 1) <= tolerance))
        fail_msg("%.10g instead of %.10g", actual, expected);
}

/* Shares sum to 1. Those of ranks fall as i^-exponent, of the experts that one of several GPUs has too. Those of a
 * measured density rise; with the exponent 1 their logarithms are evenly spaced, and with 2 the mean of the power law
 * between 1 and R is ln R R / (R - 1), which the quantiles' mean comes near. */
static void shares(void **state)
{
    const struct skew even = {1, .measured_range = 3000}, steep = {2, .measured_range = 3000};
    struct skew_shares all = skew_shares(&even, EXPERTS), sums = skew_shares(&steep, 100000);

    (void)state;
    for (double exponent = 0; exponent <= 2; exponent += 0.25) {
        const struct skew ranks = {exponent, .gpus = 8}, density = {exponent, .measured_range = 3000};
        struct skew_shares own = skew_shares(&ranks, EXPERTS / 8), measured = skew_shares(&density, EXPERTS);
        double sum = 0, before = 0;

        for (int i = 0; i < EXPERTS / 8; i++) {
            assert_near(skew_share(&own, i) / skew_share(&own, 0), pow(1 + 8 * i, -exponent), 1e-12);
            sum += skew_share(&own, i);
        }
        assert_near(sum, 1, 1e-12);
        sum = 0;
        for (int i = 0; i < EXPERTS; i++) {
            double share = skew_share(&measured, i);

            assert_true(share >= before);
            sum += before = share;
        }
        assert_near(sum, 1, 1e-12);
    }
    assert_near(skew_share(&all, 200) / skew_share(&all, 100), pow(3000, 100. / EXPERTS), 1e-9);
    assert_near(sums.sum / 100000, log(3000) * 3000 / 2999, 0.01);
}

/* Of several sums of i^-s. */
struct sums { double all, first, top; };      /* of all experts; of the busiest; of as many of the busiest as a GPU has */

static struct sums sums_of(int gpus, int n, double s)
{
    struct sums sums = {0, 1, 0};

    for (int i = 1; i <= gpus * n; i++) {
        sums.all += pow(i, -s);
        sums.top += i <= n ? pow(i, -s) : 0;
    }
    return sums;
}

/* One expert on each GPU: the busiest has its share, whatever is drawn. More of them: the GPU that has the busiest
 * expert has at least its share, and none has more than the busiest n. A larger exponent never means less. */
static void busiest(void **state)
{
    static const double published[][2] = {{0, 1}, {0.1, 1.14}, {1, 2.94}, {2, 5.24}, {4, 7.40}};
    uint64_t seed = 0;

    (void)state;
    for (size_t i = 0; i < COUNT(published); i++)
        assert_near(skew_busiest(published[i][0], 8, 1), published[i][1], 0.002);
    for (int i = 0; i < 300; i++) {
        int gpus = 1 << below(&seed, 7), n = i % 3 ? 1 + (int)below(&seed, 24) : 1;
        double before = 1;

        if (i % 5 == 0)
            gpus = 1 + (int)below(&seed, 20);
        for (double s = 0; s <= 4; s += 0.05 + 0.3 * (double)below(&seed, 1000) / 1000) {
            struct sums sums = sums_of(gpus, n, s);
            double factor = skew_busiest(s, gpus, n), least = gpus * sums.first / sums.all;
            double most = gpus * sums.top / sums.all;

            if (!(factor >= fmax(before, least) * (1 - 1e-12) && factor <= most * (1 + 1e-12)))
                fail_msg("%d GPUs with %d experts each, exponent %g: %g after %g; expected from %g to %g", gpus, n, s,
                         factor, before, least, most);
            if (n == 1)
                assert_near(factor, gpus / sums.all, 1e-12);
            assert_true(factor == skew_busiest(s, gpus, n));
            before = factor;
        }
    }
}

/* The mean over all deals of the experts from i on, and their number; `room`: of each GPU. */
static double dealt(const int gpus, int *room, double *rows, int i, int experts, double s, double *deals)
{
    double sum = 0, most = 0;

    for (int gpu = 0; gpu < gpus && i > experts; gpu++)
        most = fmax(most, rows[gpu]);
    *deals += i > experts;
    for (int gpu = 0; gpu < gpus && i <= experts; gpu++)
        if (room[gpu]) {
            room[gpu]--;
            rows[gpu] += pow(i, -s);
            sum += dealt(gpus, room, rows, i + 1, experts, s, deals);
            rows[gpu] -= pow(i, -s);
            room[gpu]++;
        }
    return i > experts ? most : sum;
}

/* The draws stand for all deals: the mean of 32 is near the mean of all. */
static void all_deals(void **state)
{
    static const int sizes[][2] = {{2, 2}, {2, 3}, {2, 4}, {3, 2}, {4, 2}, {3, 3}, {5, 2}};

    (void)state;
    for (size_t i = 0; i < COUNT(sizes); i++)
        for (double s = 0.3; s < 3; s += 0.6) {
            int gpus = sizes[i][0], n = sizes[i][1], room[] = {n, n, n, n, n};
            double rows[5] = {0}, deals = 0, sum = dealt(gpus, room, rows, 1, gpus * n, s, &deals);

            assert_near(skew_busiest(s, gpus, n), sum / deals * gpus / sums_of(gpus, n, s).all, 0.05);
        }
}

static double seconds(double experts, double rows, enum matmul_layout layout, double exponent)
{
    bool deep = layout == LAYOUT_TN;
    struct product product = {
        experts, deep ? 2048 : rows, 2048, deep ? rows : 2048, layout, 2, FORM_GROUPED, {exponent, .gpus = 4}};

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
    const struct CMUnitTest tests[] = {cmocka_unit_test(shares), cmocka_unit_test(busiest), cmocka_unit_test(all_deals),
                                       cmocka_unit_test(products)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
