/* Jobs of mixture layers: the products of all experts, and whole layers, forward.
 *
 * Products in bf16 are one kernel, cuBLAS's grouped product. It stands for those of torch._grouped_mm and of Megatron's
 * grouped GEMM, which are CUTLASS's. Where values have scales, each expert has a product of its own through cuBLASLt.
 * They take turns on four streams, each with its own workspace. That is how Transformer Engine runs its grouped linear
 * layer (nvte_multi_stream_cublas_gemm). Rows are divided evenly over the experts. */
#include <cublas_v2.h>
#include <stdlib.h>

#include "base/base.h"
#include "device_kernels.h"
#include "product.h"

#if CUBLAS_VERSION >= 120500
#define HAS_GROUPED 1
#else
#define HAS_GROUPED 0
#endif

enum { LANES = 4 };

/* Of the device, for all jobs. */
struct experts {
    cublasHandle_t handle;
    cudaStream_t lanes[LANES];
    cudaEvent_t begin, ends[LANES];
    void *workspaces[LANES];
    bool ready;
};

/* The products of all experts. For a grouped product of one kernel the places of its matrices lie on the device: those
 * of B, A and C of all experts, set by set. */
struct grouped {
    struct product product;
    void **places;
};

struct layer { struct grouped up, down; };

bool experts_are_built(void)
{
    return HAS_GROUPED;
}

static int check(struct job *job, cublasStatus_t status, const char *what)
{
    if (status == CUBLAS_STATUS_SUCCESS)
        return 0;
    snprintf(job->why, sizeof job->why, "cuBLAS: %s: %s", what, cublasGetStatusString(status));
    return -1;
}

static int make_lanes(struct job *job, struct experts *experts)
{
    for (int i = 0; i < LANES; i++)
        if (job_check(job, cudaStreamCreateWithFlags(&experts->lanes[i], cudaStreamNonBlocking), "a stream") ||
            job_check(job, cudaEventCreateWithFlags(&experts->ends[i], cudaEventDisableTiming), "an event") ||
            job_check(job, cudaMalloc(&experts->workspaces[i], job->device->workspace_size), "a workspace"))
            return -1;
    return job_check(job, cudaEventCreateWithFlags(&experts->begin, cudaEventDisableTiming), "an event");
}

static int get_state(struct job *job)
{
    struct device *device = job->device;
    struct experts *experts = device->experts;

    if (experts && experts->ready)
        return 0;
    experts_free(experts);
    device->experts = experts = xcalloc(1, sizeof *experts);
    experts->ready = !check(job, cublasCreate(&experts->handle), "the library") &&
                     !check(job, cublasSetStream(experts->handle, device->stream), "the stream") &&
                     !check(job, cublasSetWorkspace(experts->handle, device->workspace, device->workspace_size),
                            "the workspace") &&
                     !make_lanes(job, experts);
    return experts->ready ? 0 : -1;
}

void experts_free(struct experts *experts)
{
    if (!experts)
        return;
    for (int i = 0; i < LANES; i++) {
        if (experts->lanes[i])
            cudaStreamDestroy(experts->lanes[i]);
        if (experts->ends[i])
            cudaEventDestroy(experts->ends[i]);
        cudaFree(experts->workspaces[i]);
    }
    if (experts->begin)
        cudaEventDestroy(experts->begin);
    if (experts->handle)
        cublasDestroy(experts->handle);
    free(experts);
}

/* ---- on several streams ---- */

static int call_lanes(struct job *job, const struct grouped *grouped, int set)
{
    const struct experts *experts = job->device->experts;
    int64_t count = grouped->product.with.count;
    int lanes = count < LANES ? (int)count : LANES;

    if (job_check(job, cudaEventRecord(experts->begin, job->device->stream), "an event"))
        return -1;
    for (int i = 0; i < lanes; i++)
        if (job_check(job, cudaStreamWaitEvent(experts->lanes[i], experts->begin, 0), "an event"))
            return -1;
    for (int64_t i = 0; i < count; i++)
        if (product_call(job, &grouped->product, set, i, experts->lanes[i % LANES], experts->workspaces[i % LANES]))
            return -1;
    for (int i = 0; i < lanes; i++)
        if (job_check(job, cudaEventRecord(experts->ends[i], experts->lanes[i]), "an event") ||
            job_check(job, cudaStreamWaitEvent(job->device->stream, experts->ends[i], 0), "an event"))
            return -1;
    return 0;
}

/* ---- in one kernel ---- */

static int place_matrices(struct job *job, struct grouped *grouped)
{
    const struct product_operands *with = &grouped->product.with;
    const int operands[] = {with->b, with->a, with->c};
    size_t all = (size_t)job->sets * COUNT(operands) * (size_t)with->count, next = 0;
    void **places = xcalloc(all, sizeof *places);
    int rc;

    for (int set = 0; set < job->sets; set++)
        for (size_t i = 0; i < COUNT(operands); i++)
            for (int64_t expert = 0; expert < with->count; expert++)
                places[next++] = product_matrix(job, set, operands[i], expert, with->count);
    rc = job_check(job, cudaMalloc((void **)&grouped->places, all * sizeof *places), "memory of places") ||
         job_check(job, cudaMemcpy(grouped->places, places, all * sizeof *places, cudaMemcpyHostToDevice), "places")
             ? -1 : 0;
    free(places);
    return rc;
}

#if HAS_GROUPED
/* What the library takes for each group; a group is an expert, because in training their rows differ. */
struct group_sizes {
    cublasOperation_t *first, *second;
    int *m, *n, *k, *lda, *ldb, *ldc, *ones;
    float *alpha, *beta;
};

/* Allocated in one piece, to be freed by its first member. */
static struct group_sizes sizes_of(const struct product *product)
{
    const struct bench_case *one = &product->shape;
    bool left = one->layout == BENCH_LAYOUT_TN, right = one->layout == BENCH_LAYOUT_NT;
    size_t count = (size_t)product->with.count;
    int *whole = xcalloc(7 * count, sizeof *whole);
    struct group_sizes sizes = {
        xcalloc(count, sizeof *sizes.first), xcalloc(count, sizeof *sizes.second), whole, whole + count,
        whole + 2 * count, whole + 3 * count, whole + 4 * count, whole + 5 * count, whole + 6 * count,
        xcalloc(count, sizeof *sizes.alpha), xcalloc(count, sizeof *sizes.beta)};

    for (size_t i = 0; i < count; i++) {
        sizes.first[i] = right ? CUBLAS_OP_T : CUBLAS_OP_N;
        sizes.second[i] = left ? CUBLAS_OP_T : CUBLAS_OP_N;
        sizes.m[i] = sizes.ldc[i] = (int)one->n;
        sizes.n[i] = (int)one->m;
        sizes.k[i] = (int)one->k;
        sizes.lda[i] = (int)(right ? one->k : one->n);
        sizes.ldb[i] = (int)(left ? one->m : one->k);
        sizes.ones[i] = 1;
        sizes.alpha[i] = 1;
    }
    return sizes;
}

static int call_one_kernel(struct job *job, const struct grouped *grouped, int set)
{
    const struct product *product = &grouped->product;
    struct group_sizes sizes = sizes_of(product);
    int count = (int)product->with.count;
    cudaDataType_t type = product_type(product->shape.dtype);
    void **b = grouped->places + (size_t)set * 3 * (size_t)count, **a = b + count, **c = a + count;
    int rc = check(job, cublasGemmGroupedBatchedEx(job->device->experts->handle, sizes.first, sizes.second, sizes.m,
                                                   sizes.n, sizes.k, sizes.alpha, (const void *const *)b, type,
                                                   sizes.lda, (const void *const *)a, type, sizes.ldb, sizes.beta, c,
                                                   type, sizes.ldc, count, sizes.ones, CUBLAS_COMPUTE_32F),
                   "a grouped product");

    free(sizes.first);
    free(sizes.second);
    free(sizes.m);
    free(sizes.alpha);
    free(sizes.beta);
    return rc;
}
#else
static int call_one_kernel(struct job *job, const struct grouped *grouped, int set)
{
    (void)grouped, (void)set;
    snprintf(job->why, sizeof job->why, "built with %s; grouped products in bf16 need CUDA 12.5 or newer",
             product_built());
    return -1;
}
#endif

/* ---- both ---- */

/* `whole`: the product of all experts together. */
static int grouped_open(struct job *job, struct grouped *grouped, struct bench_case whole,
                        struct product_operands with)
{
    grouped->product.with = with;
    *(whole.layout == BENCH_LAYOUT_TN ? &whole.k : &whole.m) /= whole.batch;
    whole.batch = 1;
    grouped->product.shape = whole;
    return bench_is_narrow(whole.dtype) ? product_open(job, &grouped->product) : place_matrices(job, grouped);
}

static int grouped_call(struct job *job, const struct grouped *grouped, int set)
{
    return bench_is_narrow(grouped->product.shape.dtype) ? call_lanes(job, grouped, set)
                                                         : call_one_kernel(job, grouped, set);
}

static void grouped_close(struct grouped *grouped)
{
    product_close(&grouped->product);
    cudaFree(grouped->places);
}

/* ---- one grouped product ---- */

static int call_product(struct job *job, int set)
{
    struct layer *layer = job->state;

    return grouped_call(job, &layer->up, set);
}

static int open_product(struct job *job, struct layer *layer)
{
    bool narrow = bench_is_narrow(job->one->dtype);
    int64_t count = job->one->batch;

    if (grouped_open(job, &layer->up, *job->one,
                     narrow ? (struct product_operands){NARROW_A, NARROW_B, NARROW_C, NARROW_ALPHA, count}
                            : (struct product_operands){PLAIN_A, PLAIN_B, PLAIN_C, -1, count}))
        return -1;
    for (int set = 0; narrow && set < job->sets; set++)
        if (product_alpha(job, &layer->up.product, set))
            return -1;
    return 0;
}

/* ---- a layer ---- */

/* Quantises the rows in bf16, if values have scales, and multiplies them by the experts' weights. */
static int multiply(struct job *job, const struct grouped *grouped, int set, int rows)
{
    if (bench_is_narrow(job->one->dtype) && product_quantise(job, &grouped->product, set, rows))
        return -1;
    return grouped_call(job, grouped, set);
}

static int call_layer(struct job *job, int set)
{
    const struct bench_case *one = job->one;
    const struct bench_case gate = {.kernel = BENCH_SWIGLU_FORWARD, .dtype = BENCH_BF16, .m = one->m, .n = one->n};
    const struct device *device = job->device;
    struct layer *layer = job->state;
    void *operands[OPERANDS_MAX] = {NULL}, *activation[OPERANDS_MAX] = {NULL};

    for (int i = 0; i < job->noperands; i++)
        operands[i] = job_operand(job, set, i);
    activation[0] = operands[MOE_WIDE];
    activation[1] = operands[MOE_INNER];
    return job_check(job, kernel_expert_rows(one, false, operands, device->stream), "rows to experts") ||
           multiply(job, &layer->up, set, MOE_ROWS) ||
           job_check(job, kernel_flat(&gate, activation, device->sms, 0, device->stream), "the activation") ||
           multiply(job, &layer->down, set, MOE_INNER) ||
           job_check(job, kernel_expert_rows(one, true, operands, device->stream), "rows from experts") ? -1 : 0;
}

static int open_layer(struct job *job, struct layer *layer)
{
    const struct bench_case *one = job->one;
    bool narrow = bench_is_narrow(one->dtype);
    struct product_operands up = {narrow ? MOE_NARROW_ROWS : MOE_ROWS, MOE_UP, MOE_WIDE, MOE_UP_ALPHA, one->batch};
    struct product_operands down = {narrow ? MOE_NARROW_INNER : MOE_INNER, narrow ? MOE_NARROW_DOWN : MOE_PLAIN_DOWN,
                                    MOE_RESULTS, MOE_DOWN_ALPHA, one->batch};

    return grouped_open(job, &layer->up, (struct bench_case){BENCH_MATMUL_GROUPED, one->dtype, BENCH_LAYOUT_NT,
                                                             one->batch, one->m, 2 * one->n, one->k, 0}, up) ||
           grouped_open(job, &layer->down, (struct bench_case){BENCH_MATMUL_GROUPED, one->dtype, BENCH_LAYOUT_NT,
                                                               one->batch, one->m, one->k, one->n, 0}, down) ? -1 : 0;
}

static void release(struct job *job)
{
    struct layer *layer = job->state;

    grouped_close(&layer->up);
    grouped_close(&layer->down);
    free(layer);
}

int experts_open(struct job *job)
{
    struct layer *layer = xcalloc(1, sizeof *layer);
    bool whole = job->one->kernel == BENCH_MOE;

    job->state = layer;
    job->call = whole ? call_layer : call_product;
    job->close = release;
    if (get_state(job))
        return -1;
    return whole ? open_layer(job, layer) : open_product(job, layer);
}
