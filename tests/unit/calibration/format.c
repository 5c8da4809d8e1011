/* format: values and scales are rounded and laid out as their formats' documents say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <math.h>
#include <stdlib.h>
#include <cmocka.h>

#include "format.h"
#include "text.h"

/* The value of a code, by its bits of exponent and mantissa (OCP 8-bit Floating Point 1.0, Microscaling 1.0). */
static double decoded(unsigned code, int exponents, int mantissas, int bias)
{
    unsigned exponent = code >> mantissas & ((1u << exponents) - 1), mantissa = code & ((1u << mantissas) - 1);
    double fraction = (double)mantissa / (double)(1u << mantissas);

    return exponent > 0 ? ldexp(1 + fraction, (int)exponent - bias) : ldexp(fraction, 1 - bias);
}

/* Every code rounds to itself; the middle of two codes goes to the even one, a value next to the middle to the nearer
 * code. */
static void check_codes(enum bench_dtype dtype, int exponents, int mantissas, int bias, unsigned count)
{
    for (unsigned code = 0; code + 1 < count; code++) {
        double low = decoded(code, exponents, mantissas, bias), high = decoded(code + 1, exponents, mantissas, bias);
        double middle = (low + high) / 2, even = code % 2 ? high : low;

        assert_true((double)format_round(dtype, (float)low) == low);
        assert_true((double)format_round(dtype, (float)-high) == -high);
        assert_true((double)format_round(dtype, (float)middle) == even);
        assert_true((double)format_round(dtype, (float)(middle - (high - low) / 100)) == low);
        assert_true((double)format_round(dtype, (float)(middle + (high - low) / 100)) == high);
    }
}

static void test_codes(void **state)
{
    (void)state;
    check_codes(BENCH_FP8, 4, 3, 7, 127);            /* 127 is no number */
    check_codes(BENCH_E2M1, 2, 1, 1, 8);
    assert_true(decoded(126, 4, 3, 7) == 448 && decoded(7, 2, 1, 1) == 6);
    assert_true(format_round(BENCH_FP8, 1e9f) == 448 && format_round(BENCH_FP8, -449) == -448);
    assert_true(format_round(BENCH_E2M1, 1e9f) == 6 && format_round(BENCH_E2M1, -7) == -6);
    assert_true(format_round(BENCH_FP32, 0.1f) == 0.1f);
}

static void test_powers(void **state)
{
    (void)state;
    for (int i = -126; i < 127; i++) {
        float power = ldexpf(1, i);

        assert_true(power_above(power) == power);
        assert_true(power_above(1.01f * power) == 2 * power && power_above(1.99f * power) == 2 * power);
    }
    assert_true(power_above(0) == ldexpf(1, -126));
    assert_true(power_above(3e38f) == ldexpf(1, 127));
}

/* The tile of the documentation: offset -> (outer, inner). */
static void test_a_tile(void **state)
{
    (void)state;
    for (int64_t offset = 0; offset < 512; offset++)
        assert_int_equal(scale_offset(SCALES_TILES, 128, 4, offset % 16 / 4 * 32 + offset / 16, offset % 4), offset);
    /* tiles of a row of tiles one after another, 512 scales each; then the next 128 rows */
    assert_int_equal(scale_offset(SCALES_TILES, 300, 10, 0, 4), 512);
    assert_int_equal(scale_offset(SCALES_TILES, 300, 10, 0, 9), 1024 + 1);
    assert_int_equal(scale_offset(SCALES_TILES, 300, 10, 128, 0), 3 * 512);
    assert_int_equal(scale_offset(SCALES_TILES, 300, 10, 299, 7), (2 * 3 + 1) * 512 + 11 * 16 + 1 * 4 + 3);
}

/* Scales of blocks of 128: along the rows, and squares whose rows are padded to a multiple of 4. */
static void test_blocks_of_128(void **state)
{
    (void)state;
    assert_int_equal(scale_offset(SCALES_BY_BLOCK, 300, 5, 7, 0), 7);
    assert_int_equal(scale_offset(SCALES_BY_BLOCK, 300, 5, 7, 2), 607);
    assert_int_equal(scale_offset(SCALES_SQUARES, 384, 5, 127, 3), 3);
    assert_int_equal(scale_offset(SCALES_SQUARES, 384, 5, 256, 4), 2 * 8 + 4);
    assert_int_equal(scale_offset(SCALES_SQUARES, 384, 4, 130, 1), 4 + 1);
}

/* Every block has another place among the places of its matrix. */
static void test_places_are_apart(void **state)
{
    (void)state;
    for (int dtype = BENCH_FP8_BLOCK; dtype <= BENCH_NVFP4; dtype++)
        for (int weights = 0; weights < 2; weights++) {
            struct quantised matrix = {(enum bench_dtype)dtype, weights, 1, 384, 640};
            int64_t blocks = scale_blocks(matrix.k, bench_formats[dtype].block), places = quantised_scales(&matrix);
            bool *taken = xcalloc((size_t)places, sizeof *taken);
            int64_t step = quantised_layout(&matrix) == SCALES_SQUARES ? SQUARE_ROWS : 1;

            assert_int_equal(bench_dtype_bytes(bench_formats[dtype].scale, places) % 16, 0);
            for (int64_t row = 0; row < matrix.rows; row += step)
                for (int64_t block = 0; block < blocks; block++) {
                    int64_t at = scale_offset(quantised_layout(&matrix), matrix.rows, blocks, row, block);

                    assert_true(at >= 0 && at < places && !taken[at]);
                    taken[at] = true;
                }
            free(taken);
        }
}

/* A matrix, quantised and converted back; `units`: the value of a code of 1. */
struct trip { double *values, *parts[3], *back, *units; size_t count; };

static struct trip travel(const struct quantised *matrix, uint64_t seed, double size)
{
    size_t count = (size_t)(matrix->count * matrix->rows * matrix->k), scales = (size_t)quantised_scales(matrix);
    struct trip trip = {xcalloc(count, sizeof(double)),
                        {xcalloc(scales, sizeof(double)), xcalloc(4, sizeof(double)), xcalloc(count, sizeof(double))},
                        xcalloc(count, sizeof(double)), xcalloc(count, sizeof(double)), count};
    double *ones = xcalloc(count, sizeof *ones), *parts[3] = {trip.parts[0], trip.parts[1], ones};

    for (size_t i = 0; i < count; i++) {
        double u = ((double)(next(&seed) >> 11) + 0.5) * 0x1p-53, v = (double)(next(&seed) >> 11) * 0x1p-53;

        trip.values[i] = size * sqrt(-2 * log(u)) * cos(2 * acos(-1) * v);
    }
    trip.parts[1][0] = 1;
    for (size_t i = 0; i < scales; i++)
        trip.parts[0][i] = bench_formats[matrix->dtype].block > 0 ? -1 : 1;          /* -1: not written */
    format_quantise(matrix, trip.values, trip.parts);
    format_widen(matrix, trip.parts, trip.back);
    for (size_t i = 0; i < count; i++)
        ones[i] = 1;
    format_widen(matrix, parts, trip.units);
    free(ones);
    return trip;
}

static void end(struct trip *trip)
{
    free(trip->values);
    free(trip->back);
    free(trip->units);
    for (int i = 0; i < 3; i++)
        free(trip->parts[i]);
}

/* What comes back differs by half a step of its code at most; of the largest code by what its scale was rounded. */
static void check_trip(enum bench_dtype dtype, bool weights, double size)
{
    struct quantised matrix = {dtype, weights, 2, 128, 256};
    const struct bench_format *format = &bench_formats[dtype];
    struct trip trip = travel(&matrix, 5, size);
    double largest = 0, most = format->code == BENCH_E2M1 ? 6 : 448;
    double relative = format->code == BENCH_E2M1 ? 1 / 4. : 1 / 16.;
    double least = format->code == BENCH_E2M1 ? 0.25 : 0x1p-10;
    int64_t written = 0, height = quantised_layout(&matrix) == SCALES_SQUARES ? 128 : 1;

    for (size_t i = 0; i < trip.count; i++) {
        double code = fabs(trip.parts[2][i]), bound = trip.units[i] * fmax(least, code * relative);

        if (fabs(trip.back[i] - trip.values[i]) > bound * (1 + 1e-6))
            fail_msg("%s: %g came back as %g", bench_dtype_names[dtype], trip.values[i], trip.back[i]);
        largest = fmax(largest, code);
    }
    assert_true(largest <= most && largest > most / 2);
    for (int64_t i = 0; i < quantised_scales(&matrix); i++)
        written += trip.parts[0][i] > 0;
    assert_int_equal(written, format->block ? 2 * 128 / height * (256 / format->block) : quantised_scales(&matrix));
    end(&trip);
}

static void test_values_come_back(void **state)
{
    (void)state;
    for (int dtype = BENCH_FP8; dtype <= BENCH_NVFP4; dtype++)
        for (int weights = 0; weights < 2; weights++) {
            check_trip((enum bench_dtype)dtype, weights, 1);
            check_trip((enum bench_dtype)dtype, weights, 1000);
        }
}

/* By hand: one block of 16 values, the largest of the matrix. The factor is 12 / (6 x 448), so the block's scale 12 / 6
 * / factor is 448, and a unit of the code is 2. */
static void test_a_block_of_nvfp4(void **state)
{
    struct quantised matrix = {BENCH_NVFP4, false, 1, 1, 32};
    double values[32] = {12, -12, 6, 3, 1, 0.9, 0.1, 0}, scales[512] = {0}, factor[4] = {1}, codes[32];
    static const double expected[] = {6, -6, 3, 1.5, 0.5, 0.5, 0, 0};
    double *parts[] = {scales, factor, codes};

    (void)state;
    values[16] = 3;                                  /* the second block's scale is a quarter of the first's */
    values[17] = 1.5;
    format_quantise(&matrix, values, parts);
    assert_true(fabs(factor[0] - 12 / 2688.) < 1e-9 && factor[1] == 12);
    assert_true(scales[0] == 448 && scales[1] == 112);
    for (size_t i = 0; i < COUNT(expected); i++)
        assert_true(codes[i] == expected[i]);
    assert_true(codes[16] == 6 && codes[17] == 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_codes),           cmocka_unit_test(test_powers),
        cmocka_unit_test(test_a_tile),          cmocka_unit_test(test_blocks_of_128),
        cmocka_unit_test(test_places_are_apart), cmocka_unit_test(test_values_come_back),
        cmocka_unit_test(test_a_block_of_nvfp4),
    };

    return cmocka_run_group_tests_name("format", tests, NULL, NULL);
}
