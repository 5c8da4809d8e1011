/* device_kernels: what runs on the GPU and is dtsim's own. Every function enqueues on the stream and gives the error of
 * enqueueing. Operands are as bench_operands() lists them. */
#ifndef DTSIM_DEVICE_KERNELS_H
#define DTSIM_DEVICE_KERNELS_H

#include <cuda_runtime_api.h>

#include "case.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The kernel of the case; cudaErrorInvalidValue where its format or shape is not provided for (rows must be whole 16
 * bytes). `sms`: multiprocessors of the chip. `seed`: what dropout draws with. */
cudaError_t kernel_rows(const struct bench_case *one, void *const *operands, cudaStream_t stream);
cudaError_t kernel_flat(const struct bench_case *one, void *const *operands, int sms, uint64_t seed,
                        cudaStream_t stream);
bool kernel_is_rows(enum bench_kernel kernel);          /* which of the two it is */

cudaError_t kernel_fill(void *at, const struct operand *operand, uint64_t seed, cudaStream_t stream);
cudaError_t kernel_hold(uint64_t nanoseconds, cudaStream_t stream);
/* Cycles and nanoseconds of the same stretch of time. */
cudaError_t kernel_ticks(uint64_t ticks[2], cudaStream_t stream);
/* Values of a format as fp32. */
cudaError_t kernel_widen(float *out, const void *in, enum bench_dtype dtype, int64_t count, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
