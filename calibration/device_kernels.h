/* device_kernels: dtsim's own kernels. Every function enqueues on the stream and returns the error of enqueueing.
 * Operands are as bench_operands() lists them. */
#ifndef DTSIM_DEVICE_KERNELS_H
#define DTSIM_DEVICE_KERNELS_H

#include <cuda_runtime_api.h>

#include "case.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The kernel of the case; cudaErrorInvalidValue if its format or shape is not supported (rows must be multiples of 16
 * bytes). `sms`: multiprocessors of the chip. `seed`: of dropout's random numbers. */
cudaError_t kernel_rows(const struct bench_case *one, void *const *operands, cudaStream_t stream);
cudaError_t kernel_flat(const struct bench_case *one, void *const *operands, int sms, uint64_t seed,
                        cudaStream_t stream);
bool kernel_is_rows(enum bench_kernel kernel);          /* which of the two it is */

/* Quantises matrices of bf16, or, where `from` is NULL, of normal numbers. `parts`: where their scales, factor and
 * codes go. cudaErrorInvalidValue: a row is not whole blocks. */
cudaError_t kernel_quantise(const struct quantised *matrices, void *const parts[PARTS], const void *from, uint64_t seed,
                            cudaStream_t stream);
/* *alpha = *one x *other, all on the device. */
cudaError_t kernel_alpha(float *alpha, const float *one, const float *other, cudaStream_t stream);
/* The first or, with `back`, the last kernel of a layer of experts: its rows into the order of experts, or their
 * results back. */
cudaError_t kernel_expert_rows(const struct bench_case *one, bool back, void *const *operands, cudaStream_t stream);

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
