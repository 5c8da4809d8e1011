#include "case.h"

#include <math.h>

#include "base/base.h"

const char *const bench_layout_names[BENCH_LAYOUTS] = {"", "nn", "nt", "tn"};

const char *const bench_kernel_names[BENCH_KERNELS] = {
#define KERNEL(id, name, text) [id] = name,
#include "kernels.h"
#undef KERNEL
};

const char *const bench_kernel_texts[BENCH_KERNELS] = {
#define KERNEL(id, name, text) [id] = text,
#include "kernels.h"
#undef KERNEL
};

double bench_case_flop(const struct bench_case *one)
{
    double scores = 2.0 * (double)one->batch * (double)one->m * (double)one->n * (double)one->k;

    switch (one->kernel) {
    case BENCH_MATMUL: case BENCH_MATMUL_SUSTAINED: case BENCH_MATMUL_QUANTIZED: return scores;
    case BENCH_MATMUL_GROUPED: return scores / (double)one->batch;       /* the experts share the rows */
    case BENCH_MOE: return 3 * scores / (double)one->batch;              /* gate, value and down */
    case BENCH_ATTENTION_FORWARD: return 2 * scores;
    case BENCH_ATTENTION_FORWARD_CAUSAL: return scores;
    case BENCH_ATTENTION_BACKWARD: return 5 * scores;
    case BENCH_ATTENTION_BACKWARD_CAUSAL: return 2.5 * scores;
    default: return 0;
    }
}

/* The operands of a kernel while they are listed. */
struct list {
    struct operand *items;
    int count;
};

static void add(struct list *list, enum operand_role role, enum bench_dtype dtype, enum operand_fill fill,
                double value, int64_t count)
{
    BUG_IF(list->count == OPERANDS_MAX);
    list->items[list->count++] = (struct operand){.role = role, .dtype = dtype, .fill = fill, .value = value,
                                                  .count = count};
}

static void in(struct list *list, enum bench_dtype dtype, int64_t count)
{
    add(list, ROLE_IN, dtype, FILL_NORMAL, 1, count);
}

static void in_value(struct list *list, enum bench_dtype dtype, double value, int64_t count)
{
    add(list, ROLE_IN, dtype, FILL_VALUE, value, count);
}

static void out(struct list *list, enum bench_dtype dtype, int64_t count)
{
    add(list, ROLE_OUT, dtype, FILL_NOTHING, 0, count);
}

static void scratch(struct list *list, int64_t count)
{
    add(list, ROLE_SCRATCH, BENCH_FP32, FILL_NOTHING, 0, count);
}

/* Scales, factor and codes. A call that writes codes and scales writes no padding, which stays 0. */
static void narrow(struct list *list, enum operand_role role, struct quantised matrices)
{
    const struct bench_format *format = &bench_formats[matrices.dtype];
    bool blocks = format->block > 0;

    add(list, role, blocks ? format->scale : BENCH_FP32, FILL_VALUE, blocks ? 0 : 1, quantised_scales(&matrices));
    add(list, role, BENCH_FP32, FILL_VALUE, 1, 4);       /* 16 bytes: the factor, the largest value */
    add(list, role, format->code, role == ROLE_IN ? FILL_QUANTISED : FILL_NOTHING, 0,
        matrices.count * matrices.rows * matrices.k);
    list->items[list->count - 1].quantised = matrices;
}

/* A product in a format with scales; it is written as bf16. */
static void narrow_matmul(const struct bench_case *one, int64_t experts, struct list *list)
{
    bool quantised = one->kernel == BENCH_MATMUL_QUANTIZED;

    narrow(list, quantised ? ROLE_OUT : ROLE_IN,
           (struct quantised){one->dtype, false, experts, one->m / experts, one->k});
    narrow(list, ROLE_IN, (struct quantised){one->dtype, true, experts, one->n, one->k});
    add(list, ROLE_SCRATCH, BENCH_FP32, FILL_VALUE, 1, 4);
    out(list, BENCH_BF16, one->m * one->n);
    if (quantised)
        in(list, BENCH_BF16, one->m * one->k);
}

static void matmul(const struct bench_case *one, struct list *list)
{
    in(list, one->dtype, one->batch * one->m * one->k);
    in(list, one->dtype, one->batch * one->k * one->n);
    out(list, one->dtype, one->batch * one->m * one->n);
}

/* As a product, but experts share the rows; in layout tn these are those of B too, and each expert has a C. */
static void grouped(const struct bench_case *one, struct list *list)
{
    bool shared = one->layout == BENCH_LAYOUT_TN;

    in(list, one->dtype, one->m * one->k);
    in(list, one->dtype, (shared ? 1 : one->batch) * one->k * one->n);
    out(list, one->dtype, (shared ? one->batch : 1) * one->m * one->n);
}

int64_t bench_top_k(int64_t experts)
{
    return experts < 16 ? 2 : experts < 64 ? experts / 8 : 8;
}

/* Tokens are so small that gates and values are normal with deviation 1, as they are in a trained network. */
static void moe(const struct bench_case *one, struct list *list)
{
    int64_t tokens = one->m / bench_top_k(one->batch), up = 2 * one->n;

    add(list, ROLE_IN, BENCH_BF16, FILL_NORMAL, 1 / sqrt((double)one->k), tokens * one->k);
    add(list, ROLE_IN, BENCH_FP32, FILL_SQUARE, 0, one->m);
    add(list, ROLE_SCRATCH, BENCH_BF16, FILL_NOTHING, 0, one->m * one->k);
    add(list, ROLE_SCRATCH, BENCH_BF16, FILL_NOTHING, 0, one->m * up);
    add(list, ROLE_SCRATCH, BENCH_BF16, FILL_NOTHING, 0, one->m * one->n);
    add(list, ROLE_SCRATCH, BENCH_BF16, FILL_NOTHING, 0, one->m * one->k);
    out(list, BENCH_BF16, tokens * one->k);
    if (!bench_is_narrow(one->dtype)) {
        in(list, one->dtype, one->batch * up * one->k);
        in(list, one->dtype, one->batch * one->k * one->n);
        return;
    }
    narrow(list, ROLE_IN, (struct quantised){one->dtype, true, one->batch, up, one->k});
    narrow(list, ROLE_IN, (struct quantised){one->dtype, true, one->batch, one->k, one->n});
    narrow(list, ROLE_SCRATCH, (struct quantised){one->dtype, false, one->batch, one->m / one->batch, one->k});
    narrow(list, ROLE_SCRATCH, (struct quantised){one->dtype, false, one->batch, one->m / one->batch, one->n});
    add(list, ROLE_SCRATCH, BENCH_FP32, FILL_VALUE, 1, 4);
    add(list, ROLE_SCRATCH, BENCH_FP32, FILL_VALUE, 1, 4);
}

static void products(const struct bench_case *one, struct list *list)
{
    bool experts = one->kernel == BENCH_MATMUL_GROUPED;

    if (one->kernel == BENCH_MOE)
        moe(one, list);
    else if (bench_is_narrow(one->dtype))
        narrow_matmul(one, experts ? one->batch : 1, list);
    else if (experts)
        grouped(one, list);
    else
        matmul(one, list);
}

/* Normal queries and keys have scores of deviation 1: the logarithm of a row's sum is near ln n + 1/2. */
static double usual_sum(int64_t n)
{
    return log((double)n) + 0.5;
}

/* Q, K, V, O, sums; backward also dO, two of scratch (rows of dO * O, fp32 dQ), dQ, dK, dV. */
static void attention(const struct bench_case *one, struct list *list)
{
    int64_t queries = one->batch * one->m * one->k, keys = one->batch * one->n * one->k, rows = one->batch * one->m;
    bool backward = one->kernel == BENCH_ATTENTION_BACKWARD || one->kernel == BENCH_ATTENTION_BACKWARD_CAUSAL;

    in(list, one->dtype, queries);
    in(list, one->dtype, keys);
    in(list, one->dtype, keys);
    if (!backward) {
        out(list, one->dtype, queries);
        out(list, BENCH_FP32, rows);
        return;
    }
    in(list, one->dtype, queries);
    in_value(list, BENCH_FP32, usual_sum(one->n), rows);
    in(list, one->dtype, queries);
    scratch(list, rows);
    scratch(list, queries);
    out(list, one->dtype, queries);
    out(list, one->dtype, keys);
    out(list, one->dtype, keys);
}

/* x, scale, (shift), y, (mean), 1/deviation; backward x, dy, scale, (mean), 1/deviation, dx, d scale, (d shift), and
 * scratch. Without shift and mean it is RMSNorm. */
static void norm(const struct bench_case *one, bool backward, bool shift, struct list *list)
{
    enum bench_dtype dtype = one->dtype;

    in(list, dtype, one->m * one->n);
    in(list, dtype, backward ? one->m * one->n : one->n);
    if (!backward) {
        if (shift)
            in(list, dtype, one->n);
        out(list, dtype, one->m * one->n);
        if (shift)
            out(list, BENCH_FP32, one->m);
        out(list, BENCH_FP32, one->m);
        return;
    }
    in(list, dtype, one->n);
    if (shift)
        in_value(list, BENCH_FP32, 0.01, one->m);
    in_value(list, BENCH_FP32, 1.02, one->m);
    out(list, dtype, one->m * one->n);
    out(list, dtype, one->n);
    if (shift)
        out(list, dtype, one->n);
    scratch(list, (shift ? 2 : 1) * NORM_CHUNKS * one->n);
}

/* x (rows of `wide` n), bias if any, dy, and tensors of the form of x or of y. */
static void activation(const struct bench_case *one, bool backward, int wide, struct list *list)
{
    int64_t values = one->m * one->n;

    in(list, one->dtype, wide * values);
    if (wide == 1)
        in(list, one->dtype, one->n);
    if (backward)
        in(list, one->dtype, values);
    out(list, one->dtype, backward ? wide * values : values);
}

/* x, bias, residual, y, mask; backward dy, mask, dx. */
static void dropout(const struct bench_case *one, bool backward, struct list *list)
{
    int64_t values = one->m * one->n;

    in(list, one->dtype, values);
    if (backward) {
        add(list, ROLE_IN, BENCH_BYTE, FILL_MASK, 1 - BENCH_DROPOUT, values);
        out(list, one->dtype, values);
        return;
    }
    in(list, one->dtype, one->n);
    in(list, one->dtype, values);
    out(list, one->dtype, values);
    out(list, BENCH_BYTE, values);
}

/* Table, rows, y; backward dy, rows, table of gradients. */
static void embedding(const struct bench_case *one, bool backward, struct list *list)
{
    int64_t table = one->k * one->n, values = one->m * one->n;

    in(list, one->dtype, backward ? values : table);
    add(list, ROLE_IN, BENCH_INT32, FILL_INDEX, (double)one->k, one->m);
    if (backward)
        add(list, ROLE_OUT, BENCH_FP32, FILL_VALUE, 0, table);
    else
        out(list, one->dtype, values);
}

/* x, right column, loss, log of the sum; backward x, right column, that log, d loss, dx. */
static void cross_entropy(const struct bench_case *one, bool backward, struct list *list)
{
    in(list, one->dtype, one->m * one->n);
    add(list, ROLE_IN, BENCH_INT32, FILL_INDEX, (double)one->n, one->m);
    if (!backward) {
        out(list, BENCH_FP32, one->m);
        out(list, BENCH_FP32, one->m);
        return;
    }
    in_value(list, BENCH_FP32, usual_sum(one->n), one->m);
    in(list, BENCH_FP32, one->m);
    out(list, one->dtype, one->m * one->n);
}

/* Gradient, fp32 parameter, first and second moment (these three are written too), copy of the parameter. */
static void adam(const struct bench_case *one, struct list *list)
{
    in(list, one->dtype, one->m);
    add(list, ROLE_OUT, BENCH_FP32, FILL_NORMAL, 1, one->m);
    add(list, ROLE_OUT, BENCH_FP32, FILL_NORMAL, 1, one->m);
    add(list, ROLE_OUT, BENCH_FP32, FILL_SQUARE, 0, one->m);
    out(list, one->dtype, one->m);
}

/* Softmax has no bias: x, y; backward y, dy, dx. */
static void softmax(const struct bench_case *one, bool backward, struct list *list)
{
    in(list, one->dtype, one->m * one->n);
    if (backward)
        in(list, one->dtype, one->m * one->n);
    out(list, one->dtype, one->m * one->n);
}

int bench_operands(const struct bench_case *one, struct operand operands[OPERANDS_MAX])
{
    struct list list = {operands, 0};

    switch (one->kernel) {
    case BENCH_MATMUL: case BENCH_MATMUL_SUSTAINED: case BENCH_MATMUL_QUANTIZED:
    case BENCH_MATMUL_GROUPED: case BENCH_MOE: products(one, &list); break;
    case BENCH_ATTENTION_FORWARD: case BENCH_ATTENTION_FORWARD_CAUSAL:
    case BENCH_ATTENTION_BACKWARD: case BENCH_ATTENTION_BACKWARD_CAUSAL: attention(one, &list); break;
    case BENCH_SOFTMAX_FORWARD: softmax(one, false, &list); break;
    case BENCH_SOFTMAX_BACKWARD: softmax(one, true, &list); break;
    case BENCH_LAYERNORM_FORWARD: norm(one, false, true, &list); break;
    case BENCH_LAYERNORM_BACKWARD: norm(one, true, true, &list); break;
    case BENCH_RMSNORM_FORWARD: norm(one, false, false, &list); break;
    case BENCH_RMSNORM_BACKWARD: norm(one, true, false, &list); break;
    case BENCH_GELU_FORWARD: activation(one, false, 1, &list); break;
    case BENCH_GELU_BACKWARD: activation(one, true, 1, &list); break;
    case BENCH_SWIGLU_FORWARD: activation(one, false, 2, &list); break;
    case BENCH_SWIGLU_BACKWARD: activation(one, true, 2, &list); break;
    case BENCH_DROPOUT_FORWARD: dropout(one, false, &list); break;
    case BENCH_DROPOUT_BACKWARD: dropout(one, true, &list); break;
    case BENCH_EMBEDDING_FORWARD: embedding(one, false, &list); break;
    case BENCH_EMBEDDING_BACKWARD: embedding(one, true, &list); break;
    case BENCH_CROSS_ENTROPY_FORWARD: cross_entropy(one, false, &list); break;
    case BENCH_CROSS_ENTROPY_BACKWARD: cross_entropy(one, true, &list); break;
    case BENCH_ADAM: adam(one, &list); break;
    case BENCH_REDUCTION:
        in(&list, one->dtype, one->m);
        add(&list, ROLE_OUT, BENCH_FP32, FILL_VALUE, 0, 1);
        break;
    case BENCH_LAUNCH: case BENCH_KERNELS: break;
    case BENCH_COPY_DEVICE:
        in(&list, one->dtype, one->m);
        out(&list, one->dtype, one->m);
        break;
    default:                             /* copies and collectives over links: bytes sent, bytes received */
        in(&list, BENCH_BYTE, one->bytes);
        out(&list, BENCH_BYTE, one->bytes);
    }
    return list.count;
}

double bench_case_memory(const struct bench_case *one)
{
    struct operand operands[OPERANDS_MAX];
    double bytes = 0;

    for (int i = bench_operands(one, operands) - 1; i >= 0; i--)
        bytes += (double)bench_dtype_bytes(operands[i].dtype, operands[i].count);
    return bytes;
}
