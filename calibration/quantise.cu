// Quantises matrices of bf16 (or of normal numbers that it draws) to the formats whose values have scales. A thread
// takes 16 values, two loads of 16 bytes; the threads of a block of values find its largest one by shuffles, so that
// each value comes from memory once. Where the matrix has a factor, a kernel before finds its largest value, as in
// Transformer Engine's current scaling. Scales are written where the product expects them.
#include <cuda_fp8.h>
#if CUDART_VERSION >= 12080
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"      // in the toolkit's own header
#include <cuda_fp4.h>
#pragma GCC diagnostic pop
#endif

#include "device_kernels.h"
#include "pack.cuh"

namespace {

constexpr int held = 16, threads = 256, square_threads = 1024;

struct Stored {
    const Pack<__nv_bfloat16> *at;
    __device__ void load(long long i, float (&x)[held]) const
    {
        constexpr int count = Pack<__nv_bfloat16>::count;
#pragma unroll
        for (int half = 0; half < held / count; half++) {
            Pack<__nv_bfloat16> pack = at[i * (held / count) + half];
#pragma unroll
            for (int j = 0; j < count; j++)
                x[half * count + j] = widen(pack.at[j]);
        }
    }
};

struct Drawn {
    unsigned long long seed;
    __device__ void load(long long i, float (&x)[held]) const
    {
#pragma unroll
        for (int j = 0; j < held; j++)
            x[j] = normal(mix(mix(seed) + static_cast<unsigned long long>(i * held + j)));
    }
};

// Where the results go. `packs`: of 16 values, in all matrices.
struct Target {
    unsigned char *codes;
    void *scales;
    float *factor;
    unsigned packs, row_packs, rows, blocks;
    long long stride;            // scales of a matrix
    scale_layout layout;
};

// The bits of a positive number have the order of the number.
template <typename Source> __global__ void find_largest(Source from, unsigned packs, float *factor)
{
    float most = 0, x[held];

    for (unsigned i = first(); i < packs; i += step()) {
        from.load(i, x);
#pragma unroll
        for (int j = 0; j < held; j++)
            most = fmaxf(most, fabsf(x[j]));
    }
    most = block_all<Most>(most);
    if (threadIdx.x == 0)
        atomicMax(reinterpret_cast<int *>(factor + 1), __float_as_int(most));
}

__device__ inline unsigned char e4m3(float x)
{
    return __nv_cvt_float_to_fp8(x, __NV_SATFINITE, __NV_E4M3);
}

// How a format rounds and keeps scales. `lanes`: threads that share one.
template <bench_dtype dtype> struct Scale;
template <> struct Scale<BENCH_FP8> {
    static constexpr int lanes = 0;
    static constexpr bool factor = true;
};
template <> struct Scale<BENCH_FP8_BLOCK> {
    static constexpr int lanes = 128 / held;
    static constexpr bool factor = false;
    static __device__ float round(float x) { return x; }
    static __device__ void put(void *at, long long i, float x) { static_cast<float *>(at)[i] = x; }
};
template <> struct Scale<BENCH_MXFP8> {
    static constexpr int lanes = 32 / held;
    static constexpr bool factor = false;
    static __device__ float round(float x) { return power_above(x); }
    static __device__ void put(void *at, long long i, float x)
    {
        static_cast<unsigned char *>(at)[i] = static_cast<unsigned char>(__float_as_uint(x) >> 23);
    }
};
template <> struct Scale<BENCH_NVFP4> {
    static constexpr int lanes = 16 / held;
    static constexpr bool factor = true;
    static __device__ float round(float x) { return static_cast<float>(__nv_fp8_e4m3(x)); }
    static __device__ void put(void *at, long long i, float x) { static_cast<unsigned char *>(at)[i] = e4m3(x); }
};

template <bench_dtype dtype> __device__ inline void put_codes(unsigned char *at, long long i, const float (&x)[held])
{
    alignas(16) unsigned short pairs[held / 2];

#pragma unroll
    for (int j = 0; j < held / 2; j++)
        pairs[j] = __nv_cvt_float2_to_fp8x2(make_float2(x[2 * j], x[2 * j + 1]), __NV_SATFINITE, __NV_E4M3);
    reinterpret_cast<uint4 *>(at)[i] = *reinterpret_cast<const uint4 *>(pairs);
}

// Two codes a byte, the first in its lower half.
template <>
__device__ inline void put_codes<BENCH_NVFP4>(unsigned char *at, long long i, const float (&x)[held])
{
#if CUDART_VERSION >= 12080
    alignas(8) unsigned char pairs[held / 2];

#pragma unroll
    for (int j = 0; j < held / 2; j++)
        pairs[j] = __nv_cvt_float2_to_fp4x2(make_float2(x[2 * j], x[2 * j + 1]), __NV_E2M1, cudaRoundNearest);
    reinterpret_cast<uint2 *>(at)[i] = *reinterpret_cast<const uint2 *>(pairs);
#else
    (void)at, (void)i, (void)x;          // this toolkit does not know the format, and no case has it
#endif
}

// The scale of the block to which pack i belongs, written by the first of its threads. `square`: a block of threads has
// a square of 128 x 128 values.
template <bench_dtype dtype, bool square>
__device__ inline float find_scale(const float (&x)[held], float factor, unsigned i, bool inside, const Target &to)
{
    constexpr int lanes = Scale<dtype>::lanes;
    float most = 0;

#pragma unroll
    for (int j = 0; j < held; j++)
        most = fmaxf(most, fabsf(x[j]));
    if (square)
        most = block_all<Most>(most);
    else
#pragma unroll
        for (int lane = 1; lane < lanes; lane *= 2)
            most = fmaxf(most, __shfl_xor_sync(all_lanes, most, lane));
    float scale = Scale<dtype>::round(scale_of(dtype, most, factor));
    if (inside && threadIdx.x % (square ? square_threads : lanes) == 0) {
        unsigned row = i / to.row_packs, block = i % to.row_packs / lanes;
        Scale<dtype>::put(to.scales, row / to.rows * to.stride +
                                         scale_offset(to.layout, to.rows, to.blocks, row % to.rows, block), scale);
    }
    return scale;
}

// Grid: one dimension, a thread a pack; for squares (squares of a row, rows of squares).
template <bench_dtype dtype, bool square, typename Source>
__global__ void __launch_bounds__(square ? square_threads : threads) quantise(Source from, Target to)
{
    constexpr unsigned across = SQUARE_ROWS / held;
    unsigned i = square ? (blockIdx.y * SQUARE_ROWS + threadIdx.x / across) * to.row_packs + blockIdx.x * across +
                              threadIdx.x % across
                        : first();
    bool inside = i < to.packs;
    float x[held] = {}, factor = 1, scale = 1;

    if (inside)
        from.load(i, x);
    if (Scale<dtype>::factor) {
        factor = factor_of(dtype, to.factor[1]);
        if (i == 0)
            to.factor[0] = factor;
    }
    if constexpr (Scale<dtype>::lanes > 0)
        scale = find_scale<dtype, square>(x, factor, i, inside, to);
    float inverse = scale_inverse(scale, factor);
#pragma unroll
    for (int j = 0; j < held; j++)
        x[j] *= inverse;
    if (inside)
        put_codes<dtype>(to.codes, i, x);
}

template <bench_dtype dtype, typename Source>
cudaError_t run(const Source &from, const Target &to, cudaStream_t stream)
{
    unsigned blocks = (to.packs + threads - 1) / threads;

    if (Scale<dtype>::factor) {
        cudaError_t error = cudaMemsetAsync(to.factor + 1, 0, sizeof(float), stream);
        if (error)
            return error;
        find_largest<<<min(blocks, 2048u), threads, 0, stream>>>(from, to.packs, to.factor);
    }
    if (to.layout == SCALES_SQUARES) {
        dim3 grid(to.row_packs * held / SQUARE_ROWS, to.packs / to.row_packs / SQUARE_ROWS);
        quantise<BENCH_FP8_BLOCK, true><<<grid, square_threads, 0, stream>>>(from, to);
    } else {
        quantise<dtype, false><<<blocks, threads, 0, stream>>>(from, to);
    }
    return cudaGetLastError();
}

template <typename Source>
cudaError_t run_as(bench_dtype dtype, const Source &from, const Target &to, cudaStream_t stream)
{
    switch (dtype) {
    case BENCH_FP8: return run<BENCH_FP8>(from, to, stream);
    case BENCH_FP8_BLOCK: return run<BENCH_FP8_BLOCK>(from, to, stream);
    case BENCH_MXFP8: return run<BENCH_MXFP8>(from, to, stream);
    case BENCH_NVFP4: return run<BENCH_NVFP4>(from, to, stream);
    default: return cudaErrorInvalidValue;
    }
}

__global__ void multiply(float *product, const float *one, const float *other)
{
    *product = *one * *other;
}

}  // namespace

cudaError_t kernel_quantise(const quantised *matrices, void *const parts[PARTS], const void *from, uint64_t seed,
                            cudaStream_t stream)
{
    const bench_format *format = &bench_formats[matrices->dtype];
    int64_t rows = matrices->count * matrices->rows;
    Target to = {static_cast<unsigned char *>(parts[PART_CODES]), parts[PART_SCALES],
                 static_cast<float *>(parts[PART_FACTOR]), static_cast<unsigned>(rows * matrices->k / held),
                 static_cast<unsigned>(matrices->k / held), static_cast<unsigned>(matrices->rows),
                 static_cast<unsigned>(format->block > 0 ? scale_blocks(matrices->k, format->block) : 0),
                 quantised_scales(matrices) / matrices->count, quantised_layout(matrices)};

    // blocks of values lie within a row, and squares within a matrix
    if (matrices->k % held || (format->block > 0 && matrices->k % format->block) ||
        (to.layout == SCALES_SQUARES && matrices->rows % SQUARE_ROWS))
        return cudaErrorInvalidValue;
    if (from)
        return run_as(matrices->dtype, Stored{static_cast<const Pack<__nv_bfloat16> *>(from)}, to, stream);
    return run_as(matrices->dtype, Drawn{seed}, to, stream);
}

cudaError_t kernel_alpha(float *alpha, const float *one, const float *other, cudaStream_t stream)
{
    multiply<<<1, 1, 0, stream>>>(alpha, one, other);
    return cudaGetLastError();
}
