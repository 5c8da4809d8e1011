/* Muon's orthogonalization of matrices: FLOP by hand, what a tensor group exchanges, and who owns which matrix. */
#include "kernels/newton_schulz.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/base.h"

#include <cmocka.h>

static const struct orthogonalization whole = {.tensor = 1, .split = true, .value = 4, .dtype = DTYPE_BF16};

static void assert_near(double actual, double expected)
{
    if (!(fabs(actual - expected) <= 1e-12 * fabs(expected)))
        fail_msg("%.17g instead of %.17g", actual, expected);
}

/* 5 (4 m^2 n + 2 m^3), m <= n, whichever way the matrix lies. */
static double by_hand(double m, double n)
{
    double least = fmin(m, n), most = fmax(m, n);

    return 5 * (4 * least * least * most + 2 * least * least * least);
}

static void flop_by_hand(void **state)
{
    static const double shapes[][2] = {{768, 768}, {768, 3072}, {3072, 768}, {8192, 1024}, {1, 4096}};

    (void)state;
    for (size_t i = 0; i < COUNT(shapes); i++) {
        struct matrix matrix = {.out = shapes[i][0], .in = shapes[i][1], .count = 3};

        assert_near(newton_schulz_flop(&matrix, &whole), 3 * by_hand(shapes[i][0], shapes[i][1]));
    }
}

/* Jordan et al. 2024, section "Runtime analysis": the overhead over the 6 m n B FLOP of a batch of B tokens is at most T m
 * / B, with m <= n; 0.7 % of the NanoGPT speed run (768, 524288 tokens) and 0.5 % of Llama 405B (16384, 16 million). */
static void overhead_is_published(void **state)
{
    static const struct { double m, n, tokens, percent; } cases[] = {
        {768, 768, 524288, 0.7}, {768, 3072, 524288, 0.7}, {16384, 16384, 16e6, 0.5}, {16384, 53248, 16e6, 0.5},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        double m = cases[i].m, n = cases[i].n, bound = NEWTON_SCHULZ_STEPS * m / cases[i].tokens;
        struct matrix matrix = {.out = n, .in = m, .count = 1};
        double overhead = newton_schulz_flop(&matrix, &whole) / (6 * m * n * cases[i].tokens);

        assert_true(fabs(100 * bound - cases[i].percent) < 0.05);
        assert_true(overhead <= bound * (1 + 1e-12));
        if (m == n)
            assert_near(overhead, bound);
        else
            assert_near(overhead, bound * (4 + 2 * m / n) / 6);
    }
}

/* DeepSpeed's zeropower_via_gram_newtonschulz: 4 products with X and 14 squares; square matrices are as standard. */
static void gram_has_fewer(void **state)
{
    struct orthogonalization gram = whole;
    struct matrix wide = {.out = 1024, .in = 4096, .count = 1}, square = {.out = 1024, .in = 1024, .count = 1};

    (void)state;
    gram.method = NEWTON_SCHULZ_GRAM;
    assert_near(newton_schulz_flop(&wide, &gram), 4 * 2 * 1024. * 1024 * 4096 + 14 * 2 * 1024. * 1024 * 1024);
    assert_near(newton_schulz_flop(&square, &gram), newton_schulz_flop(&square, &whole));
}

/* Queries, keys and values of one tensor, apart or as one matrix. */
static void parts_are_apart(void **state)
{
    struct orthogonalization joined = whole;
    struct matrix qkv = {.out = 6144, .in = 4096, .parts = {4096, 1024, 1024}, .cut = MATRIX_ROWS, .count = 1};

    (void)state;
    joined.split = false;
    assert_near(newton_schulz_flop(&qkv, &whole), by_hand(4096, 4096) + 2 * by_hand(1024, 4096));
    assert_near(newton_schulz_flop(&qkv, &joined), by_hand(6144, 4096));
}

/* A 4096 x 2048 matrix that four GPUs divide by rows, and one by columns. */
static void tensor_groups(void **state)
{
    static const enum muon_tensor modes[] = {MUON_TENSOR_DUPLICATED, MUON_TENSOR_BLOCKWISE, MUON_TENSOR_DISTRIBUTED};
    const struct matrix rows = {.out = 1024, .in = 2048, .cut = MATRIX_ROWS, .count = 1};
    const struct matrix columns = {.out = 4096, .in = 512, .cut = MATRIX_COLUMNS, .count = 1};
    const struct matrix none = {.out = 4096, .in = 2048, .count = 1};
    /* products over the divided dimension, of the other one squared: 2048 for rows, 4096 for columns */
    const double flop[][2] = {{by_hand(4096, 2048), by_hand(4096, 2048)}, {by_hand(1024, 2048), by_hand(4096, 512)},
                              {5 * (4 * 2048. * 2048 * 1024 + 2 * 2048. * 2048 * 2048),
                               5 * (4 * 4096. * 4096 * 512 + 2 * 4096. * 4096 * 4096)}};
    const double counts[] = {1, 0, 5}, bytes[][2] = {{4 * 4096. * 2048, 4 * 4096. * 2048}, {0, 0},
                                                     {5 * 2 * 2048. * 2048, 5 * 2 * 4096. * 4096}};

    (void)state;
    for (size_t i = 0; i < COUNT(modes); i++) {
        struct orthogonalization how = whole;
        struct orthogonal_exchanges by_rows, by_columns;

        how.tensor = 4;
        how.mode = modes[i];
        by_rows = newton_schulz_exchanges(&rows, &how);
        by_columns = newton_schulz_exchanges(&columns, &how);
        assert_near(newton_schulz_flop(&rows, &how), flop[i][0]);
        assert_near(newton_schulz_flop(&columns, &how), flop[i][1]);
        assert_near(newton_schulz_flop(&none, &how), by_hand(4096, 2048));
        assert_true(by_rows.count == counts[i] && by_columns.count == counts[i]);
        assert_near(by_rows.bytes, bytes[i][0]);
        assert_near(by_columns.bytes, bytes[i][1]);
        assert_true(newton_schulz_exchanges(&none, &how).count == 0);
    }
}

static double load(const struct matrices *matrices)
{
    double flop = 0;

    for (size_t i = 0; i < matrices->count; i++) {
        double least = fmin(matrices->items[i].out, matrices->items[i].in);

        flop += matrices->items[i].count * least * matrices->items[i].out * matrices->items[i].in;
    }
    return flop;
}

/* Random matrices: what a slowest owner has is between the mean and the mean and the dearest matrix (Graham 1969), and
 * equals a plain longest-first assignment, matrix by matrix. */
static void owners_are_balanced(void **state)
{
    unsigned seed = 1;

    (void)state;
    for (int round = 0; round < 300; round++) {
        struct matrices all = {.count = 0};
        struct { double cost; } items[600];
        size_t n = 0;
        int owners = 1 + rand_r(&seed) % 40;
        double loads[40] = {0}, dearest = 0, most = 0;
        struct owned_matrices owned;

        for (int shape = 1 + rand_r(&seed) % 5; shape > 0; shape--) {
            struct matrix matrix = {.out = 1 + rand_r(&seed) % 500, .in = 1 + rand_r(&seed) % 500,
                                    .count = 1 + rand_r(&seed) % 100};
            double cost = matrix.out * matrix.in * fmin(matrix.out, matrix.in);

            matrices_add(&all, &matrix);
            dearest = fmax(dearest, cost);
            for (int i = 0; i < (int)matrix.count; i++)
                items[n++].cost = cost;
        }
        for (size_t i = 0; i < n; i++)           /* dearest first */
            for (size_t k = i + 1; k < n; k++)
                if (items[k].cost > items[i].cost) {
                    double cost = items[i].cost;

                    items[i].cost = items[k].cost;
                    items[k].cost = cost;
                }
        for (size_t i = 0; i < n; i++) {
            int least = 0;

            for (int k = 1; k < owners; k++)
                least = loads[k] < loads[least] ? k : least;
            loads[least] += items[i].cost;
        }
        for (int k = 0; k < owners; k++)
            most = fmax(most, loads[k]);
        matrices_owned(&all, owners, &owned);
        assert_true(load(&owned.slowest) >= load(&all) / owners * (1 - 1e-12));
        assert_true(load(&owned.slowest) <= (load(&all) / owners + dearest) * (1 + 1e-12));
        assert_true(fabs(load(&owned.slowest) - most) <= 1e-9 * most);
        assert_true(owned.elements >= matrices_elements(&all) / owners * (1 - 1e-12));
        assert_true(owned.elements <= matrices_elements(&all));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flop_by_hand),    cmocka_unit_test(overhead_is_published), cmocka_unit_test(gram_has_fewer),
        cmocka_unit_test(parts_are_apart), cmocka_unit_test(tensor_groups),        cmocka_unit_test(owners_are_balanced),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
