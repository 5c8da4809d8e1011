/* reference: dtsim-bench's reference kernels are right. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <math.h>
#include <stdlib.h>
#include <cmocka.h>

#include "reference.h"
#include "text.h"

/* Operands of a case with normally distributed inputs. */
static void make(const struct bench_case *one, double *at[OPERANDS_MAX], uint64_t *seed)
{
    struct operand operands[OPERANDS_MAX];
    int count = bench_operands(one, operands);

    for (int i = 0; i < OPERANDS_MAX; i++) {
        at[i] = i < count ? xcalloc((size_t)operands[i].count, sizeof(double)) : NULL;
        for (int64_t j = 0; i < count && j < operands[i].count; j++) {
            double u = ((double)(*seed >> 11) + 0.5) * 0x1p-53, v = (double)(next(seed) >> 11) * 0x1p-53;

            at[i][j] = sqrt(-2 * log(u)) * cos(2 * acos(-1) * v);
            if (operands[i].fill == FILL_INDEX)
                at[i][j] = floor(v * operands[i].value);
            next(seed);
        }
    }
}

static void drop(double *at[OPERANDS_MAX])
{
    for (int i = 0; i < OPERANDS_MAX; i++)
        free(at[i]);
}

/* A pair of kernels: the backward's operand `dy` is the slope of the forward's `y`, and its `dx` the slope of the
 * forward's x. `from`: for each other operand of the backward the forward's operand that it is. */
struct pair {
    enum bench_kernel forward, backward;
    int y, x, dy, dx;
    int from[OPERANDS_MAX];          /* by the backward's operands; -1: nothing */
};
#define NONE -1
static const struct pair pairs[] = {
    {BENCH_SOFTMAX_FORWARD, BENCH_SOFTMAX_BACKWARD, 1, 0, 1, 2, {1, NONE, NONE}},
    {BENCH_LAYERNORM_FORWARD, BENCH_LAYERNORM_BACKWARD, 3, 0, 1, 5, {0, NONE, 1, 4, 5, NONE, NONE, NONE, NONE}},
    {BENCH_LAYERNORM_FORWARD, BENCH_LAYERNORM_BACKWARD, 3, 1, 1, 6, {0, NONE, 1, 4, 5, NONE, NONE, NONE, NONE}},
    {BENCH_LAYERNORM_FORWARD, BENCH_LAYERNORM_BACKWARD, 3, 2, 1, 7, {0, NONE, 1, 4, 5, NONE, NONE, NONE, NONE}},
    {BENCH_RMSNORM_FORWARD, BENCH_RMSNORM_BACKWARD, 2, 0, 1, 4, {0, NONE, 1, 3, NONE, NONE, NONE}},
    {BENCH_RMSNORM_FORWARD, BENCH_RMSNORM_BACKWARD, 2, 1, 1, 5, {0, NONE, 1, 3, NONE, NONE, NONE}},
    {BENCH_GELU_FORWARD, BENCH_GELU_BACKWARD, 2, 0, 2, 3, {0, 1, NONE, NONE}},
    {BENCH_SWIGLU_FORWARD, BENCH_SWIGLU_BACKWARD, 1, 0, 1, 2, {0, NONE, NONE}},
    {BENCH_DROPOUT_FORWARD, BENCH_DROPOUT_BACKWARD, 3, 0, 0, 2, {NONE, 4, NONE}},
    {BENCH_EMBEDDING_FORWARD, BENCH_EMBEDDING_BACKWARD, 2, 0, 0, 2, {NONE, 1, NONE}},
    {BENCH_CROSS_ENTROPY_FORWARD, BENCH_CROSS_ENTROPY_BACKWARD, 2, 0, 3, 4, {0, 1, 3, NONE, NONE}},
    {BENCH_ATTENTION_FORWARD, BENCH_ATTENTION_BACKWARD, 3, 0, 5, 8,
     {0, 1, 2, 3, 4, NONE, NONE, NONE, NONE, NONE, NONE}},
    {BENCH_ATTENTION_FORWARD, BENCH_ATTENTION_BACKWARD, 3, 1, 5, 9,
     {0, 1, 2, 3, 4, NONE, NONE, NONE, NONE, NONE, NONE}},
    {BENCH_ATTENTION_FORWARD, BENCH_ATTENTION_BACKWARD, 3, 2, 5, 10,
     {0, 1, 2, 3, 4, NONE, NONE, NONE, NONE, NONE, NONE}},
    {BENCH_ATTENTION_FORWARD_CAUSAL, BENCH_ATTENTION_BACKWARD_CAUSAL, 3, 0, 5, 8,
     {0, 1, 2, 3, 4, NONE, NONE, NONE, NONE, NONE, NONE}},
    {BENCH_ATTENTION_FORWARD_CAUSAL, BENCH_ATTENTION_BACKWARD_CAUSAL, 3, 1, 5, 9,
     {0, 1, 2, 3, 4, NONE, NONE, NONE, NONE, NONE, NONE}},
};

static int64_t values_of(const struct bench_case *one, int operand)
{
    struct operand operands[OPERANDS_MAX];

    assert_true(operand < bench_operands(one, operands));
    return operands[operand].count;
}

/* The sum of y weighted by dy. */
static double weighted(const struct bench_case *one, const struct pair *pair, double *at[], const double *dy)
{
    double sum = 0;

    reference_run(one, at);
    for (int64_t i = values_of(one, pair->y) - 1; i >= 0; i--)
        sum += at[pair->y][i] * dy[i];
    return sum;
}

static void check_pair(const struct pair *pair, uint64_t *seed)
{
    struct bench_case one = {pair->forward, BENCH_FP32, BENCH_LAYOUT_NONE, 2, 5, 8, 4, 0}, back = one;
    double *at[OPERANDS_MAX], *slopes[OPERANDS_MAX];

    if (pair->forward == BENCH_ATTENTION_FORWARD_CAUSAL)
        one.n = back.n = one.m;
    back.kernel = pair->backward;
    make(&one, at, seed);
    make(&back, slopes, seed);
    for (int64_t i = 0; pair->forward == BENCH_DROPOUT_FORWARD && i < values_of(&one, 4); i++)
        at[4][i] = next(seed) % 10 > 0;
    reference_run(&one, at);
    for (int i = 0; i < OPERANDS_MAX && slopes[i]; i++)
        if (pair->from[i] != NONE)
            memcpy(slopes[i], at[pair->from[i]], (size_t)values_of(&back, i) * sizeof(double));
    if (pair->backward == BENCH_EMBEDDING_BACKWARD)
        memset(slopes[2], 0, (size_t)values_of(&back, 2) * sizeof(double));
    reference_run(&back, slopes);
    for (int64_t i = 0; i < values_of(&one, pair->x); i++) {
        const double step = 1e-5, here = at[pair->x][i];
        double above, below;

        at[pair->x][i] = here + step;
        above = weighted(&one, pair, at, slopes[pair->dy]);
        at[pair->x][i] = here - step;
        below = weighted(&one, pair, at, slopes[pair->dy]);
        at[pair->x][i] = here;
        if (fabs((above - below) / (2 * step) - slopes[pair->dx][i]) > 1e-6 * (1 + fabs(slopes[pair->dx][i])))
            fail_msg("%s, value %d: the slope is %g, not %g", bench_kernel_names[pair->backward], (int)i,
                     (above - below) / (2 * step), slopes[pair->dx][i]);
    }
    drop(at);
    drop(slopes);
}

/* The references that kernels are compared with: a backward is the slope of its forward. */
static void test_references_are_slopes(void **state)
{
    uint64_t seed = 3;

    (void)state;
    for (size_t i = 0; i < COUNT(pairs); i++)
        check_pair(&pairs[i], &seed);
}

/* A B, with each operand as it lies and transposed, by hand. */
static void test_reference_products(void **state)
{
    double a[] = {1, 2, 3, 4, 5, 6}, at[] = {1, 4, 2, 5, 3, 6}, b[] = {1, 0, 2, 1, 0, 3}, bt[] = {1, 2, 0, 0, 1, 3};
    const double expected[] = {1 + 4, 2 + 9, 4 + 10, 5 + 18};
    const struct { enum bench_layout layout; double *left, *right; } cases[] = {
        {BENCH_LAYOUT_NN, a, b}, {BENCH_LAYOUT_NT, a, bt}, {BENCH_LAYOUT_TN, at, b},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct bench_case one = {BENCH_MATMUL, BENCH_FP32, cases[i].layout, 1, 2, 2, 3, 0};
        double c[4], *operands[OPERANDS_MAX] = {cases[i].left, cases[i].right, c};

        reference_run(&one, operands);
        for (int j = 0; j < 4; j++)
            assert_true(c[j] == expected[j]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_references_are_slopes),
        cmocka_unit_test(test_reference_products),
    };

    return cmocka_run_group_tests_name("reference", tests, NULL, NULL);
}
