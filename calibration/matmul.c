/* Products through cuBLASLt, with the first algorithm of its heuristic, as in frameworks.
 *
 * cuBLAS stores matrices by columns. A row-major matrix, read by columns, is its transpose. So the row-major C = A B is
 * computed as C^T = B^T A^T: B goes first, and an operand that is not transposed in memory needs no transposition. */
#include <cublasLt.h>
#include <stdlib.h>

#include "base/base.h"
#include "device.h"

struct matmul {
    cublasLtHandle_t handle;
    float *one;                  /* on the device: the scale of fp8 operands */
    bool ready;
};

/* Of one job. */
struct product {
    cublasLtMatmulDesc_t how;
    cublasLtMatrixLayout_t a, b, c;
    cublasLtMatmulPreference_t preference;
    cublasLtMatmulAlgo_t algorithm;
};

const char *matmul_built(void)
{
    return "cuBLASLt " TEXT(CUBLAS_VER_MAJOR) "." TEXT(CUBLAS_VER_MINOR) "." TEXT(CUBLAS_VER_PATCH);
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
    struct matmul *matmul = job->device->matmul;
    const float one = 1;

    if (matmul && matmul->ready)
        return 0;
    matmul_free(matmul);
    job->device->matmul = matmul = xcalloc(1, sizeof *matmul);
    matmul->ready = !check(job, cublasLtCreate(&matmul->handle), "the library") &&
                    !job_check(job, cudaMalloc((void **)&matmul->one, sizeof one), "memory of a scale") &&
                    !job_check(job, cudaMemcpy(matmul->one, &one, sizeof one, cudaMemcpyHostToDevice), "a scale");
    return matmul->ready ? 0 : -1;
}

void matmul_free(struct matmul *matmul)
{
    if (!matmul)
        return;
    cudaFree(matmul->one);
    if (matmul->handle)
        cublasLtDestroy(matmul->handle);
    free(matmul);
}

static cudaDataType_t type_of(enum bench_dtype dtype)
{
    static const cudaDataType_t types[BENCH_DTYPES] = {
        [BENCH_FP32] = CUDA_R_32F, [BENCH_TF32] = CUDA_R_32F, [BENCH_FP16] = CUDA_R_16F, [BENCH_BF16] = CUDA_R_16BF,
        [BENCH_FP8] = CUDA_R_8F_E4M3,
    };
    return types[dtype];
}

/* `batch` matrices one after another, each stored by columns without gaps. */
static int layout(struct job *job, cublasLtMatrixLayout_t *made, enum bench_dtype dtype, int64_t rows, int64_t columns)
{
    int32_t batch = (int32_t)job->one->batch;
    int64_t stride = rows * columns;

    return check(job, cublasLtMatrixLayoutCreate(made, type_of(dtype), (uint64_t)rows, (uint64_t)columns, rows),
                 "a layout") ||
           check(job, cublasLtMatrixLayoutSetAttribute(*made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch, sizeof batch),
                 "a batch") ||
           check(job, cublasLtMatrixLayoutSetAttribute(*made, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride,
                                                       sizeof stride), "a batch") ? -1 : 0;
}

static int set(struct job *job, struct product *product, cublasLtMatmulDescAttributes_t attribute, const void *value,
               size_t size)
{
    return check(job, cublasLtMatmulDescSetAttribute(product->how, attribute, value, size), "an attribute");
}

/* Operands of fp8 have scales; sums have the tensor cores' own precision, as in the forward of frameworks. */
static int describe_fp8(struct job *job, struct product *product)
{
    const float *one = job->device->matmul->one;
    int8_t fast = 1;

    return set(job, product, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, &one, sizeof one) ||
           set(job, product, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, &one, sizeof one) ||
           set(job, product, CUBLASLT_MATMUL_DESC_FAST_ACCUM, &fast, sizeof fast) ? -1 : 0;
}

static int describe(struct job *job, struct product *product)
{
    const struct bench_case *one = job->one;
    bool left = one->layout == BENCH_LAYOUT_TN, right = one->layout == BENCH_LAYOUT_NT;      /* the transposed one */
    cublasOperation_t first = right ? CUBLAS_OP_T : CUBLAS_OP_N, second = left ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasComputeType_t compute = one->dtype == BENCH_TF32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;

    if (check(job, cublasLtMatmulDescCreate(&product->how, compute, CUDA_R_32F), "a product") ||
        set(job, product, CUBLASLT_MATMUL_DESC_TRANSA, &first, sizeof first) ||
        set(job, product, CUBLASLT_MATMUL_DESC_TRANSB, &second, sizeof second) ||
        (one->dtype == BENCH_FP8 && describe_fp8(job, product)))
        return -1;
    return layout(job, &product->a, one->dtype, right ? one->k : one->n, right ? one->n : one->k) ||
           layout(job, &product->b, one->dtype, left ? one->m : one->k, left ? one->k : one->m) ||
           layout(job, &product->c, job->operands[2].dtype, one->n, one->m) ? -1 : 0;
}

static int choose(struct job *job, struct product *product)
{
    size_t workspace = job->device->workspace_size;
    cublasLtMatmulHeuristicResult_t found;
    int count = 0;

    if (check(job, cublasLtMatmulPreferenceCreate(&product->preference), "a preference") ||
        check(job, cublasLtMatmulPreferenceSetAttribute(product->preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                        &workspace, sizeof workspace), "a preference") ||
        check(job, cublasLtMatmulAlgoGetHeuristic(job->device->matmul->handle, product->how, product->a, product->b,
                                                  product->c, product->c, product->preference, 1, &found, &count),
              "the heuristic"))
        return -1;
    if (count < 1)
        return check(job, CUBLAS_STATUS_NOT_SUPPORTED, "the heuristic");
    product->algorithm = found.algo;
    return 0;
}

static int call(struct job *job, int number)
{
    const struct product *product = job->state;
    const struct device *device = job->device;
    const float alpha = 1, beta = 0;
    void *a = job_operand(job, number, 0), *b = job_operand(job, number, 1), *c = job_operand(job, number, 2);

    return check(job, cublasLtMatmul(device->matmul->handle, product->how, &alpha, b, product->a, a, product->b, &beta,
                                     c, product->c, c, product->c,
                                     &product->algorithm, device->workspace, device->workspace_size, device->stream),
                 "a product");
}

static void release(struct job *job)
{
    struct product *product = job->state;

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
    free(product);
}

int matmul_open(struct job *job)
{
    struct product *product = xcalloc(1, sizeof *product);

    job->state = product;
    job->call = call;
    job->close = release;
    return get_state(job) || describe(job, product) || choose(job, product) ? -1 : 0;
}
