#include "reference.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "reference_product.h"

/* One row of scores, scale q k, of the keys that the query sees. Returns their number. */
static int64_t score_row(const struct bench_case *one, const double *query, const double *keys, int64_t row,
                         bool causal, double *scores)
{
    int64_t seen = causal ? row + 1 : one->n;

    for (int64_t j = 0; j < seen; j++) {
        scores[j] = 0;
        for (int64_t d = 0; d < one->k; d++)
            scores[j] += query[d] * keys[j * one->k + d] / sqrt((double)one->k);
    }
    return seen;
}

static void attention_forward(const struct bench_case *one, bool causal, double *const *operands)
{
    double *scores = xcalloc((size_t)one->n, sizeof *scores);

    for (int64_t row = 0; row < one->batch * one->m; row++) {
        int64_t head = row / one->m;
        const double *values = operands[2] + head * one->n * one->k;
        int64_t seen = score_row(one, operands[0] + row * one->k, operands[1] + head * one->n * one->k, row % one->m,
                                 causal, scores);
        double *result = operands[3] + row * one->k, sum = 0;

        memset(result, 0, (size_t)one->k * sizeof *result);
        for (int64_t j = 0; j < seen; j++)
            sum += exp(scores[j]);
        for (int64_t j = 0; j < seen; j++)
            for (int64_t d = 0; d < one->k; d++)
                result[d] += exp(scores[j]) / sum * values[j * one->k + d];
        operands[4][row] = log(sum);
    }
    free(scores);
}

static void attention_backward(const struct bench_case *one, bool causal, double *const *operands)
{
    double *scores = xcalloc((size_t)one->n, sizeof *scores), scale = 1 / sqrt((double)one->k);
    size_t keys_size = (size_t)(one->batch * one->n * one->k) * sizeof(double);

    memset(operands[8], 0, (size_t)(one->batch * one->m * one->k) * sizeof(double));
    memset(operands[9], 0, keys_size);
    memset(operands[10], 0, keys_size);
    for (int64_t row = 0; row < one->batch * one->m; row++) {
        int64_t keys = row / one->m * one->n * one->k;
        const double *query = operands[0] + row * one->k, *slope = operands[5] + row * one->k;
        int64_t seen = score_row(one, query, operands[1] + keys, row % one->m, causal, scores);
        double own = 0;

        for (int64_t d = 0; d < one->k; d++)
            own += slope[d] * operands[3][row * one->k + d];
        for (int64_t j = 0; j < seen; j++) {
            double share = exp(scores[j] - operands[4][row]), change = 0;
            int64_t key = keys + j * one->k;

            for (int64_t d = 0; d < one->k; d++)
                change += slope[d] * operands[2][key + d];
            change = share * (change - own) * scale;
            for (int64_t d = 0; d < one->k; d++) {
                operands[8][row * one->k + d] += change * operands[1][key + d];
                operands[9][key + d] += change * query[d];
                operands[10][key + d] += share * slope[d];
            }
        }
    }
    free(scores);
}

static void softmax_forward(const struct bench_case *one, double *const *operands)
{
    for (int64_t i = 0; i < one->m; i++) {
        const double *x = operands[0] + i * one->n;
        double sum = 0;

        for (int64_t j = 0; j < one->n; j++)
            sum += exp(x[j]);
        for (int64_t j = 0; j < one->n; j++)
            operands[1][i * one->n + j] = exp(x[j]) / sum;
    }
}

static void softmax_backward(const struct bench_case *one, double *const *operands)
{
    for (int64_t i = 0; i < one->m; i++) {
        const double *y = operands[0] + i * one->n, *dy = operands[1] + i * one->n;
        double sum = 0;

        for (int64_t j = 0; j < one->n; j++)
            sum += y[j] * dy[j];
        for (int64_t j = 0; j < one->n; j++)
            operands[2][i * one->n + j] = y[j] * (dy[j] - sum);
    }
}

/* LayerNorm (Ba, Kiros, Hinton 2016); without shift RMSNorm (Zhang, Sennrich 2019): no mean is subtracted. */
static void norm_forward(const struct bench_case *one, bool shift, double *const *operands)
{
    double *y = operands[shift ? 3 : 2], *inverse = operands[shift ? 5 : 3];

    for (int64_t i = 0; i < one->m; i++) {
        const double *x = operands[0] + i * one->n;
        double mean = 0, squares = 0;

        for (int64_t j = 0; shift && j < one->n; j++)
            mean += x[j] / (double)one->n;
        for (int64_t j = 0; j < one->n; j++)
            squares += (x[j] - mean) * (x[j] - mean) / (double)one->n;
        inverse[i] = 1 / sqrt(squares + BENCH_EPSILON);
        if (shift)
            operands[4][i] = mean;
        for (int64_t j = 0; j < one->n; j++)
            y[i * one->n + j] = (x[j] - mean) * inverse[i] * operands[1][j] + (shift ? operands[2][j] : 0);
    }
}

static void norm_backward(const struct bench_case *one, bool shift, double *const *operands)
{
    const double *inverse = operands[shift ? 4 : 3];
    double *dx = operands[shift ? 5 : 4], *dscale = operands[shift ? 6 : 5];

    memset(dscale, 0, (size_t)one->n * sizeof *dscale);
    if (shift)
        memset(operands[7], 0, (size_t)one->n * sizeof(double));
    for (int64_t i = 0; i < one->m; i++) {
        const double *x = operands[0] + i * one->n, *dy = operands[1] + i * one->n;
        double mean = shift ? operands[3][i] : 0, plain = 0, along = 0;

        for (int64_t j = 0; j < one->n; j++) {
            double unit = (x[j] - mean) * inverse[i], slope = dy[j] * operands[2][j];

            plain += slope / (double)one->n;
            along += slope * unit / (double)one->n;
            dscale[j] += dy[j] * unit;
            if (shift)
                operands[7][j] += dy[j];
        }
        for (int64_t j = 0; j < one->n; j++)
            dx[i * one->n + j] = inverse[i] * (dy[j] * operands[2][j] - (shift ? plain : 0) -
                                               (x[j] - mean) * inverse[i] * along);
    }
}

/* The tanh form (Hendrycks, Gimpel 2016, section 2) and its slope. */
static double gelu(double x, double *slope)
{
    const double c = sqrt(2 / 3.14159265358979323846), cubic = 0.044715;
    double t = tanh(c * (x + cubic * x * x * x));

    *slope = 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * c * (1 + 3 * cubic * x * x);
    return 0.5 * x * (1 + t);
}

static void gelu_run(const struct bench_case *one, bool backward, double *const *operands)
{
    for (int64_t i = 0; i < one->m * one->n; i++) {
        double slope, value = gelu(operands[0][i] + operands[1][i % one->n], &slope);

        if (backward)
            operands[3][i] = operands[2][i] * slope;
        else
            operands[2][i] = value;
    }
}

/* silu(gate) x value (Shazeer 2020), the gate first in each row of 2 n. */
static void swiglu_run(const struct bench_case *one, bool backward, double *const *operands)
{
    for (int64_t i = 0; i < one->m; i++)
        for (int64_t j = 0; j < one->n; j++) {
            int64_t at = 2 * i * one->n + j, y = i * one->n + j;
            double gate = operands[0][at], value = operands[0][at + one->n], s = 1 / (1 + exp(-gate));

            if (backward) {
                operands[2][at] = operands[1][y] * value * s * (1 + gate * (1 - s));
                operands[2][at + one->n] = operands[1][y] * gate * s;
            } else {
                operands[1][y] = gate * s * value;
            }
        }
}

static void dropout_run(const struct bench_case *one, bool backward, double *const *operands)
{
    for (int64_t i = 0; i < one->m * one->n; i++)
        if (backward)
            operands[2][i] = operands[0][i] * operands[1][i] / (1 - BENCH_DROPOUT);
        else
            operands[3][i] = operands[2][i] + (operands[0][i] + operands[1][i % one->n]) * operands[4][i] /
                                              (1 - BENCH_DROPOUT);
}

static void embedding_run(const struct bench_case *one, bool backward, double *const *operands)
{
    for (int64_t i = 0; i < one->m; i++)
        for (int64_t j = 0; j < one->n; j++)
            if (backward)
                operands[2][(int64_t)operands[1][i] * one->n + j] += operands[0][i * one->n + j];
            else
                operands[2][i * one->n + j] = operands[0][(int64_t)operands[1][i] * one->n + j];
}

static void cross_entropy_run(const struct bench_case *one, bool backward, double *const *operands)
{
    for (int64_t i = 0; i < one->m; i++) {
        const double *x = operands[0] + i * one->n;
        int64_t right = (int64_t)operands[1][i];
        double sum = 0;

        for (int64_t j = 0; j < one->n; j++)
            if (backward)
                operands[4][i * one->n + j] = (exp(x[j] - operands[2][i]) - (j == right)) * operands[3][i];
            else
                sum += exp(x[j]);
        if (!backward) {
            operands[3][i] = log(sum);
            operands[2][i] = log(sum) - x[right];
        }
    }
}

static void adam_run(const struct bench_case *one, double *const *operands)
{
    double first = 1 - pow(ADAM_BETA1, ADAM_STEP), second = 1 - pow(ADAM_BETA2, ADAM_STEP);

    for (int64_t i = 0; i < one->m; i++) {
        double g = operands[0][i], *p = &operands[1][i], *m = &operands[2][i], *v = &operands[3][i];

        *m = ADAM_BETA1 * *m + (1 - ADAM_BETA1) * g;
        *v = ADAM_BETA2 * *v + (1 - ADAM_BETA2) * g * g;
        *p -= ADAM_RATE * (*m / first / (sqrt(*v / second) + ADAM_EPSILON) + ADAM_DECAY * *p);
        operands[4][i] = *p;
    }
}

static void reduction_run(const struct bench_case *one, double *const *operands)
{
    for (int64_t i = 0; i < one->m; i++)
        operands[1][0] += operands[0][i];
}

void reference_run(const struct bench_case *one, double *const operands[OPERANDS_MAX])
{
    switch (one->kernel) {
    case BENCH_MATMUL: case BENCH_MATMUL_QUANTIZED:
    case BENCH_MATMUL_GROUPED: reference_product(one, operands); break;
    case BENCH_MOE: reference_moe(one, operands); break;
    case BENCH_ATTENTION_FORWARD: attention_forward(one, false, operands); break;
    case BENCH_ATTENTION_FORWARD_CAUSAL: attention_forward(one, true, operands); break;
    case BENCH_ATTENTION_BACKWARD: attention_backward(one, false, operands); break;
    case BENCH_ATTENTION_BACKWARD_CAUSAL: attention_backward(one, true, operands); break;
    case BENCH_SOFTMAX_FORWARD: softmax_forward(one, operands); break;
    case BENCH_SOFTMAX_BACKWARD: softmax_backward(one, operands); break;
    case BENCH_LAYERNORM_FORWARD: norm_forward(one, true, operands); break;
    case BENCH_LAYERNORM_BACKWARD: norm_backward(one, true, operands); break;
    case BENCH_RMSNORM_FORWARD: norm_forward(one, false, operands); break;
    case BENCH_RMSNORM_BACKWARD: norm_backward(one, false, operands); break;
    case BENCH_GELU_FORWARD: gelu_run(one, false, operands); break;
    case BENCH_GELU_BACKWARD: gelu_run(one, true, operands); break;
    case BENCH_SWIGLU_FORWARD: swiglu_run(one, false, operands); break;
    case BENCH_SWIGLU_BACKWARD: swiglu_run(one, true, operands); break;
    case BENCH_DROPOUT_FORWARD: dropout_run(one, false, operands); break;
    case BENCH_DROPOUT_BACKWARD: dropout_run(one, true, operands); break;
    case BENCH_EMBEDDING_FORWARD: embedding_run(one, false, operands); break;
    case BENCH_EMBEDDING_BACKWARD: embedding_run(one, true, operands); break;
    case BENCH_CROSS_ENTROPY_FORWARD: cross_entropy_run(one, false, operands); break;
    case BENCH_CROSS_ENTROPY_BACKWARD: cross_entropy_run(one, true, operands); break;
    case BENCH_ADAM: adam_run(one, operands); break;
    case BENCH_REDUCTION: reduction_run(one, operands); break;
    default: BUG("no reference for %s", bench_kernel_names[one->kernel]);
    }
}
