// pack: 16 bytes of values at a time, conversions, sums over a warp and a block.
#ifndef DTSIM_PACK_CUH
#define DTSIM_PACK_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>

template <typename T> struct alignas(16) Pack {
    static constexpr int count = 16 / sizeof(T);
    T at[count];
};

__device__ inline float widen(float x) { return x; }
__device__ inline float widen(__half x) { return __half2float(x); }
__device__ inline float widen(__nv_bfloat16 x) { return __bfloat162float(x); }

template <typename T> __device__ inline T narrow(float x);
template <> __device__ inline float narrow<float>(float x) { return x; }
template <> __device__ inline __half narrow<__half>(float x) { return __float2half_rn(x); }
template <> __device__ inline __nv_bfloat16 narrow<__nv_bfloat16>(float x) { return __float2bfloat16_rn(x); }

struct Sum {
    static __device__ float none() { return 0; }
    static __device__ float of(float a, float b) { return a + b; }
};
struct Most {
    static __device__ float none() { return -INFINITY; }
    static __device__ float of(float a, float b) { return fmaxf(a, b); }
};

// The thread's first index, and the step to its next one. Packs of all cases number less than 2^32.
__device__ inline unsigned first() { return blockIdx.x * blockDim.x + threadIdx.x; }
__device__ inline unsigned step() { return gridDim.x * blockDim.x; }

constexpr unsigned all_lanes = 0xffffffffu;

template <typename Op> __device__ inline float warp_all(float x)
{
    for (int lane = 16; lane > 0; lane /= 2)
        x = Op::of(x, __shfl_xor_sync(all_lanes, x, lane));
    return x;
}

// The same result in all threads of the block, which is whole warps, 32 of them at most. May be called again at once.
template <typename Op> __device__ inline float block_all(float x)
{
    __shared__ float part[32];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = blockDim.x / 32;

    x = warp_all<Op>(x);
    if (warps == 1)
        return x;
    __syncthreads();                     // the part of an earlier call has been read
    if (lane == 0)
        part[warp] = x;
    __syncthreads();
    return warp_all<Op>(lane < warps ? part[lane] : Op::none());
}

// A number for every (counter, seed): splitmix64's mixing.
__device__ inline unsigned long long mix(unsigned long long z)
{
    z += 0x9E3779B97F4A7C15ull;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ z >> 27) * 0x94D049BB133111EBull;
    return z ^ z >> 31;
}

__device__ inline float uniform(unsigned bits)
{
    return (static_cast<float>(bits) + 0.5f) * 0x1p-32f;
}

// Two numbers of one draw make a normal one, with mean 0 and deviation 1 (Box, Muller 1958).
__device__ inline float normal(unsigned long long bits)
{
    float u = uniform(static_cast<unsigned>(bits)), v = uniform(static_cast<unsigned>(bits >> 32));
    return sqrtf(-2 * __logf(fminf(u, 0.99999994f))) * __cosf(6.2831853f * v);
}

#endif
