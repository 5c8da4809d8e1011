/* Checks the kernels: on small shapes, each operand after one call against the reference. */
#include <math.h>
#include <stdlib.h>

#include "base/base.h"
#include "device.h"
#include "device_kernels.h"
#include "reference.h"

/* Every operand of a job's first set as doubles. */
static int read_operands(struct job *job, double *values[OPERANDS_MAX])
{
    for (int i = 0; i < job->noperands; i++) {
        size_t count = (size_t)job->operands[i].count;
        float *wide = NULL, *host = xcalloc(count, sizeof *host);
        int rc = job_check(job, cudaMalloc((void **)&wide, count * sizeof *wide), "memory to compare in");

        if (!rc)
            rc = job_check(job, kernel_widen(wide, job_operand(job, 0, i), job->operands[i].dtype,
                                             job->operands[i].count, job->device->stream), "widening");
        if (!rc)
            rc = job_check(job, cudaMemcpyAsync(host, wide, count * sizeof *host, cudaMemcpyDeviceToHost,
                                                job->device->stream), "reading results") ||
                 job_check(job, cudaStreamSynchronize(job->device->stream), "reading results");
        for (size_t j = 0; !rc && j < count; j++)
            values[i][j] = (double)host[j];
        cudaFree(wide);
        free(host);
        if (rc)
            return -1;
    }
    return 0;
}

/* The largest difference over the largest value; infinite if a value is not a number. */
static double difference(const double *expected, const double *found, int64_t count)
{
    double largest = 1e-30, worst = 0;

    for (int64_t i = 0; i < count; i++) {
        largest = fmax(largest, fabs(expected[i]));
        worst = isfinite(found[i]) ? fmax(worst, fabs(expected[i] - found[i])) : INFINITY;
        if (isinf(worst))
            return worst;
    }
    return worst / largest;
}

/* Tolerance: some roundings of the format; tf32 rounds the operands like fp16. Operands with scales are the same here
 * and there, and C is bf16. Within a layer of experts values of bf16 are quantised; where they are near the middle of
 * two codes, the GPU and the CPU may take different ones. */
static double tolerance(const struct bench_case *one)
{
    if (one->kernel == BENCH_MOE && bench_is_narrow(one->dtype))
        return 5e-2;
    return one->dtype == BENCH_FP32 ? 1e-4 : one->dtype == BENCH_TF32 || one->dtype == BENCH_FP16 ? 5e-3 : 2e-2;
}

static bool is_mask(const struct job *job, int operand)
{
    return job->one->kernel == BENCH_DROPOUT_FORWARD && job->operands[operand].dtype == BENCH_BYTE;
}

/* Checks the share of ones in a random mask: it must be within six deviations of its mean. */
static bool is_fair(const double *mask, int64_t count)
{
    double kept = 0, deviation = sqrt(BENCH_DROPOUT * (1 - BENCH_DROPOUT) / (double)count);

    for (int64_t i = 0; i < count; i++)
        kept += mask[i] / (double)count;
    return fabs(kept - (1 - BENCH_DROPOUT)) < 6 * deviation;
}

/* The worst difference of the job's outputs after one call, or -1 with job->why. */
static double run(struct job *job)
{
    double *expected[OPERANDS_MAX] = {NULL}, *found[OPERANDS_MAX] = {NULL}, worst = 0;
    int rc;

    for (int i = 0; i < job->noperands; i++) {
        expected[i] = xcalloc((size_t)job->operands[i].count, sizeof(double));
        found[i] = xcalloc((size_t)job->operands[i].count, sizeof(double));
    }
    rc = read_operands(job, expected) || job->call(job, 0) || read_operands(job, found) ? -1 : 0;
    for (int i = 0; !rc && i < job->noperands; i++)
        if (is_mask(job, i)) {
            for (int64_t j = 0; j < job->operands[i].count; j++)
                expected[i][j] = found[i][j];
            worst = is_fair(found[i], job->operands[i].count) ? worst : INFINITY;
        }
    if (!rc)
        reference_run(job->one, expected);
    for (int i = 0; !rc && i < job->noperands; i++)
        if (job->operands[i].role == ROLE_OUT)
            worst = fmax(worst, difference(expected[i], found[i], job->operands[i].count));
    for (int i = 0; i < job->noperands; i++) {
        free(expected[i]);
        free(found[i]);
    }
    return rc ? -1 : worst;
}

struct checks {
    struct device *device;
    const struct bench_limits *limits;
    FILE *out;
    int wrong;
    bool over;                   /* the GPU failed: nothing more can be checked */
};

static void check(struct checks *checks, struct bench_case one)
{
    struct job job;
    double worst = -1;

    if (checks->over || !bench_case_wanted(checks->limits, &one))
        return;
    if (!job_open(&job, checks->device, &one))
        worst = run(&job);
    fprintf(checks->out, "%-30s %-9s %-2s %4lld x %4lld x %3lld  ", bench_kernel_names[one.kernel],
            bench_dtype_names[one.dtype], bench_layout_names[one.layout], (long long)one.m, (long long)one.n,
            (long long)one.k);
    checks->over = cudaStreamSynchronize(checks->device->stream) != cudaSuccess;
    if (worst < 0)
        fprintf(checks->out, "%s: %s\n", checks->over ? "the GPU failed" : "cannot be run", job.why);
    else
        fprintf(checks->out, "%s (differs by %.1e, may by %.0e)\n", worst <= tolerance(&one) ? "right" : "WRONG",
                worst, tolerance(&one));
    fflush(checks->out);
    checks->wrong += !(worst >= 0 && worst <= tolerance(&one));
    job_close(&job);
}

static void check_products(struct checks *checks)
{
    for (int dtype = BENCH_FP32; dtype <= BENCH_BF16; dtype++)
        for (int layout = BENCH_LAYOUT_NN; layout <= BENCH_LAYOUT_TN; layout++)
            for (int64_t batch = 1; batch <= 3; batch += 2)
                check(checks, (struct bench_case){.kernel = BENCH_MATMUL, .dtype = (enum bench_dtype)dtype,
                                                  .layout = (enum bench_layout)layout, .batch = batch, .m = 48,
                                                  .n = 80, .k = 112});
}

/* Formats whose values have scales: within one tile of scales, and over several of them with a part of one. */
static void check_narrow(struct checks *checks, enum bench_dtype dtype)
{
    const struct bench_case products[] = {
        {BENCH_MATMUL, dtype, BENCH_LAYOUT_NT, 1, 128, 128, 128, 0},
        {BENCH_MATMUL, dtype, BENCH_LAYOUT_NT, 1, 384, 256, 640, 0},
        {BENCH_MATMUL_QUANTIZED, dtype, BENCH_LAYOUT_NT, 1, 128, 128, 128, 0},
        {BENCH_MATMUL_QUANTIZED, dtype, BENCH_LAYOUT_NT, 1, 384, 256, 640, 0},
        {BENCH_MATMUL_GROUPED, dtype, BENCH_LAYOUT_NT, 3, 384, 256, 640, 0},
        {BENCH_MATMUL_GROUPED, dtype, BENCH_LAYOUT_NT, 6, 768, 128, 256, 0},
        {.kernel = BENCH_MOE, .dtype = dtype, .batch = 4, .m = 512, .n = 128, .k = 256},
    };

    for (size_t i = 0; i < COUNT(products); i++)
        check(checks, products[i]);
}

static void check_experts(struct checks *checks)
{
    for (int layout = BENCH_LAYOUT_NN; layout <= BENCH_LAYOUT_TN; layout++)
        check(checks, (struct bench_case){.kernel = BENCH_MATMUL_GROUPED, .dtype = BENCH_BF16,
                                          .layout = (enum bench_layout)layout, .batch = 3, .m = 96, .n = 80, .k = 192});
    check(checks, (struct bench_case){.kernel = BENCH_MOE, .dtype = BENCH_BF16, .batch = 4, .m = 48, .n = 80,
                                      .k = 112});
}

/* Rows of one, two and eight packs a thread, and the smallest and largest supported rows. */
static void check_rows(struct checks *checks, enum bench_dtype dtype)
{
    static const int64_t columns[] = {64, 4096, 16384};

    for (int kernel = BENCH_SOFTMAX_FORWARD; kernel <= BENCH_CROSS_ENTROPY_BACKWARD; kernel++)
        for (size_t i = 0; i < COUNT(columns); i++)
            check(checks, (struct bench_case){.kernel = (enum bench_kernel)kernel, .dtype = dtype, .m = 37,
                                              .n = columns[i], .k = 50});
    check(checks, (struct bench_case){.kernel = BENCH_ADAM, .dtype = dtype, .m = 4096});
    check(checks, (struct bench_case){.kernel = BENCH_REDUCTION, .dtype = dtype, .m = 1 << 20});
}

static void check_attention(struct checks *checks, enum bench_dtype dtype)
{
    for (int kernel = BENCH_ATTENTION_FORWARD; kernel <= BENCH_ATTENTION_BACKWARD_CAUSAL; kernel++)
        for (int64_t size = 64; size <= 128; size += 64)
            check(checks, (struct bench_case){.kernel = (enum bench_kernel)kernel, .dtype = dtype, .batch = 3, .m = 256,
                                              .n = 256, .k = size});
}

int check_all(struct device *device, const struct bench_limits *limits, FILE *out)
{
    struct checks checks = {device, limits, out, 0, false};

    check_products(&checks);
    for (int dtype = BENCH_FP8; dtype <= BENCH_NVFP4; dtype++)
        check_narrow(&checks, (enum bench_dtype)dtype);
    check_experts(&checks);
    for (int dtype = BENCH_FP32; dtype <= BENCH_BF16; dtype++) {
        if (dtype == BENCH_TF32)
            continue;
        check_rows(&checks, (enum bench_dtype)dtype);
        if (dtype != BENCH_FP32 && limits->flash)
            check_attention(&checks, (enum bench_dtype)dtype);
    }
    return checks.wrong;
}
