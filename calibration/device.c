#include "device.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "device_kernels.h"

/* The workspace of cuBLAS: its default of 32 MiB since Hopper; before that 8 MiB, as frameworks give it. */
enum { WORKSPACE = 8 << 20, WORKSPACE_HOPPER = 32 << 20 };

int job_check(struct job *job, cudaError_t error, const char *what)
{
    if (error == cudaSuccess)
        return 0;
    snprintf(job->why, sizeof job->why, "%s: %s", what, cudaGetErrorString(error));
    return -1;
}

static int attribute(const struct device *device, enum cudaDeviceAttr which)
{
    int value = 0;

    return cudaDeviceGetAttribute(&value, which, device->index) == cudaSuccess ? value : 0;
}

static cudaError_t take_memory(struct device *device, double memory)
{
    size_t available = 0, total = 0;
    cudaError_t error = cudaMalloc(&device->workspace, device->workspace_size);

    if (!error)
        error = cudaMemGetInfo(&available, &total);
    if (error)
        return error;
    device->space = (size_t)fmin(memory, 0.8 * (double)available) / 4096 * 4096;
    return cudaMalloc((void **)&device->arena, device->space);
}

int device_open(struct device *device, int index, double memory, uint64_t seed, char *why, size_t size)
{
    struct cudaDeviceProp properties;
    int count = 0;
    cudaError_t error = cudaGetDeviceCount(&count);

    *device = (struct device){.index = index, .seed = seed};
    if (!error && index >= count)
        return snprintf(why, size, "no GPU %d: there are %d, numbered from 0", index, count), -1;
    if (!error)
        error = cudaSetDevice(index);
    if (!error)
        error = cudaGetDeviceProperties(&properties, index);
    if (error)
        return snprintf(why, size, "no GPU can be used here: %s", cudaGetErrorString(error)), -1;
    snprintf(device->name, sizeof device->name, "%s", properties.name);
    device->major = properties.major;
    device->minor = properties.minor;
    device->sms = properties.multiProcessorCount;
    device->cache = (size_t)attribute(device, cudaDevAttrL2CacheSize);
    device->workspace_size = device->major >= 9 ? WORKSPACE_HOPPER : WORKSPACE;
    error = take_memory(device, memory);
    if (!error)
        error = cudaStreamCreateWithFlags(&device->stream, cudaStreamNonBlocking);
    if (!error)
        error = cudaStreamCreateWithFlags(&device->overlapping, cudaStreamNonBlocking);
    if (!error)
        error = cudaEventCreate(&device->start);
    if (!error)
        error = cudaEventCreate(&device->stop);
    if (!error)
        return 0;
    snprintf(why, size, "the GPU cannot be prepared: %s", cudaGetErrorString(error));
    device_close(device);
    return -1;
}

/* After an error of the device freeing fails too; then the program ends. */
void device_close(struct device *device)
{
    experts_free(device->experts);
    product_free(device->blas);
    flash_free(device->flash);
    peers_free(device->peers);
    if (device->start)
        cudaEventDestroy(device->start);
    if (device->stop)
        cudaEventDestroy(device->stop);
    if (device->stream)
        cudaStreamDestroy(device->stream);
    if (device->overlapping)
        cudaStreamDestroy(device->overlapping);
    cudaFree(device->arena);
    cudaFree(device->workspace);
    memset(device, 0, sizeof *device);
}

enum { ALIGNMENT = 256, SETS_MAX = 512 };

/* Places the operands of all sets. The number of sets is so large that the operands used between two uses of one set
 * are twice the cache. Operands of less than a few hundred kB may be found there nevertheless. */
static int lay_out(struct job *job)
{
    const struct device *device = job->device;
    double room;

    for (int i = 0; i < job->noperands; i++) {
        size_t bytes = (size_t)bench_dtype_bytes(job->operands[i].dtype, job->operands[i].count);

        job->offsets[i] = job->set_bytes;
        job->set_bytes += (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    }
    job->sets = 1;
    if (job->set_bytes == 0)
        return 0;
    if (job->set_bytes > device->space) {
        snprintf(job->why, sizeof job->why, "its operands do not fit in memory");
        return -1;
    }
    room = (double)(device->space / job->set_bytes);
    job->sets = (int)fmin(fmin(room, SETS_MAX), ceil(2 * (double)device->cache / (double)job->set_bytes) + 1);
    return 0;
}

void *job_operand(const struct job *job, int set, int operand)
{
    return job->device->arena + (size_t)set * job->set_bytes + job->offsets[operand];
}

/* The codes of a matrix come after their scales and factor. */
static cudaError_t fill_operand(struct job *job, int set, int i)
{
    uint64_t seed = job->device->seed + (uint64_t)(set * OPERANDS_MAX + i) * 0x9E3779B97F4A7C15u;

    if (job->operands[i].fill == FILL_QUANTISED)
        return job_quantise(job, set, i - PART_CODES, NULL, seed);
    return kernel_fill(job_operand(job, set, i), &job->operands[i], seed, job->device->stream);
}

cudaError_t job_quantise(struct job *job, int set, int first, const void *from, uint64_t seed)
{
    void *parts[PARTS];

    for (int part = 0; part < PARTS; part++)
        parts[part] = job_operand(job, set, first + part);
    return kernel_quantise(&job->operands[first + PART_CODES].quantised, parts, from, seed, job->device->stream);
}

static int fill(struct job *job)
{
    for (int set = 0; set < job->sets; set++)
        for (int i = 0; i < job->noperands; i++)
            if (job_check(job, fill_operand(job, set, i), "filling the operands"))
                return -1;
    return 0;
}

/* A wait for a GPU that does not answer never ends; the longest case takes some five seconds. */
enum { JOB_SECONDS = 60 };

int job_open(struct job *job, struct device *device, const struct bench_case *one)
{
    int rc;

    alarm(JOB_SECONDS);
    *job = (struct job){.device = device, .one = one};
    job->noperands = bench_operands(one, job->operands);
    if (lay_out(job) || fill(job))
        return -1;
    if (one->kernel <= BENCH_MATMUL_QUANTIZED)
        rc = matmul_open(job);
    else if (one->kernel <= BENCH_MOE)
        rc = experts_open(job);
    else if (one->kernel <= BENCH_ATTENTION_BACKWARD_CAUSAL)
        rc = flash_open(job);
    else if (one->kernel <= BENCH_LAUNCH)
        rc = kernels_open(job);
    else if (one->kernel < BENCH_PEER_COPY)
        rc = transfer_open(job);
    else
        rc = peers_open(job);
    return rc || job_check(job, cudaStreamSynchronize(device->stream), "filling the operands") ? -1 : 0;
}

void job_close(struct job *job)
{
    if (job->close)
        job->close(job);
    job->close = NULL;
    (void)cudaGetLastError();            /* clears the error, so that the next job does not find it */
    alarm(0);
}

/* A product that keeps the multiprocessors as busy as training does. */
static const struct bench_case load = {
    .kernel = BENCH_MATMUL, .dtype = BENCH_FP16, .layout = BENCH_LAYOUT_NT, .batch = 1, .m = 4096, .n = 4096, .k = 4096,
};
enum { LOADS = 20 };             /* series of measurements, together about a second */

double device_clock(struct device *device)
{
    struct job job;
    struct series times = {0};
    uint64_t *ticks = NULL, host[2] = {0, 0};
    double clock = 0;
    int rc = job_open(&job, device, &load);

    if (!rc)
        rc = job_check(&job, cudaMalloc((void **)&ticks, sizeof host), "memory");
    for (int i = 0; i < LOADS && !rc; i++)
        rc = job_measure(&job, 0.05, &times);
    /* Reads the clock at once, because it rises when the load is gone. */
    if (!rc && kernel_ticks(ticks, device->stream) == cudaSuccess &&
        cudaMemcpyAsync(host, ticks, sizeof host, cudaMemcpyDeviceToHost, device->stream) == cudaSuccess &&
        cudaStreamSynchronize(device->stream) == cudaSuccess && host[1] > 0)
        clock = (double)host[0] / (double)host[1] * 1e9;
    cudaFree(ticks);
    job_close(&job);
    free(times.items);
    return clock;
}
