/* Jobs that run dtsim's own kernels. */
#include "device.h"
#include "device_kernels.h"

static int call(struct job *job, int set)
{
    void *operands[OPERANDS_MAX] = {NULL};
    const struct device *device = job->device;
    cudaError_t error;

    for (int i = 0; i < job->noperands; i++)
        operands[i] = job_operand(job, set, i);
    if (kernel_is_rows(job->one->kernel))
        error = kernel_rows(job->one, operands, device->stream);
    else
        error = kernel_flat(job->one, operands, device->sms, device->seed + (uint64_t)set, device->stream);
    return job_check(job, error, "a kernel");
}

int kernels_open(struct job *job)
{
    job->call = call;
    return 0;
}
