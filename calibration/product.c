/* cuBLAS stores matrices by columns. A row-major matrix, read by columns, is its transpose. So the row-major C = A B is
 * computed as C^T = B^T A^T: B goes first, and an operand that is not transposed in memory needs no transposition. */
#include "product.h"

#include <stdlib.h>

#include "base/base.h"
#include "device_kernels.h"

/* What the library was built to: scales of blocks of 16 and 32 values, and of 128. */
#if CUBLAS_VERSION >= 120800 && CUDART_VERSION >= 12080
#define HAS_BLOCKS 1
#else
#define HAS_BLOCKS 0
#endif
#if HAS_BLOCKS && CUBLAS_VERSION >= 120900
#define HAS_SQUARES 1
#else
#define HAS_SQUARES 0
#endif

/* Of the device, for all products. */
struct blas {
    cublasLtHandle_t handle;
    float *zero;                 /* on the device: a beta */
    bool ready;
};

#if !HAS_BLOCKS
#define LEFT_OUT " (fp8-block, mxfp8 and nvfp4 are left out)"
#elif !HAS_SQUARES
#define LEFT_OUT " (fp8-block is left out)"
#else
#define LEFT_OUT ""
#endif

const char *product_built(void)
{
    return "cuBLASLt " TEXT(CUBLAS_VER_MAJOR) "." TEXT(CUBLAS_VER_MINOR) "." TEXT(CUBLAS_VER_PATCH) LEFT_OUT;
}

bool product_knows(enum bench_dtype dtype)
{
    return dtype == BENCH_FP8 || (HAS_BLOCKS && dtype != BENCH_FP8_BLOCK) || (HAS_SQUARES && dtype == BENCH_FP8_BLOCK);
}

static int check(struct job *job, cublasStatus_t status, const char *what)
{
    if (status == CUBLAS_STATUS_SUCCESS)
        return 0;
    snprintf(job->why, sizeof job->why, "cuBLASLt: %s: %s", what, cublasLtGetStatusString(status));
    return -1;
}

static int get_state(struct job *job)
{
    struct blas *blas = job->device->blas;

    if (blas && blas->ready)
        return 0;
    product_free(blas);
    job->device->blas = blas = xcalloc(1, sizeof *blas);
    blas->ready = !check(job, cublasLtCreate(&blas->handle), "the library") &&
                  !job_check(job, cudaMalloc((void **)&blas->zero, sizeof *blas->zero), "memory of a zero") &&
                  !job_check(job, cudaMemset(blas->zero, 0, sizeof *blas->zero), "a zero");
    return blas->ready ? 0 : -1;
}

void product_free(struct blas *blas)
{
    if (!blas)
        return;
    cudaFree(blas->zero);
    if (blas->handle)
        cublasLtDestroy(blas->handle);
    free(blas);
}

cudaDataType_t product_type(enum bench_dtype dtype)
{
    static const cudaDataType_t types[BENCH_DTYPES] = {
        [BENCH_FP32] = CUDA_R_32F,    [BENCH_TF32] = CUDA_R_32F,          [BENCH_FP16] = CUDA_R_16F,
        [BENCH_BF16] = CUDA_R_16BF,   [BENCH_FP8] = CUDA_R_8F_E4M3,       [BENCH_FP8_BLOCK] = CUDA_R_8F_E4M3,
        [BENCH_MXFP8] = CUDA_R_8F_E4M3,
#if HAS_BLOCKS
        [BENCH_NVFP4] = CUDA_R_4F_E2M1,
#endif
    };
    return types[dtype];
}

/* `batch` matrices one after another, each stored by columns without gaps. */
static int layout(struct job *job, const struct product *product, cublasLtMatrixLayout_t *made, cudaDataType_t type,
                  int64_t rows, int64_t columns)
{
    int32_t batch = (int32_t)product->shape.batch;
    int64_t stride = rows * columns;

    return check(job, cublasLtMatrixLayoutCreate(made, type, (uint64_t)rows, (uint64_t)columns, rows), "a layout") ||
           check(job, cublasLtMatrixLayoutSetAttribute(*made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch, sizeof batch),
                 "a batch") ||
           check(job, cublasLtMatrixLayoutSetAttribute(*made, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride,
                                                       sizeof stride), "a batch") ? -1 : 0;
}

static int set_attribute(struct job *job, const struct product *product, cublasLtMatmulDescAttributes_t attribute,
                         const void *value, size_t size)
{
    return check(job, cublasLtMatmulDescSetAttribute(product->how, attribute, value, size), "an attribute");
}

#if HAS_BLOCKS
static int32_t scale_mode(enum bench_dtype dtype, bool weights)
{
    const struct bench_format *format = &bench_formats[dtype];

    switch (weights ? format->weights : format->activations) {
    case SCALES_TILES:
        return dtype == BENCH_NVFP4 ? CUBLASLT_MATMUL_MATRIX_SCALE_VEC16_UE4M3
                                    : CUBLASLT_MATMUL_MATRIX_SCALE_VEC32_UE8M0;
#if HAS_SQUARES
    case SCALES_BY_BLOCK: return CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F;
    case SCALES_SQUARES: return CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F;
#endif
    default: return CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F;
    }
}

static int set_modes(struct job *job, const struct product *product)
{
    int32_t first = scale_mode(product->shape.dtype, true), second = scale_mode(product->shape.dtype, false);

    return set_attribute(job, product, CUBLASLT_MATMUL_DESC_A_SCALE_MODE, &first, sizeof first) ||
           set_attribute(job, product, CUBLASLT_MATMUL_DESC_B_SCALE_MODE, &second, sizeof second) ? -1 : 0;
}
#else
static int set_modes(struct job *job, const struct product *product)
{
    (void)job, (void)product;
    return 0;
}
#endif

/* Whether the scale of C lies on the device: the product of factors that kernels compute. */
static bool has_alpha(const struct product *product)
{
    const struct bench_format *format = &bench_formats[product->shape.dtype];

    return format->factor && format->block > 0;
}

/* Where blocks have no scales, the factor is the scale. */
static int set_scales(struct job *job, const struct product *product, int set, int64_t index)
{
    bool blocks = bench_formats[product->shape.dtype].block > 0;
    int part = blocks ? PART_SCALES : PART_FACTOR;
    int64_t count = blocks ? product->with.count : 1, at = blocks ? index : 0;
    const void *first = product_matrix(job, set, product->with.b + part, at, count);
    const void *second = product_matrix(job, set, product->with.a + part, at, count);

    return set_attribute(job, product, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, &first, sizeof first) ||
           set_attribute(job, product, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, &second, sizeof second) ? -1 : 0;
}

/* With one scale a matrix, sums have the tensor cores' own precision, as in the forward of frameworks; with scales of
 * blocks they do not. */
static int describe_narrow(struct job *job, const struct product *product)
{
    int8_t fast = bench_formats[product->shape.dtype].block == 0;
    int32_t pointers = CUBLASLT_POINTER_MODE_DEVICE;

    if (!product_knows(product->shape.dtype)) {
        snprintf(job->why, sizeof job->why, "built with %s; products in %s need CUDA %s or newer", product_built(),
                 bench_dtype_names[product->shape.dtype],
                 product->shape.dtype == BENCH_FP8_BLOCK ? "12.9" : "12.8");
        return -1;
    }
    if (has_alpha(product) &&
        set_attribute(job, product, CUBLASLT_MATMUL_DESC_POINTER_MODE, &pointers, sizeof pointers))
        return -1;
    return set_attribute(job, product, CUBLASLT_MATMUL_DESC_FAST_ACCUM, &fast, sizeof fast) ||
           set_modes(job, product) || set_scales(job, product, 0, 0) ? -1 : 0;
}

static int describe(struct job *job, struct product *product)
{
    const struct bench_case *one = &product->shape;
    bool left = one->layout == BENCH_LAYOUT_TN, right = one->layout == BENCH_LAYOUT_NT;      /* the transposed one */
    cublasOperation_t first = right ? CUBLAS_OP_T : CUBLAS_OP_N, second = left ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasComputeType_t compute = one->dtype == BENCH_TF32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    cudaDataType_t type = product_type(one->dtype), result = product_type(job->operands[product->with.c].dtype);

    if (check(job, cublasLtMatmulDescCreate(&product->how, compute, CUDA_R_32F), "a product") ||
        set_attribute(job, product, CUBLASLT_MATMUL_DESC_TRANSA, &first, sizeof first) ||
        set_attribute(job, product, CUBLASLT_MATMUL_DESC_TRANSB, &second, sizeof second) ||
        (bench_is_narrow(one->dtype) && describe_narrow(job, product)))
        return -1;
    return layout(job, product, &product->a, type, right ? one->k : one->n, right ? one->n : one->k) ||
           layout(job, product, &product->b, type, left ? one->m : one->k, left ? one->k : one->m) ||
           layout(job, product, &product->c, result, one->n, one->m) ? -1 : 0;
}

static int choose(struct job *job, struct product *product)
{
    size_t workspace = job->device->workspace_size;
    cublasLtMatmulHeuristicResult_t found;
    int count = 0;

    if (check(job, cublasLtMatmulPreferenceCreate(&product->preference), "a preference") ||
        check(job, cublasLtMatmulPreferenceSetAttribute(product->preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                        &workspace, sizeof workspace), "a preference") ||
        check(job, cublasLtMatmulAlgoGetHeuristic(job->device->blas->handle, product->how, product->a, product->b,
                                                  product->c, product->c, product->preference, 1, &found, &count),
              "the heuristic"))
        return -1;
    if (count < 1)
        return check(job, CUBLAS_STATUS_NOT_SUPPORTED, "the heuristic");
    product->algorithm = found.algo;
    return 0;
}

int product_open(struct job *job, struct product *product)
{
    return get_state(job) || describe(job, product) || choose(job, product) ? -1 : 0;
}

void *product_matrix(const struct job *job, int set, int operand, int64_t index, int64_t count)
{
    const struct operand *own = &job->operands[operand];

    return (char *)job_operand(job, set, operand) + bench_dtype_bytes(own->dtype, own->count / count * index);
}

int product_call(struct job *job, const struct product *product, int set, int64_t index, cudaStream_t stream,
                 void *workspace)
{
    const struct product_operands *with = &product->with;
    const struct device *device = job->device;
    bool narrow = bench_is_narrow(product->shape.dtype), on_device = has_alpha(product);
    const float one = 1, zero = 0, *alpha = on_device ? job_operand(job, set, with->alpha) : &one;
    int codes = narrow ? PART_CODES : 0;
    const void *a = product_matrix(job, set, with->a + codes, index, with->count);
    const void *b = product_matrix(job, set, with->b + codes, index, with->count);
    void *c = product_matrix(job, set, with->c, index, with->count);

    if (narrow && set_scales(job, product, set, index))
        return -1;
    return check(job, cublasLtMatmul(device->blas->handle, product->how, alpha, b, product->a, a, product->b,
                                     on_device ? device->blas->zero : &zero, c, product->c, c, product->c,
                                     &product->algorithm, workspace, device->workspace_size, stream), "a product");
}

int product_alpha(struct job *job, const struct product *product, int set)
{
    const struct product_operands *with = &product->with;

    if (!has_alpha(product))
        return 0;
    return job_check(job, kernel_alpha(job_operand(job, set, with->alpha),
                                       job_operand(job, set, with->a + PART_FACTOR),
                                       job_operand(job, set, with->b + PART_FACTOR), job->device->stream),
                     "the product of two factors");
}

int product_quantise(struct job *job, const struct product *product, int set, int from)
{
    return job_check(job, job_quantise(job, set, product->with.a, job_operand(job, set, from), 0), "quantising") ||
           product_alpha(job, product, set) ? -1 : 0;
}

void product_close(struct product *product)
{
    if (product->preference)
        cublasLtMatmulPreferenceDestroy(product->preference);
    if (product->a)
        cublasLtMatrixLayoutDestroy(product->a);
    if (product->b)
        cublasLtMatrixLayoutDestroy(product->b);
    if (product->c)
        cublasLtMatrixLayoutDestroy(product->c);
    if (product->how)
        cublasLtMatmulDescDestroy(product->how);
}
