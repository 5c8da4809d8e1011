#include "reference_product.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "reference.h"

/* Element (row, column) of a product's operand, which is in memory as it is or transposed. */
static double element(const double *at, bool transposed, int64_t rows, int64_t columns, int64_t row, int64_t column)
{
    return transposed ? at[column * rows + row] : at[row * columns + column];
}

static void multiply(enum bench_layout layout, int64_t m, int64_t n, int64_t k, const double *left, const double *right,
                     double *result)
{
    bool ta = layout == BENCH_LAYOUT_TN, tb = layout == BENCH_LAYOUT_NT;

    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            double sum = 0;

            for (int64_t l = 0; l < k; l++)
                sum += element(left, ta, m, k, i, l) * element(right, tb, k, n, l, j);
            result[i * n + j] = sum;
        }
}

/* The products of all experts, or of a batch. */
static void multiply_all(const struct bench_case *one, const double *left, const double *right, double *result)
{
    bool grouped = one->kernel == BENCH_MATMUL_GROUPED, shared = grouped && one->layout == BENCH_LAYOUT_TN;
    int64_t m = grouped && !shared ? one->m / one->batch : one->m, k = shared ? one->k / one->batch : one->k;

    for (int64_t b = 0; b < one->batch; b++)
        multiply(one->layout, m, one->n, k, left + b * m * k, right + b * k * one->n, result + b * m * one->n);
}

/* The values of the matrices whose scales are operand `first`, to be freed. */
static double *widened(const struct bench_case *one, double *const *operands, int first)
{
    struct operand list[OPERANDS_MAX];
    double *values;

    bench_operands(one, list);
    values = xcalloc((size_t)list[first + PART_CODES].count, sizeof *values);
    format_widen(&list[first + PART_CODES].quantised, operands + first, values);
    return values;
}

static void quantise(const struct bench_case *one, double *const *operands, int first, const double *values)
{
    struct operand list[OPERANDS_MAX];

    bench_operands(one, list);
    format_quantise(&list[first + PART_CODES].quantised, values, operands + first);
}

void reference_product(const struct bench_case *one, double *const operands[OPERANDS_MAX])
{
    double *left, *right;

    if (!bench_is_narrow(one->dtype)) {
        multiply_all(one, operands[PLAIN_A], operands[PLAIN_B], operands[PLAIN_C]);
        return;
    }
    if (one->kernel == BENCH_MATMUL_QUANTIZED)
        quantise(one, operands, NARROW_A, operands[NARROW_SOURCE]);
    left = widened(one, operands, NARROW_A);
    right = widened(one, operands, NARROW_B);
    multiply_all(one, left, right, operands[NARROW_C]);
    free(left);
    free(right);
}

/* One of the two grouped products of a layer; `rows` and `weights` are the first operands of its quantised matrices,
 * `from` the rows in bf16. */
static void multiply_experts(const struct bench_case *one, double *const *operands, const struct bench_case *product,
                             const double *from, int rows, int weights, double *result)
{
    double *left, *right;

    if (!bench_is_narrow(one->dtype)) {
        multiply_all(product, from, operands[weights], result);
        return;
    }
    quantise(one, operands, rows, from);
    left = widened(one, operands, rows);
    right = widened(one, operands, weights);
    multiply_all(product, left, right, result);
    free(left);
    free(right);
}

void reference_moe(const struct bench_case *one, double *const operands[OPERANDS_MAX])
{
    const struct bench_case up = {BENCH_MATMUL_GROUPED, BENCH_BF16, BENCH_LAYOUT_NT, one->batch, one->m, 2 * one->n,
                                  one->k, 0};
    const struct bench_case down = {BENCH_MATMUL_GROUPED, BENCH_BF16, BENCH_LAYOUT_NT, one->batch, one->m, one->k,
                                    one->n, 0};
    const struct bench_case gate = {.kernel = BENCH_SWIGLU_FORWARD, .dtype = BENCH_BF16, .m = one->m, .n = one->n};
    double *activation[OPERANDS_MAX] = {operands[MOE_WIDE], operands[MOE_INNER]};
    bool narrow = bench_is_narrow(one->dtype);
    int64_t each = bench_top_k(one->batch), k = one->k;

    for (int64_t copy = 0; copy < one->m; copy++)
        memcpy(operands[MOE_ROWS] + bench_expert_row(copy, one->batch, one->m) * k,
               operands[MOE_TOKENS] + copy / each * k, (size_t)k * sizeof(double));
    multiply_experts(one, operands, &up, operands[MOE_ROWS], MOE_NARROW_ROWS, MOE_UP, operands[MOE_WIDE]);
    reference_run(&gate, activation);
    multiply_experts(one, operands, &down, operands[MOE_INNER], MOE_NARROW_INNER,
                     narrow ? MOE_NARROW_DOWN : MOE_PLAIN_DOWN, operands[MOE_RESULTS]);
    memset(operands[MOE_OUT], 0, (size_t)(one->m / each * k) * sizeof(double));
    for (int64_t copy = 0; copy < one->m; copy++)
        for (int64_t j = 0; j < k; j++)
            operands[MOE_OUT][copy / each * k + j] +=
                operands[MOE_SHARES][copy] *
                operands[MOE_RESULTS][bench_expert_row(copy, one->batch, one->m) * k + j];
}
