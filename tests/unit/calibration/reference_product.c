/* reference_product: the products of experts, of formats with scales, and layers, against plain sums. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <math.h>
#include <stdlib.h>
#include <cmocka.h>

#include "reference.h"
#include "text.h"

/* Operands of a case; inputs are normal numbers, matrices of codes are quantised normal numbers, kept in `exact`. */
struct operands {
    struct operand list[OPERANDS_MAX];
    double *at[OPERANDS_MAX], *exact[OPERANDS_MAX];
    int count;
};

/* Normal numbers. Each group of 16 neighbours is larger or smaller than others, so that their scales differ. */
static double *drawn(int64_t count, uint64_t *seed)
{
    double *values = xcalloc((size_t)count, sizeof *values);

    for (int64_t i = 0; i < count; i++) {
        double u = ((double)(next(seed) >> 11) + 0.5) * 0x1p-53, v = (double)(next(seed) >> 11) * 0x1p-53;

        values[i] = ldexp(sqrt(-2 * log(u)) * cos(2 * acos(-1) * v), (int)(i / 16 * 7 % 5) - 2);
    }
    return values;
}

static void make(const struct bench_case *one, struct operands *made)
{
    uint64_t seed = 11;

    *made = (struct operands){.count = 0};
    made->count = bench_operands(one, made->list);
    for (int i = 0; i < made->count; i++) {
        const struct operand *own = &made->list[i];

        bool normal = own->fill == FILL_NORMAL || own->fill == FILL_SQUARE;

        made->at[i] = normal ? drawn(own->count, &seed) : xcalloc((size_t)own->count, sizeof(double));
        for (int64_t j = 0; own->fill == FILL_VALUE && j < own->count; j++)
            made->at[i][j] = own->value;
        if (own->fill == FILL_QUANTISED) {
            made->exact[i] = drawn(own->count, &seed);
            format_quantise(&own->quantised, made->exact[i], made->at + i - PART_CODES);
        }
    }
}

static void drop(struct operands *made)
{
    for (int i = 0; i < made->count; i++) {
        free(made->at[i]);
        free(made->exact[i]);
    }
}

/* The root mean square of the differences, over the root mean square of the expected values. */
static double difference(const double *expected, const double *found, int64_t count)
{
    double all = 0, off = 0;

    for (int64_t i = 0; i < count; i++) {
        all += expected[i] * expected[i];
        off += (expected[i] - found[i]) * (expected[i] - found[i]);
    }
    return sqrt(off / all);
}

/* The product of each expert is a separate product. */
static void test_grouped_products_are_products(void **state)
{
    enum { EXPERTS = 3, M = 4, N = 5, K = 6 };

    (void)state;
    for (int layout = BENCH_LAYOUT_NN; layout <= BENCH_LAYOUT_TN; layout++) {
        bool shared = layout == BENCH_LAYOUT_TN;
        struct bench_case one = {BENCH_MATMUL, BENCH_BF16, (enum bench_layout)layout, 1, M, N, K, 0}, all = one;
        struct operands made;

        all.kernel = BENCH_MATMUL_GROUPED;
        all.batch = EXPERTS;
        *(shared ? &all.k : &all.m) *= EXPERTS;
        make(&all, &made);
        reference_run(&all, made.at);
        assert_int_equal(made.list[PLAIN_C].count, EXPERTS * M * N);
        for (int e = 0; e < EXPERTS; e++) {
            double c[M * N], *own[OPERANDS_MAX] = {made.at[PLAIN_A] + e * M * K, made.at[PLAIN_B] + e * K * N, c};

            reference_run(&one, own);
            for (int i = 0; i < M * N; i++)
                assert_true(c[i] == made.at[PLAIN_C][e * M * N + i]);
        }
        drop(&made);
    }
}

/* The product of the quantised values is near the product of the values: a scale in a wrong place would change it. Each
 * value is off by up to half a step of its format: 1/16 of it in e4m3, 1/4 in e2m1; the mean square of two is below
 * that. */
static void check_near(const struct bench_case *one)
{
    double within = one->dtype == BENCH_NVFP4 ? 0.2 : 0.05, *plain;
    struct operands made;
    struct bench_case exact = *one;
    double *operands[OPERANDS_MAX];

    make(one, &made);
    reference_run(one, made.at);
    exact.dtype = BENCH_BF16;
    exact.kernel = one->kernel == BENCH_MATMUL_QUANTIZED ? BENCH_MATMUL : one->kernel;
    plain = xcalloc((size_t)made.list[NARROW_C].count, sizeof *plain);
    operands[PLAIN_A] = one->kernel == BENCH_MATMUL_QUANTIZED ? made.at[NARROW_SOURCE]
                                                              : made.exact[NARROW_A + PART_CODES];
    operands[PLAIN_B] = made.exact[NARROW_B + PART_CODES];
    operands[PLAIN_C] = plain;
    reference_run(&exact, operands);
    if (difference(plain, made.at[NARROW_C], made.list[NARROW_C].count) > within)
        fail_msg("%s %s: off by %g", bench_kernel_names[one->kernel], bench_dtype_names[one->dtype],
                 difference(plain, made.at[NARROW_C], made.list[NARROW_C].count));
    free(plain);
    drop(&made);
}

static void test_quantised_products(void **state)
{
    (void)state;
    for (int dtype = BENCH_FP8; dtype <= BENCH_NVFP4; dtype++) {
        check_near(&(struct bench_case){BENCH_MATMUL, (enum bench_dtype)dtype, BENCH_LAYOUT_NT, 1, 128, 128, 384, 0});
        check_near(&(struct bench_case){BENCH_MATMUL_QUANTIZED, (enum bench_dtype)dtype, BENCH_LAYOUT_NT, 1, 256, 128,
                                        256, 0});
        check_near(&(struct bench_case){BENCH_MATMUL_GROUPED, (enum bench_dtype)dtype, BENCH_LAYOUT_NT, 3, 384, 128,
                                        256, 0});
    }
}

/* Every expert gets equally many rows, and every row is of one copy. */
static void test_rows_of_experts(void **state)
{
    enum { EXPERTS = 4, ROWS = 24 };
    int seen[ROWS] = {0};

    (void)state;
    for (int64_t copy = 0; copy < ROWS; copy++)
        seen[bench_expert_row(copy, EXPERTS, ROWS)]++;
    for (int i = 0; i < ROWS; i++)
        assert_int_equal(seen[i], 1);
    assert_int_equal(bench_expert_row(1, EXPERTS, ROWS), ROWS / EXPERTS);
    assert_true(bench_top_k(8) == 2 && bench_top_k(32) == 4 && bench_top_k(128) == 8 && bench_top_k(256) == 8);
}

static double dot(const double *a, const double *b, int64_t count)
{
    double sum = 0;

    for (int64_t i = 0; i < count; i++)
        sum += a[i] * b[i];
    return sum;
}

/* A layer, token by token: the weighted sum of what its experts make of it. `up` and `down`: experts' weights. */
static double *layer_of(const struct bench_case *one, double *const *at, const double *up, const double *down)
{
    int64_t each = bench_top_k(one->batch), tokens = one->m / each, n = one->n, k = one->k;
    double *sums = xcalloc((size_t)(tokens * k), sizeof *sums), *inner = xcalloc((size_t)n, sizeof *inner);

    for (int64_t copy = 0; copy < one->m; copy++) {
        int64_t expert = bench_expert_row(copy, one->batch, one->m) / (one->m / one->batch);
        const double *token = at[MOE_TOKENS] + copy / each * k, *own = up + expert * 2 * n * k;

        for (int64_t j = 0; j < n; j++) {
            double gate = dot(token, own + j * k, k);

            inner[j] = gate / (1 + exp(-gate)) * dot(token, own + (n + j) * k, k);
        }
        for (int64_t j = 0; j < k; j++)
            sums[copy / each * k + j] += at[MOE_SHARES][copy] * dot(inner, down + (expert * k + j) * n, n);
    }
    free(inner);
    return sums;
}

static void check_layer(const struct bench_case *one, double within)
{
    struct operands made;
    bool narrow = bench_is_narrow(one->dtype);
    double *sums;

    make(one, &made);
    reference_run(one, made.at);
    sums = layer_of(one, made.at, narrow ? made.exact[MOE_UP + PART_CODES] : made.at[MOE_UP],
                    narrow ? made.exact[MOE_NARROW_DOWN + PART_CODES] : made.at[MOE_PLAIN_DOWN]);
    assert_true(made.list[MOE_OUT].role == ROLE_OUT);
    if (!(difference(sums, made.at[MOE_OUT], made.list[MOE_OUT].count) <= within))
        fail_msg("%s: off by %g", bench_dtype_names[one->dtype],
                 difference(sums, made.at[MOE_OUT], made.list[MOE_OUT].count));
    free(sums);
    drop(&made);
}

static void test_layers(void **state)
{
    (void)state;
    check_layer(&(struct bench_case){BENCH_MOE, BENCH_BF16, BENCH_LAYOUT_NONE, 4, 48, 24, 16, 0}, 1e-12);
    check_layer(&(struct bench_case){BENCH_MOE, BENCH_BF16, BENCH_LAYOUT_NONE, 32, 64, 8, 8, 0}, 1e-12);
    for (int dtype = BENCH_FP8; dtype <= BENCH_NVFP4; dtype++)
        check_layer(&(struct bench_case){BENCH_MOE, (enum bench_dtype)dtype, BENCH_LAYOUT_NONE, 2, 256, 128, 128, 0},
                    dtype == BENCH_NVFP4 ? 0.35 : 0.09);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_grouped_products_are_products),
        cmocka_unit_test(test_quantised_products),
        cmocka_unit_test(test_rows_of_experts),
        cmocka_unit_test(test_layers),
    };

    return cmocka_run_group_tests_name("reference_product", tests, NULL, NULL);
}
