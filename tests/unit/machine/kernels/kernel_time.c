/* kernel_time: the model of kernel times against closed forms, bounds and what more work must do to it. */
#include "kernels/kernel_time.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { SMS = 100 };
/* Large tiles at 100 TFLOP/s, which is 1 TFLOP/s an SM; 1 TB/s. */
static const struct matmul_fit fit = {
    .rate = 100e12, .intensity = 10, .fill = 1e-6, .quantization = 1, .bandwidth = 1e12, .overlap = 4, .overhead = 2e-6,
    .layout = {1, 1.1, 1.2}, .unaligned = 1.5, .odd = 4, .speed = 1,
};

static double seconds(double batch, double m, double n, double k)
{
    struct product product = {batch, m, n, k, LAYOUT_NN, 2, FORM_MATMUL, {.exponent = 0}};

    return matmul_seconds(&fit, SMS, &product);
}

static void assert_near(double actual, double expected, double tolerance)
{
    if (!(fabs(actual / expected - 1) <= tolerance))
        fail_msg("%.10g instead of %.10g", actual, expected);
}

/* One wave of the largest tiles: 10 x 10 of 256 x 128, k = 100000: 2 * 256 * 128 * 100000 FLOP at 1 TFLOP/s an SM. */
static void one_wave(void **state)
{
    (void)state;
    double tiles = 1e-6 + 2 * 256. * 128 * 100000 / 1e12;
    double traffic = 2 * (2560. * 100000 + 1280. * 100000 + 2560. * 1280) / 1e12;

    assert_near(seconds(1, 2560, 1280, 100000), 2e-6 + pow(pow(tiles, 4) + pow(traffic, 4), 0.25), 1e-12);
}

/* A vector is bound by the matrix that it must read. */
static void bound_by_traffic(void **state)
{
    (void)state;
    double bytes = 2 * (1. * 65536 + 65536. * 16384 + 16384);

    assert_true(seconds(1, 1, 16384, 65536) >= bytes / 1e12);
    assert_near(seconds(1, 1, 16384, 65536), bytes / 1e12, 0.15);
}

static void bounds(void **state)
{
    (void)state;
    for (double m = 1; m < 1e5; m = ceil(m * 3.7))
        for (double n = 1; n < 1e5; n = ceil(n * 3.7))
            for (double k = 1; k < 1e5; k = ceil(k * 3.7)) {
                double s = seconds(1, m, n, k);

                assert_true(isfinite(s) && s >= 2 * m * n * k / fit.rate);
                assert_true(s >= 2 * (m * k + k * n + m * n) / fit.bandwidth && s >= fit.overhead);
            }
}

/* Whole tiles and waves make steps; over each step more work takes no less time, but for a library that may choose
 * another split: there, to a tenth. */
static void more_work(void **state)
{
    (void)state;
    for (double m = 256; m < 20000; m += 256)
        for (double k = 512; k <= 8192; k *= 2) {
            double s = seconds(1, m, 4096, k);

            assert_true(seconds(1, m + 256, 4096, k) >= 0.9 * s);
            assert_true(seconds(1, m, 4096, 2 * k) >= s);
            assert_true(seconds(2, m, 4096, k) >= s);
        }
}

static void a_doubled_batch(void **state)
{
    (void)state;
    assert_near(seconds(64, 2048, 2048, 128) / seconds(32, 2048, 2048, 128), 2, 0.03);
    assert_near(seconds(1, 65536, 8192, 8192) / seconds(1, 32768, 8192, 8192), 2, 0.03);
    /* far outside of any range the largest tiles' rate holds */
    assert_near(seconds(1, 1048576, 1048576, 1048576), 2 * pow(1048576, 3) / fit.rate, 0.01);
}

static void layouts(void **state)
{
    (void)state;
    struct product product = {1, 65536, 65536, 65536, LAYOUT_NN, 2, FORM_MATMUL, {.exponent = 0}};
    double nn = matmul_seconds(&fit, SMS, &product);

    product.layout = LAYOUT_TN;
    assert_near(matmul_seconds(&fit, SMS, &product) / nn, 1.2, 1e-3);
}

/* Which sides lie along the rows depends on the layout; the result's rows are n long in all of them. */
static void rows_of_16_bytes(void **state)
{
    (void)state;
    static const struct { struct product product; bool aligned;
    } cases[] = {
        {{1, 7, 64, 72, LAYOUT_NN, 2, FORM_MATMUL, {.exponent = 0}}, true},
        {{1, 64, 64, 66, LAYOUT_NN, 2, FORM_MATMUL, {.exponent = 0}}, false},
        {{1, 64, 60, 64, LAYOUT_NN, 2, FORM_MATMUL, {.exponent = 0}}, false},
        {{1, 7, 64, 72, LAYOUT_NT, 2, FORM_MATMUL, {.exponent = 0}}, true},
        {{1, 64, 64, 66, LAYOUT_NT, 2, FORM_MATMUL, {.exponent = 0}}, false},
        {{1, 64, 60, 64, LAYOUT_NT, 2, FORM_MATMUL, {.exponent = 0}}, false},
        {{1, 64, 64, 7, LAYOUT_TN, 2, FORM_MATMUL, {.exponent = 0}}, true},
        {{1, 66, 64, 64, LAYOUT_TN, 2, FORM_MATMUL, {.exponent = 0}}, false},
        {{1, 64, 60, 64, LAYOUT_TN, 2, FORM_MATMUL, {.exponent = 0}}, false},
        {{1, 7, 60, 68, LAYOUT_NN, 4, FORM_MATMUL, {.exponent = 0}}, true},
        {{1, 7, 60, 66, LAYOUT_NN, 4, FORM_MATMUL, {.exponent = 0}}, false},
    };

    for (size_t i = 0; i < COUNT(cases); i++)
        if (product_aligned(&cases[i].product) != cases[i].aligned)
            fail_msg("case %zu", i);
}

static void unaligned_tiles(void **state)
{
    (void)state;
    struct product product = {1, 65536, 65536, 65536, LAYOUT_NN, 2, FORM_MATMUL, {.exponent = 0}};
    struct matmul_fit same = fit;
    double aligned = matmul_seconds(&fit, SMS, &product);

    same.unaligned = 1;
    same.odd = 0;
    product.k = 65534;
    assert_near(matmul_seconds(&fit, SMS, &product) / aligned, 1.5, 1e-3);
    assert_near(matmul_seconds(&same, SMS, &product) / aligned, 1, 1e-3);
    product.k = 65535;
    assert_near(matmul_seconds(&fit, SMS, &product) / aligned, 4, 1e-3);
    assert_near(matmul_seconds(&same, SMS, &product) / aligned, 1, 1e-3);
    product.value = 4;                 /* rows of single precision, a multiple of 4 bytes at least */
    assert_false(product_odd(&product));
}

/* At the power limit tiles take 1 / speed of their time, whatever their size; traffic and overhead theirs. */
static void a_long_run(void **state)
{
    (void)state;
    struct matmul_fit slow = fit, tiles = fit, traffic = fit;
    const struct product deep = {1, 2560, 1280, 100000, LAYOUT_NN, 2, FORM_MATMUL, {.exponent = 0}},
                         thin = {1, 1, 16384, 65536, LAYOUT_NN, 2, FORM_MATMUL, {.exponent = 0}};

    slow.speed = tiles.speed = traffic.speed = 0.8;
    tiles.bandwidth = 1e30;
    assert_near(matmul_seconds(&tiles, SMS, &deep), 2e-6 + (1e-6 + 2 * 256. * 128 * 100000 / 1e12) / 0.8, 1e-9);
    traffic.rate = 1e30;
    traffic.fill = 0;
    assert_near(matmul_seconds(&traffic, SMS, &thin), 2e-6 + 2 * (65536. + 65536. * 16384 + 16384) / 1e12, 1e-9);
    for (double m = 1; m < 1e5; m *= 3.7) {
        struct product product = {1, m, 4096, 4096, LAYOUT_NN, 2, FORM_MATMUL, {.exponent = 0}};
        double ratio = matmul_seconds(&slow, SMS, &product) / matmul_seconds(&fit, SMS, &product);

        assert_true(ratio >= 1 && ratio <= 1 / 0.8);
    }
}

/* One tile's worth of rows and columns over a deep k: no split is faster than all SMs at the rate, and the split that
 * is taken pays the second kernel. */
static void a_split_depth(void **state)
{
    (void)state;
    double s = seconds(1, 256, 128, 1 << 20), one_sm = 2 * 256. * 128 * (1 << 20) / 1e12;

    assert_true(s < one_sm / 16 && s >= one_sm / SMS + 2 * fit.overhead);
}

/* The depth goes in steps of 64 bytes: 32 halves, 16 of single precision. */
static void steps_of_depth(void **state)
{
    struct matmul_fit quick = fit;

    (void)state;
    quick.bandwidth = 1e20;
    for (double value = 2; value <= 4; value += 2) {
        struct product product = {8, 2048, 2048, 128, LAYOUT_NN, value, FORM_MATMUL, {.exponent = 0}};
        double whole = matmul_seconds(&quick, SMS, &product), step = 64 / value, next;

        product.k = 128 + 8;
        next = matmul_seconds(&quick, SMS, &product);
        assert_true(next > whole);
        product.k = 128 + step;
        assert_near(matmul_seconds(&quick, SMS, &product), next, 1e-12);
    }
}

/* A share of the results' traffic is added to the rest; the operands' traffic never is. */
static void results_that_nothing_hides(void **state)
{
    const struct product scores = {64, 2048, 2048, 64, LAYOUT_NT, 2, FORM_MATMUL, {.exponent = 0}},
                         values = {64, 2048, 64, 2048, LAYOUT_NN, 2, FORM_MATMUL, {.exponent = 0}};
    struct matmul_fit drained = fit, quick = fit;
    double written = 2 * 64. * 2048 * 2048 / fit.bandwidth;

    (void)state;
    drained.drain = 1;
    drained.overlap = quick.overlap = 100;
    quick.bandwidth = 1e20;
    assert_near(matmul_seconds(&drained, SMS, &scores), matmul_seconds(&quick, SMS, &scores) + written, 0.01);
    quick.bandwidth = fit.bandwidth;
    assert_true(matmul_seconds(&drained, SMS, &scores) > matmul_seconds(&quick, SMS, &scores) + 0.3 * written);
    assert_near(matmul_seconds(&drained, SMS, &values), matmul_seconds(&quick, SMS, &values), 0.05);
}

/* What writes fp8 products would be twice too fast at a byte a result: they are bf16, two. */
static void results_of_fp8(void **state)
{
    struct matmul_fit drained = fit, quick = fit;
    struct product product = {1, 4096, 4096, 4096, LAYOUT_NT, 1, FORM_MATMUL, {.exponent = 0}};

    (void)state;
    drained.drain = 1;
    quick.bandwidth = 1e20;
    drained.rate = quick.rate = 1e20;
    drained.fill = quick.fill = 0;
    assert_near(matmul_seconds(&drained, SMS, &product) - matmul_seconds(&quick, SMS, &product),
                (1 + 1 + 2) * 4096. * 4096 / fit.bandwidth, 1e-3);
}

/* 101 tiles on 100 SMs: two whole waves (or smaller tiles, or a split depth), against little more than one. */
static void quantization(void **state)
{
    (void)state;
    struct matmul_fit soft = fit;
    struct product product = {101, 256, 128, 100000, LAYOUT_NN, 2, FORM_MATMUL, {.exponent = 0}};
    double hard = matmul_seconds(&fit, SMS, &product);

    soft.quantization = 0;
    assert_true(matmul_seconds(&soft, SMS, &product) < 0.99 * hard);
    product.batch = 100;
    assert_near(matmul_seconds(&soft, SMS, &product), matmul_seconds(&fit, SMS, &product), 1e-12);
}

/* 200 blocks of 128 queries on 100 SMs are two waves, and traffic comes on top; causal visits half of the keys and half
 * a block. */
static void attention(void **state)
{
    (void)state;
    struct attention_fit flash = {.rate = 100e12, .score = 1e-13, .quantization = 1, .bandwidth = 1e12,
                                  .overhead = 1e-6, .overlap = 1, .speed = 1};
    struct heads heads = {25, 1024, 1024, 64, 2, 0, 0};
    double score = 4 * 64 / 1e12 + 1e-13, forward = attention_seconds(&flash, SMS, ATTENTION_FORWARD, &heads);

    double traffic = 1e-6 + attention_bytes(ATTENTION_FORWARD, &heads) / 1e12;

    assert_near(forward, traffic + 2 * 128 * 1024 * score, 1e-12);
    assert_near(attention_seconds(&flash, SMS, ATTENTION_FORWARD_CAUSAL, &heads), traffic + 2 * 128 * 576 * score,
                1e-12);
    assert_true(attention_seconds(&flash, SMS, ATTENTION_BACKWARD, &heads) > 2 * forward);
    flash.speed = 0.8;       /* of what the SMs do, not of the traffic */
    assert_near(attention_seconds(&flash, SMS, ATTENTION_FORWARD, &heads), traffic + 2 * 128 * 1024 * score / 0.8,
                1e-12);
    flash.speed = 1;
    heads.batch = 2500;
    assert_near(attention_seconds(&flash, SMS, ATTENTION_FORWARD, &heads), 100 * (forward - 1e-6), 0.01);
    heads.n = 1;
    assert_true(attention_seconds(&flash, SMS, ATTENTION_FORWARD, &heads) >=
                attention_bytes(ATTENTION_FORWARD, &heads) / 1e12);
}

/* With `tail` 200 blocks on 100 SMs take two of the mean and that share of the longest, and never less than the work of
 * an SM. A causal mask halves the mean, not the longest. Heads of 72 are padded to 96. Scores and products that overlap
 * perfectly take the longer of the two. Grouped heads read less. */
static void attention_blocks(void **state)
{
    (void)state;
    struct attention_fit flash = {.rate = 100e12, .score = 1e-13, .overlap = 1, .fill = 1e-7, .tail = 0.5,
                                  .bandwidth = 1e12, .overhead = 1e-6, .speed = 1};
    struct heads heads = {25, 1024, 1024, 64, 2, 0, 0}, padded = {25, 1024, 1024, 72, 2, 1e6, 0};
    double score = 4 * 64 / 1e12 + 1e-13, longest = 1e-7 + 128 * 1024 * score;
    double traffic = 1e-6 + attention_bytes(ATTENTION_FORWARD, &heads) / 1e12;

    assert_near(attention_seconds(&flash, SMS, ATTENTION_FORWARD, &heads), traffic + 2.5 * longest, 1e-12);
    assert_near(attention_seconds(&flash, SMS, ATTENTION_FORWARD_CAUSAL, &heads),
                traffic + 2 * (1e-7 + 128 * 576 * score) + 0.5 * longest, 1e-12);
    heads.bytes = 1e6;
    assert_near(attention_seconds(&flash, SMS, ATTENTION_FORWARD, &heads), 2e-6 + 2.5 * longest, 1e-12);
    heads.k = 96;
    assert_near(attention_seconds(&flash, SMS, ATTENTION_FORWARD, &padded),
                attention_seconds(&flash, SMS, ATTENTION_FORWARD, &heads), 1e-12);
    flash.overlap = 100;
    assert_near(attention_seconds(&flash, SMS, ATTENTION_FORWARD, &heads),
                2e-6 + 2.5 * (1e-7 + 128 * 1024 * 4 * 96 / 1e12), 1e-12);
}

/* A sample of microseconds is a burst; one of half a minute has the speed that lasts, and one that takes as long as the
 * power controller to act is in the middle. Jobs have no such parameter. */
static void long_samples(void **state)
{
    (void)state;
    struct matmul_fit burst = fit, lasting = fit;
    struct product product = {1, 4096, 4096, 512, LAYOUT_NT, 2, FORM_MATMUL, {.exponent = 0}};

    burst.repeated.lasting = 0;
    lasting.repeated.lasting = 0.8;
    double brief = matmul_seconds(&burst, SMS, &product);
    assert_near(matmul_seconds(&lasting, SMS, &product), brief * (1 + 0.25 * brief / (brief + 3e-3)), 1e-12);
    product.batch = 30 / brief;
    double whole = matmul_seconds(&burst, SMS, &product);
    assert_near(matmul_seconds(&lasting, SMS, &product) / whole, 1.25, 1e-3);
}

/* The power limit bounds the rate of large products; a product of one tile takes too little power to be slower. */
static void a_sustained_rate(void **state)
{
    (void)state;
    struct matmul_fit limited = fit;
    struct product large = {1, 65536, 8192, 8192, LAYOUT_NN, 2, FORM_MATMUL, {.exponent = 0}},
                   small = {1, 256, 128, 8192, LAYOUT_NN, 2, FORM_MATMUL, {.exponent = 0}};

    limited.sustained = 70e12;
    assert_near(matmul_seconds(&limited, SMS, &large), 2 * 65536. * 8192 * 8192 / 70e12, 2e-3);
    assert_near(matmul_seconds(&limited, SMS, &small), matmul_seconds(&fit, SMS, &small), 1e-12);
}

/* Attention slows down as products do. */
static void long_attention(void **state)
{
    (void)state;
    struct attention_fit flash = {.rate = 100e12, .score = 0, .overlap = 1, .bandwidth = 1e12, .overhead = 2e-6,
                                  .speed = 1};
    const struct heads heads = {1024, 16384, 16384, 128, 2, 0, 0};
    double burst = attention_seconds(&flash, SMS, ATTENTION_FORWARD, &heads);

    flash.repeated.lasting = 0.8;
    assert_near(attention_seconds(&flash, SMS, ATTENTION_FORWARD, &heads), burst * (1 + 0.25 * burst / (burst + 3e-3)),
                1e-12);
    assert_near(attention_seconds(&flash, SMS, ATTENTION_FORWARD, &heads) / burst, 1.25, 1e-2);
}

static void memory(void **state)
{
    (void)state;
    struct memory_fit copy = {.overhead = 3e-6, .bandwidth = 2e12};

    assert_near(memory_seconds(&copy, 4e9), 2e-3 + 3e-6, 1e-12);
}

/* Under a causal mask the i-th block of 128 queries computes with i blocks of keys. Under a window it computes with the
 * blocks from the first key of its first query on, and half a block more for that key's place in its block. A window as
 * wide as the keys hides nothing, and the time of a narrow one is linear in the keys. */
static void attention_windows(void **state)
{
    struct attention_fit flash = {.rate = 100e12, .score = 1e-13, .overlap = 1, .fill = 1e-7, .tail = 0.5,
                                  .bandwidth = 1e15, .overhead = 0, .speed = 1};
    struct heads heads = {100, 8192, 8192, 128, 2, 0, 0};
    double all = attention_seconds(&flash, SMS, ATTENTION_FORWARD_CAUSAL, &heads), narrow, twice;

    (void)state;
    assert_near(attention_share(1024, true, 0), (1 + 8) / 2.0 / 8, 1e-12);
    assert_near(attention_share(1024, true, 1024), attention_share(1024, true, 0), 1e-12);
    for (double window = 64; window < 4096; window *= 2) {       /* multiples of half a block: 1, 2, ... c, c, ... */
        double c = window / 128 + 1.5, sum = 0;

        for (int i = 1; i <= 4096 / 128; i++)
            sum += i <= c ? i : c;
        assert_near(attention_share(4096, true, window), sum / (32 * 32), 0.02);
    }
    heads.window = 8192;
    assert_near(attention_seconds(&flash, SMS, ATTENTION_FORWARD_CAUSAL, &heads), all, 1e-12);
    heads.window = 128;
    narrow = attention_seconds(&flash, SMS, ATTENTION_FORWARD_CAUSAL, &heads);
    heads.m = heads.n = 16384;
    twice = attention_seconds(&flash, SMS, ATTENTION_FORWARD_CAUSAL, &heads);
    assert_true(narrow < all / 10);
    assert_near(twice, 2 * narrow, 0.02);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_wave),     cmocka_unit_test(bound_by_traffic), cmocka_unit_test(bounds),
        cmocka_unit_test(more_work),    cmocka_unit_test(a_doubled_batch),  cmocka_unit_test(layouts),
        cmocka_unit_test(steps_of_depth),
        cmocka_unit_test(results_that_nothing_hides), cmocka_unit_test(results_of_fp8),
        cmocka_unit_test(quantization), cmocka_unit_test(attention), cmocka_unit_test(attention_blocks),
        cmocka_unit_test(attention_windows),
        cmocka_unit_test(long_samples), cmocka_unit_test(a_sustained_rate), cmocka_unit_test(long_attention),
        cmocka_unit_test(memory),
        cmocka_unit_test(rows_of_16_bytes), cmocka_unit_test(unaligned_tiles), cmocka_unit_test(a_split_depth),
        cmocka_unit_test(a_long_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
