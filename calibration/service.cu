// What serves the measurements: fills operands, holds a stream, reads clocks, converts formats.
#include <cuda_fp8.h>

#include "device_kernels.h"
#include "pack.cuh"

namespace {

constexpr int threads = 256, blocks = 2048;

__device__ inline float drawn(operand_fill how, double value, unsigned long long bits)
{
    float x = normal(bits);

    switch (how) {
    case FILL_NORMAL: return x * static_cast<float>(value);
    case FILL_SQUARE: return x * x;
    case FILL_MASK: return uniform(static_cast<unsigned>(bits)) < value;
    case FILL_VALUE: return static_cast<float>(value);
    default: return 0;
    }
}

// An index below 2^31 must not go through fp32.
__device__ inline void put(int *at, operand_fill, double value, unsigned long long bits)
{
    *at = static_cast<int>((bits >> 33) % static_cast<unsigned long long>(value));
}

__device__ inline void put(unsigned char *at, operand_fill how, double value, unsigned long long bits)
{
    *at = static_cast<unsigned char>(drawn(how, value, bits));
}

__device__ inline void put(__nv_fp8_e4m3 *at, operand_fill how, double value, unsigned long long bits)
{
    *at = __nv_fp8_e4m3(drawn(how, value, bits));
}

template <typename T>
__device__ inline void put(T *at, operand_fill how, double value, unsigned long long bits)
{
    *at = narrow<T>(drawn(how, value, bits));
}

template <typename T>
__global__ void fill(T *at, operand_fill how, double value, long long count, unsigned long long seed)
{
    for (long long i = first(); i < count; i += step())
        put(&at[i], how, value, mix(mix(seed) + static_cast<unsigned long long>(i)));
}

__device__ inline unsigned long long nanoseconds()
{
    unsigned long long time;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
    return time;
}

__global__ void hold(unsigned long long duration)
{
    unsigned long long begin = nanoseconds();
    while (nanoseconds() - begin < duration)
        ;
}

__global__ void tick(unsigned long long *ticks)
{
    constexpr unsigned long long stretch = 1000000;
    unsigned long long begin = nanoseconds(), cycles = clock64();

    while (nanoseconds() - begin < stretch)
        ;
    ticks[0] = clock64() - cycles;
    ticks[1] = nanoseconds() - begin;
}

__device__ inline float wide(int x) { return static_cast<float>(x); }
__device__ inline float wide(unsigned char x) { return x; }
__device__ inline float wide(__nv_fp8_e4m3 x) { return static_cast<float>(x); }
template <typename T> __device__ inline float wide(T x) { return widen(x); }

template <typename T> __global__ void widen_all(float *out, const T *in, long long count)
{
    for (long long i = first(); i < count; i += step())
        out[i] = wide(in[i]);
}

// 2^(code - 127).
__global__ void widen_e8m0(float *out, const unsigned char *in, long long count)
{
    for (long long i = first(); i < count; i += step())
        out[i] = ldexpf(1, static_cast<int>(in[i]) - 127);
}

// Two codes a byte, the first in its lower half: sign, two bits of the exponent, one of the mantissa.
__global__ void widen_e2m1(float *out, const unsigned char *in, long long count)
{
    for (long long i = first(); i < count; i += step()) {
        int code = in[i / 2] >> i % 2 * 4, size = code & 7;
        float value = size < 2 ? 0.5f * static_cast<float>(size) : ldexpf(1 + 0.5f * static_cast<float>(size & 1),
                                                                          size / 2 - 1);
        out[i] = code & 8 ? -value : value;
    }
}

template <typename T> cudaError_t fill_as(void *at, const operand *operand, uint64_t seed, cudaStream_t stream)
{
    fill<T><<<blocks, threads, 0, stream>>>(static_cast<T *>(at), operand->fill, operand->value,
                                                      operand->count, seed);
    return cudaGetLastError();
}

template <typename T> cudaError_t widen_as(float *out, const void *in, int64_t count, cudaStream_t stream)
{
    widen_all<T><<<blocks, threads, 0, stream>>>(out, static_cast<const T *>(in), count);
    return cudaGetLastError();
}

}  // namespace

cudaError_t kernel_fill(void *at, const operand *operand, uint64_t seed, cudaStream_t stream)
{
    if (operand->count == 0 || operand->dtype == BENCH_E2M1)     // codes are written with their scales, or are results
        return cudaSuccess;
    switch (operand->dtype) {
    case BENCH_FP32: case BENCH_TF32: return fill_as<float>(at, operand, seed, stream);
    case BENCH_FP16: return fill_as<__half>(at, operand, seed, stream);
    case BENCH_BF16: return fill_as<__nv_bfloat16>(at, operand, seed, stream);
    case BENCH_FP8: return fill_as<__nv_fp8_e4m3>(at, operand, seed, stream);
    case BENCH_INT32: return fill_as<int>(at, operand, seed, stream);
    case BENCH_BYTE: case BENCH_E8M0: return fill_as<unsigned char>(at, operand, seed, stream);
    default: return cudaErrorInvalidValue;
    }
}

cudaError_t kernel_hold(uint64_t duration, cudaStream_t stream)
{
    hold<<<1, 1, 0, stream>>>(duration);
    return cudaGetLastError();
}

cudaError_t kernel_ticks(uint64_t ticks[2], cudaStream_t stream)
{
    tick<<<1, 1, 0, stream>>>(reinterpret_cast<unsigned long long *>(ticks));
    return cudaGetLastError();
}

cudaError_t kernel_widen(float *out, const void *in, bench_dtype dtype, int64_t count, cudaStream_t stream)
{
    switch (dtype) {
    case BENCH_FP32: case BENCH_TF32: return widen_as<float>(out, in, count, stream);
    case BENCH_FP16: return widen_as<__half>(out, in, count, stream);
    case BENCH_BF16: return widen_as<__nv_bfloat16>(out, in, count, stream);
    case BENCH_FP8: return widen_as<__nv_fp8_e4m3>(out, in, count, stream);
    case BENCH_INT32: return widen_as<int>(out, in, count, stream);
    case BENCH_BYTE: return widen_as<unsigned char>(out, in, count, stream);
    case BENCH_E8M0:
        widen_e8m0<<<blocks, threads, 0, stream>>>(out, static_cast<const unsigned char *>(in), count);
        return cudaGetLastError();
    case BENCH_E2M1:
        widen_e2m1<<<blocks, threads, 0, stream>>>(out, static_cast<const unsigned char *>(in), count);
        return cudaGetLastError();
    default: return cudaErrorInvalidValue;
    }
}
