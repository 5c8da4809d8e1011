// Element-wise kernels, embedding, Adam, the sum of a vector. 16 bytes a load; threads stride over the grid, of which
// there is as much as fits on the chip at once.
#include "device_kernels.h"
#include "pack.cuh"

namespace {

struct Operands {
    void *at[OPERANDS_MAX];
    unsigned m, n;
    template <typename T> __device__ T *as(int i) const { return static_cast<T *>(at[i]); }
};

constexpr int flat_threads = 256;
constexpr float kept = 1 - static_cast<float>(BENCH_DROPOUT);

__device__ inline float tanh_of(float x)
{
    return 1 - 2 / (1 + __expf(2 * x));
}

constexpr float gelu_c = 0.7978845608028654f, gelu_cubic = 0.044715f;

__device__ inline float gelu(float x)
{
    return 0.5f * x * (1 + tanh_of(gelu_c * (x + gelu_cubic * x * x * x)));
}

__device__ inline float gelu_slope(float x)
{
    float t = tanh_of(gelu_c * (x + gelu_cubic * x * x * x));
    return 0.5f * (1 + t) + 0.5f * x * (1 - t * t) * gelu_c * (1 + 3 * gelu_cubic * x * x);
}

template <typename T, bool backward> __global__ void bias_gelu(Operands with)
{
    constexpr int count = Pack<T>::count;
    unsigned width = with.n / count, packs = with.m * width;

    for (unsigned i = first(); i < packs; i += step()) {
        Pack<T> x = with.as<const Pack<T>>(0)[i], bias = with.as<const Pack<T>>(1)[i % width], made, dy;
        if (backward)
            dy = with.as<const Pack<T>>(2)[i];
#pragma unroll
        for (int j = 0; j < count; j++) {
            float sum = widen(x.at[j]) + widen(bias.at[j]);
            made.at[j] = narrow<T>(backward ? widen(dy.at[j]) * gelu_slope(sum) : gelu(sum));
        }
        with.as<Pack<T>>(backward ? 3 : 2)[i] = made;
    }
}

template <typename T, bool backward> __global__ void swiglu(Operands with)
{
    constexpr int count = Pack<T>::count;
    unsigned width = with.n / count, packs = with.m * width;

    for (unsigned i = first(); i < packs; i += step()) {
        unsigned at = i / width * 2 * width + i % width;
        Pack<T> gate = with.as<const Pack<T>>(0)[at], value = with.as<const Pack<T>>(0)[at + width], dy, made, other;
        if (backward)
            dy = with.as<const Pack<T>>(1)[i];
#pragma unroll
        for (int j = 0; j < count; j++) {
            float g = widen(gate.at[j]), v = widen(value.at[j]), s = 1 / (1 + __expf(-g));
            if (backward) {
                float slope = widen(dy.at[j]);
                made.at[j] = narrow<T>(slope * v * s * (1 + g * (1 - s)));
                other.at[j] = narrow<T>(slope * g * s);
            } else {
                made.at[j] = narrow<T>(g * s * v);
            }
        }
        with.as<Pack<T>>(backward ? 2 : 1)[backward ? at : i] = made;
        if (backward)
            with.as<Pack<T>>(2)[at + width] = other;
    }
}

// Philox 4x32 with ten rounds (Salmon et al. 2011, section 3.3), which frameworks draw their masks with.
__device__ inline uint4 philox(uint4 counter, uint2 key)
{
#pragma unroll
    for (int i = 0; i < 10; i++) {
        unsigned high0 = __umulhi(0xD2511F53u, counter.x), low0 = 0xD2511F53u * counter.x;
        unsigned high1 = __umulhi(0xCD9E8D57u, counter.z), low1 = 0xCD9E8D57u * counter.z;
        counter = make_uint4(high1 ^ counter.y ^ key.x, low1, high0 ^ counter.w ^ key.y, low0);
        key.x += 0x9E3779B9u;
        key.y += 0xBB67AE85u;
    }
    return counter;
}

template <typename T> __global__ void dropout_forward(Operands with, unsigned long long seed)
{
    constexpr int count = Pack<T>::count;
    struct alignas(count) Mask { unsigned char at[count]; };
    unsigned width = with.n / count, packs = with.m * width, limit = static_cast<unsigned>(kept * 4294967295.0f);
    uint2 key = make_uint2(static_cast<unsigned>(seed), static_cast<unsigned>(seed >> 32));

    for (unsigned i = first(); i < packs; i += step()) {
        Pack<T> x = with.as<const Pack<T>>(0)[i], bias = with.as<const Pack<T>>(1)[i % width];
        Pack<T> residual = with.as<const Pack<T>>(2)[i], made;
        Mask mask;
#pragma unroll
        for (int quad = 0; quad < count / 4; quad++) {
            uint4 drawn = philox(make_uint4(i, static_cast<unsigned>(quad), 0, 0), key);
            unsigned numbers[4] = {drawn.x, drawn.y, drawn.z, drawn.w};
#pragma unroll
            for (int k = 0; k < 4; k++) {
                int j = 4 * quad + k;
                bool keep = numbers[k] < limit;
                float branch = (widen(x.at[j]) + widen(bias.at[j])) / kept;
                mask.at[j] = keep;
                made.at[j] = narrow<T>(widen(residual.at[j]) + (keep ? branch : 0));
            }
        }
        with.as<Pack<T>>(3)[i] = made;
        with.as<Mask>(4)[i] = mask;
    }
}

template <typename T> __global__ void dropout_backward(Operands with)
{
    constexpr int count = Pack<T>::count;
    struct alignas(count) Mask { unsigned char at[count]; };
    unsigned packs = with.m * (with.n / count);

    for (unsigned i = first(); i < packs; i += step()) {
        Pack<T> dy = with.as<const Pack<T>>(0)[i], made;
        Mask mask = with.as<const Mask>(1)[i];
#pragma unroll
        for (int j = 0; j < count; j++)
            made.at[j] = narrow<T>(mask.at[j] ? widen(dy.at[j]) / kept : 0);
        with.as<Pack<T>>(2)[i] = made;
    }
}

// A block a row.
template <typename T> __global__ void embedding_forward(Operands with)
{
    unsigned width = with.n / Pack<T>::count;
    const Pack<T> *from = with.as<const Pack<T>>(0) + static_cast<long long>(with.as<const int>(1)[blockIdx.x]) * width;
    Pack<T> *to = with.as<Pack<T>>(2) + static_cast<long long>(blockIdx.x) * width;

    for (unsigned i = threadIdx.x; i < width; i += blockDim.x)
        to[i] = from[i];
}

template <typename T> __global__ void embedding_backward(Operands with)
{
    unsigned width = with.n / Pack<T>::count;
    const Pack<T> *from = with.as<const Pack<T>>(0) + static_cast<long long>(blockIdx.x) * width;
    float *to = with.as<float>(2) + static_cast<long long>(with.as<const int>(1)[blockIdx.x]) * with.n;

    for (unsigned i = threadIdx.x; i < width; i += blockDim.x) {
        Pack<T> pack = from[i];
#pragma unroll
        for (int j = 0; j < Pack<T>::count; j++)
            atomicAdd(&to[i * Pack<T>::count + j], widen(pack.at[j]));
    }
}

template <typename T> struct alignas(4 * sizeof(T)) Quad { T at[4]; };

// `first_moment` and `second_moment` are the bias corrections, one over (1 - beta^step).
template <typename T> __global__ void adam(Operands with, float first_moment, float second_moment)
{
    constexpr float rate = ADAM_RATE, beta1 = ADAM_BETA1, beta2 = ADAM_BETA2, epsilon = ADAM_EPSILON;
    constexpr float decay = ADAM_DECAY;

    for (unsigned i = first(); i < with.m / 4; i += step()) {
        Quad<T> g = with.as<const Quad<T>>(0)[i], copy;
        Quad<float> p = with.as<Quad<float>>(1)[i], m = with.as<Quad<float>>(2)[i], v = with.as<Quad<float>>(3)[i];
#pragma unroll
        for (int j = 0; j < 4; j++) {
            float slope = widen(g.at[j]);
            m.at[j] = beta1 * m.at[j] + (1 - beta1) * slope;
            v.at[j] = beta2 * v.at[j] + (1 - beta2) * slope * slope;
            p.at[j] -= rate * (m.at[j] * first_moment / (sqrtf(v.at[j] * second_moment) + epsilon) + decay * p.at[j]);
            copy.at[j] = narrow<T>(p.at[j]);
        }
        with.as<Quad<float>>(1)[i] = p;
        with.as<Quad<float>>(2)[i] = m;
        with.as<Quad<float>>(3)[i] = v;
        with.as<Quad<T>>(4)[i] = copy;
    }
}

template <typename T> __global__ void reduction(Operands with)
{
    float sum = 0;

    for (unsigned i = first(); i < with.m / Pack<T>::count; i += step()) {
        Pack<T> pack = with.as<const Pack<T>>(0)[i];
#pragma unroll
        for (int j = 0; j < Pack<T>::count; j++)
            sum += widen(pack.at[j]);
    }
    sum = block_all<Sum>(sum);
    if (threadIdx.x == 0)
        atomicAdd(with.as<float>(1), sum);
}

__global__ void nothing() {}

// Blocks for so many threads' work; not more than fit on the chip at once (2048 threads a multiprocessor).
unsigned blocks_for(unsigned long long work, int sms)
{
    unsigned long long blocks = (work + flat_threads - 1) / flat_threads, most = 8ull * static_cast<unsigned>(sms);
    return static_cast<unsigned>(blocks < 1 ? 1 : blocks < most ? blocks : most);
}

float correction(double beta)
{
    double power = 1;
    for (int i = 0; i < ADAM_STEP; i++)
        power *= beta;
    return static_cast<float>(1 / (1 - power));
}

template <typename T>
cudaError_t run(const bench_case *one, const Operands &with, int sms, uint64_t seed, cudaStream_t stream)
{
    constexpr unsigned count = Pack<T>::count;
    unsigned long long values = static_cast<unsigned long long>(one->m) * (one->n > 0 ? one->n : 1);
    unsigned grid = blocks_for(values / count, sms), m = with.m;
    const int threads = flat_threads;

    if (one->n > 0 ? one->n % count : one->m % 8)
        return cudaErrorInvalidValue;
    switch (one->kernel) {
    case BENCH_GELU_FORWARD: bias_gelu<T, false><<<grid, threads, 0, stream>>>(with); break;
    case BENCH_GELU_BACKWARD: bias_gelu<T, true><<<grid, threads, 0, stream>>>(with); break;
    case BENCH_SWIGLU_FORWARD: swiglu<T, false><<<grid, threads, 0, stream>>>(with); break;
    case BENCH_SWIGLU_BACKWARD: swiglu<T, true><<<grid, threads, 0, stream>>>(with); break;
    case BENCH_DROPOUT_FORWARD: dropout_forward<T><<<grid, threads, 0, stream>>>(with, seed); break;
    case BENCH_DROPOUT_BACKWARD: dropout_backward<T><<<grid, threads, 0, stream>>>(with); break;
    case BENCH_EMBEDDING_FORWARD: embedding_forward<T><<<m, threads, 0, stream>>>(with); break;
    case BENCH_EMBEDDING_BACKWARD: embedding_backward<T><<<m, threads, 0, stream>>>(with); break;
    case BENCH_ADAM:
        adam<T><<<blocks_for(values / 4, sms), threads, 0, stream>>>(with, correction(ADAM_BETA1),
                                                                     correction(ADAM_BETA2));
        break;
    case BENCH_REDUCTION: reduction<T><<<grid, threads, 0, stream>>>(with); break;
    default: return cudaErrorInvalidValue;
    }
    return cudaGetLastError();
}

}  // namespace

cudaError_t kernel_flat(const bench_case *one, void *const *operands, int sms, uint64_t seed, cudaStream_t stream)
{
    Operands with;

    if (one->kernel == BENCH_LAUNCH) {
        nothing<<<1, 32, 0, stream>>>();
        return cudaGetLastError();
    }
    for (int i = 0; i < OPERANDS_MAX; i++)
        with.at[i] = operands[i];
    with.m = static_cast<unsigned>(one->m);
    with.n = static_cast<unsigned>(one->n);
    switch (one->dtype) {
    case BENCH_FP32: return run<float>(one, with, sms, seed, stream);
    case BENCH_FP16: return run<__half>(one, with, sms, seed, stream);
    case BENCH_BF16: return run<__nv_bfloat16>(one, with, sms, seed, stream);
    default: return cudaErrorInvalidValue;
    }
}
