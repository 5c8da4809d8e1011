/* The graph of FlashAttention (Dao et al. 2022, algorithms 1 and 4) in cuDNN's operations, which cuDNN recognises and
 * runs as one kernel. S = scale Q K^T, P = softmax(S), O = P V; backward, with D = rowsum(dO * O):
 * dV = P^T dO, dP = dO V^T, dS = scale P * (dP - D), dK = dS^T Q, dQ = dS K. */
#include "flash_graph.h"

static bool is_backward(enum bench_kernel kernel)
{
    return kernel == BENCH_ATTENTION_BACKWARD || kernel == BENCH_ATTENTION_BACKWARD_CAUSAL;
}

static bool is_causal(enum bench_kernel kernel)
{
    return kernel == BENCH_ATTENTION_FORWARD_CAUSAL || kernel == BENCH_ATTENTION_BACKWARD_CAUSAL;
}

bool flash_uses(enum bench_kernel kernel, enum flash_tensor tensor)
{
    if (tensor == FLASH_MASKED)
        return is_causal(kernel);
    return tensor < FLASH_ONE || is_backward(kernel);
}

static bool is_scalar(enum flash_tensor tensor)
{
    return tensor == FLASH_SCALE || tensor == FLASH_MASKED || tensor == FLASH_ONE;
}

/* Extents of a tensor and whether it holds fp32. */
static bool tensor_shape(const struct bench_case *one, enum flash_tensor tensor, int64_t dims[4])
{
    bool keys = tensor == FLASH_K || tensor == FLASH_V || tensor == FLASH_DK || tensor == FLASH_DV;
    bool column = tensor == FLASH_STATS || tensor == FLASH_DELTA;

    dims[0] = 1;
    dims[1] = is_scalar(tensor) ? 1 : one->batch;
    dims[2] = is_scalar(tensor) ? 1 : keys ? one->n : one->m;
    dims[3] = is_scalar(tensor) || column ? 1 : one->k;
    return is_scalar(tensor) || column || tensor == FLASH_DQ_SUM;
}

size_t flash_bytes(const struct bench_case *one, enum flash_tensor tensor)
{
    int64_t dims[4];
    bool wide = tensor_shape(one, tensor, dims);

    return is_scalar(tensor) ? 0 : (size_t)(dims[1] * dims[2] * dims[3]) * (wide ? 4 : 2);
}

/* A tensor of four dimensions with these strides; its unique id is its place in plan->tensors plus one. */
static int add_tensor(struct flash_plan *plan, cudnnDataType_t type, const int64_t dims[4], const int64_t strides[4],
                      bool virtual, bool by_value)
{
    cudnnBackendDescriptor_t tensor = flash_create(plan, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    int64_t uid = plan->ntensors + 1, alignment = 16;

    BUG_IF(plan->ntensors == FLASH_TENSORS);
    flash_set(plan, tensor, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &uid);
    flash_set(plan, tensor, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
    flash_set(plan, tensor, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment);
    flash_set(plan, tensor, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, dims);
    flash_set(plan, tensor, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, strides);
    flash_set(plan, tensor, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &virtual);
    flash_set(plan, tensor, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, &by_value);
    flash_finalize(plan, tensor, "a tensor");
    plan->tensors[plan->ntensors] = tensor;
    return plan->ntensors++;
}

static void pack_strides(const int64_t dims[4], int64_t strides[4])
{
    strides[3] = 1;
    for (int i = 2; i >= 0; i--)
        strides[i] = strides[i + 1] * dims[i + 1];
}

/* Packed, and only inside the kernel. */
static int add_virtual(struct flash_plan *plan, cudnnDataType_t type, int64_t heads, int64_t rows, int64_t columns)
{
    int64_t dims[4] = {1, heads, rows, columns}, strides[4];

    pack_strides(dims, strides);
    return add_tensor(plan, type, dims, strides, true, false);
}

static cudnnBackendDescriptor_t add_op(struct flash_plan *plan, cudnnBackendDescriptorType_t type)
{
    BUG_IF(plan->nops == FLASH_OPS);
    return plan->ops[plan->nops++] = flash_create(plan, type);
}

/* The descriptor of an operation's mode and precision. */
static cudnnBackendDescriptor_t add_mode(struct flash_plan *plan, cudnnBackendDescriptorType_t type)
{
    BUG_IF(plan->nmade == 2 * FLASH_OPS);
    return plan->made[plan->nmade++] = flash_create(plan, type);
}

enum { NO_TENSOR = -1 };

/* y = mode(x, b), or mode(x) if b is NO_TENSOR; t chooses between the two; GEN_INDEX counts along `axis`. */
static int pointwise_of(struct flash_plan *plan, cudnnPointwiseMode_t mode, cudnnDataType_t precision, int64_t axis,
                        int x, int b, int t, int y)
{
    cudnnBackendDescriptor_t how = add_mode(plan, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    cudnnBackendDescriptor_t op = add_op(plan, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);

    flash_set(plan, how, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
    flash_set(plan, how, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &precision);
    if (mode == CUDNN_POINTWISE_GEN_INDEX)
        flash_set(plan, how, CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, 1, &axis);
    flash_finalize(plan, how, "a pointwise mode");
    flash_link(plan, op, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, how);
    flash_link(plan, op, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, plan->tensors[x]);
    if (b != NO_TENSOR)
        flash_link(plan, op, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, plan->tensors[b]);
    if (t != NO_TENSOR)
        flash_link(plan, op, CUDNN_ATTR_OPERATION_POINTWISE_TDESC, plan->tensors[t]);
    flash_link(plan, op, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, plan->tensors[y]);
    flash_finalize(plan, op, "a pointwise operation");
    return y;
}

static int pointwise(struct flash_plan *plan, cudnnPointwiseMode_t mode, int x, int b, int y)
{
    return pointwise_of(plan, mode, CUDNN_DATA_FLOAT, 0, x, b, NO_TENSOR, y);
}

static int matmul(struct flash_plan *plan, int a, int b, int c)
{
    cudnnBackendDescriptor_t how = add_mode(plan, CUDNN_BACKEND_MATMUL_DESCRIPTOR);
    cudnnBackendDescriptor_t op = add_op(plan, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
    cudnnDataType_t precision = CUDNN_DATA_FLOAT;

    flash_set(plan, how, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &precision);
    flash_finalize(plan, how, "a product's mode");
    flash_link(plan, op, CUDNN_ATTR_OPERATION_MATMUL_ADESC, plan->tensors[a]);
    flash_link(plan, op, CUDNN_ATTR_OPERATION_MATMUL_BDESC, plan->tensors[b]);
    flash_link(plan, op, CUDNN_ATTR_OPERATION_MATMUL_CDESC, plan->tensors[c]);
    flash_link(plan, op, CUDNN_ATTR_OPERATION_MATMUL_DESC, how);
    flash_finalize(plan, op, "a product");
    return c;
}

static int reduction(struct flash_plan *plan, cudnnReduceTensorOp_t operator, int x, int y)
{
    cudnnBackendDescriptor_t how = add_mode(plan, CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
    cudnnBackendDescriptor_t op = add_op(plan, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
    cudnnDataType_t precision = CUDNN_DATA_FLOAT;

    flash_set(plan, how, CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &operator);
    flash_set(plan, how, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &precision);
    flash_finalize(plan, how, "a reduction's mode");
    flash_link(plan, op, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, plan->tensors[x]);
    flash_link(plan, op, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, plan->tensors[y]);
    flash_link(plan, op, CUDNN_ATTR_OPERATION_REDUCTION_DESC, how);
    flash_finalize(plan, op, "a reduction");
    return y;
}

static int reshape(struct flash_plan *plan, int x, int y)
{
    cudnnBackendDescriptor_t op = add_op(plan, CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);

    flash_link(plan, op, CUDNN_ATTR_OPERATION_RESHAPE_XDESC, plan->tensors[x]);
    flash_link(plan, op, CUDNN_ATTR_OPERATION_RESHAPE_YDESC, plan->tensors[y]);
    flash_finalize(plan, op, "a reshape");
    return y;
}

/* The state of a graph in the making. The real tensors come first, so that their place is their enum flash_tensor. */
struct attention {
    struct flash_plan *plan;
    const struct bench_case *one;
    cudnnDataType_t type;
};

static int scores_like(const struct attention *at, cudnnDataType_t type)
{
    return add_virtual(at->plan, type, at->one->batch, at->one->m, at->one->n);
}

static int column_like(const struct attention *at)
{
    return add_virtual(at->plan, CUDNN_DATA_FLOAT, at->one->batch, at->one->m, 1);
}

/* A view of a packed tensor with its last two dimensions exchanged. */
static int transposed(const struct attention *at, int64_t rows, int64_t columns, bool virtual)
{
    int64_t dims[4] = {1, at->one->batch, columns, rows}, strides[4] = {at->one->batch * rows * columns, rows * columns,
                                                                         1, columns};
    return add_tensor(at->plan, at->type, dims, strides, virtual, false);
}

static void add_real(const struct attention *at, enum flash_tensor tensor)
{
    bool transpose = tensor == FLASH_K || (tensor == FLASH_V && is_backward(at->one->kernel));
    int64_t dims[4], strides[4];
    bool wide = tensor_shape(at->one, tensor, dims);

    if (transpose) {
        transposed(at, at->one->n, at->one->k, false);
        return;
    }
    pack_strides(dims, strides);
    add_tensor(at->plan, wide ? CUDNN_DATA_FLOAT : at->type, dims, strides, false, is_scalar(tensor));
}

/* scale Q K^T; if causal, with later keys at minus infinity. */
static int scaled_scores(const struct attention *at)
{
    int raw = matmul(at->plan, FLASH_Q, FLASH_K, scores_like(at, CUDNN_DATA_FLOAT));

    return pointwise(at->plan, CUDNN_POINTWISE_MUL, raw, FLASH_SCALE, scores_like(at, CUDNN_DATA_FLOAT));
}

static int masked(const struct attention *at, int scores)
{
    int row, column, seen;

    if (!is_causal(at->one->kernel))
        return scores;
    row = pointwise_of(at->plan, CUDNN_POINTWISE_GEN_INDEX, CUDNN_DATA_INT32, 2, scores, NO_TENSOR, NO_TENSOR,
                       scores_like(at, CUDNN_DATA_INT32));
    column = pointwise_of(at->plan, CUDNN_POINTWISE_GEN_INDEX, CUDNN_DATA_INT32, 3, scores, NO_TENSOR, NO_TENSOR,
                          scores_like(at, CUDNN_DATA_INT32));
    seen = pointwise_of(at->plan, CUDNN_POINTWISE_CMP_GE, CUDNN_DATA_BOOLEAN, 0, row, column, NO_TENSOR,
                        scores_like(at, CUDNN_DATA_BOOLEAN));
    return pointwise_of(at->plan, CUDNN_POINTWISE_BINARY_SELECT, CUDNN_DATA_FLOAT, 0, scores, FLASH_MASKED, seen,
                        scores_like(at, CUDNN_DATA_FLOAT));
}

static void forward(const struct attention *at)
{
    struct flash_plan *plan = at->plan;
    int scores = masked(at, scaled_scores(at));
    int most = reduction(plan, CUDNN_REDUCE_TENSOR_MAX, scores, column_like(at));
    int below = pointwise(plan, CUDNN_POINTWISE_SUB, scores, most, scores_like(at, CUDNN_DATA_FLOAT));
    int power = pointwise(plan, CUDNN_POINTWISE_EXP, below, NO_TENSOR, scores_like(at, CUDNN_DATA_FLOAT));
    int sum = reduction(plan, CUDNN_REDUCE_TENSOR_ADD, power, column_like(at));
    int log = pointwise(plan, CUDNN_POINTWISE_LOG, sum, NO_TENSOR, column_like(at));
    int share;

    pointwise(plan, CUDNN_POINTWISE_ADD, most, log, FLASH_STATS);
    share = pointwise(plan, CUDNN_POINTWISE_DIV, power, sum, scores_like(at, at->type));
    matmul(plan, share, FLASH_V, FLASH_O);
}

static void backward(const struct attention *at)
{
    struct flash_plan *plan = at->plan;
    const struct bench_case *one = at->one;
    int product, delta, scores, share, slope;

    product = pointwise(plan, CUDNN_POINTWISE_MUL, FLASH_DO, FLASH_O,
                        add_virtual(plan, CUDNN_DATA_FLOAT, one->batch, one->m, one->k));
    delta = reduction(plan, CUDNN_REDUCE_TENSOR_ADD, product, column_like(at));
    pointwise(plan, CUDNN_POINTWISE_MUL, delta, FLASH_ONE, FLASH_DELTA);

    scores = pointwise(plan, CUDNN_POINTWISE_SUB, scaled_scores(at), FLASH_STATS, scores_like(at, CUDNN_DATA_FLOAT));
    share = pointwise(plan, CUDNN_POINTWISE_EXP, masked(at, scores), NO_TENSOR, scores_like(at, CUDNN_DATA_FLOAT));
    matmul(plan, reshape(plan, share, transposed(at, one->m, one->n, true)), FLASH_DO, FLASH_DV);

    slope = matmul(plan, FLASH_DO, FLASH_V, scores_like(at, CUDNN_DATA_FLOAT));
    slope = pointwise(plan, CUDNN_POINTWISE_SUB, slope, FLASH_DELTA, scores_like(at, CUDNN_DATA_FLOAT));
    slope = pointwise(plan, CUDNN_POINTWISE_MUL, slope, share, scores_like(at, CUDNN_DATA_FLOAT));
    slope = pointwise(plan, CUDNN_POINTWISE_MUL, slope, FLASH_SCALE, scores_like(at, at->type));
    matmul(plan, reshape(plan, slope, transposed(at, one->m, one->n, true)), FLASH_Q, FLASH_DK);
    matmul(plan, slope, reshape(plan, FLASH_K, add_virtual(plan, at->type, one->batch, one->n, one->k)), FLASH_DQ_SUM);
    pointwise(plan, CUDNN_POINTWISE_IDENTITY, FLASH_DQ_SUM, NO_TENSOR, FLASH_DQ);
}

void flash_graph_init(struct flash_plan *plan, const struct bench_case *one)
{
    struct attention at = {plan, one, one->dtype == BENCH_FP16 ? CUDNN_DATA_HALF : CUDNN_DATA_BFLOAT16};

    for (int tensor = 0; tensor < FLASH_REAL; tensor++)
        add_real(&at, (enum flash_tensor)tensor);
    if (is_backward(one->kernel))
        backward(&at);
    else
        forward(&at);
}
