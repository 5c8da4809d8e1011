/* Copies within the device's memory and between it and the host's. */
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "device.h"

struct transfer {
    void *host, *other;          /* the host's buffer; the buffer of the opposite copy, or NULL */
    bool pinned;
};

static bool is_to_device(enum bench_kernel kernel)
{
    return kernel >= BENCH_COPY_TO_DEVICE_PINNED && kernel <= BENCH_COPY_TO_DEVICE_OVERLAP;
}

static int copy(struct job *job, bool to_device, void *device, void *host, cudaStream_t stream)
{
    size_t bytes = (size_t)job->one->bytes;

    return job_check(job, to_device ? cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, stream)
                                    : cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, stream), "a copy");
}

static int call_host(struct job *job, int set)
{
    struct transfer *transfer = job->state;
    bool to_device = is_to_device(job->one->kernel);

    if (job->overlapped && copy(job, !to_device, job_operand(job, set, 1), transfer->other, job->device->overlapping))
        return -1;
    return copy(job, to_device, job_operand(job, set, 0), transfer->host, job->device->stream);
}

static int call_device(struct job *job, int set)
{
    size_t bytes = (size_t)job->one->bytes / 2;          /* which counts both ways */

    return job_check(job, cudaMemcpyAsync(job_operand(job, set, 1), job_operand(job, set, 0), bytes,
                                          cudaMemcpyDeviceToDevice, job->device->stream), "a copy");
}

static void release(struct job *job)
{
    struct transfer *transfer = job->state;

    if (transfer->pinned) {
        cudaFreeHost(transfer->host);
        cudaFreeHost(transfer->other);
    } else {
        free(transfer->host);
    }
    free(transfer);
}

/* Written to, so that the pages are there. */
static int take_host(struct job *job, bool pinned, void **memory)
{
    size_t bytes = (size_t)job->one->bytes;

    if (pinned && job_check(job, cudaMallocHost(memory, bytes), "page-locked memory"))
        return -1;
    if (!pinned)
        *memory = xcalloc(bytes, 1);
    memset(*memory, 0x5A, bytes);
    return 0;
}

int transfer_open(struct job *job)
{
    enum bench_kernel kernel = job->one->kernel;
    struct transfer *transfer;

    if (kernel == BENCH_COPY_DEVICE) {
        job->call = call_device;
        return 0;
    }
    job->state = transfer = xcalloc(1, sizeof *transfer);
    job->close = release;
    job->call = call_host;
    transfer->pinned = kernel != BENCH_COPY_TO_DEVICE_PAGEABLE && kernel != BENCH_COPY_TO_HOST_PAGEABLE;
    job->host_bound = !transfer->pinned;
    job->overlapped = kernel == BENCH_COPY_TO_DEVICE_OVERLAP || kernel == BENCH_COPY_TO_HOST_OVERLAP;
    return take_host(job, transfer->pinned, &transfer->host) ||
           (job->overlapped && take_host(job, true, &transfer->other)) ? -1 : 0;
}
