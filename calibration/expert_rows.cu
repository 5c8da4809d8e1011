// Rows of tokens into the order of experts, and the experts' results back, weighted and summed. A block has a row and
// moves 16 bytes a load.
#include "device_kernels.h"
#include "pack.cuh"

namespace {

using Values = Pack<__nv_bfloat16>;
constexpr int row_threads = 256;

// The rows of a layer: `packs` of 16 bytes each; `each` copies of a token.
struct Rows {
    unsigned packs, each;
    long long experts, all;
    __device__ long long of(long long copy) const { return bench_expert_row(copy, experts, all) * packs; }
};

__global__ void permute(const Values *tokens, Values *rows, Rows shape)
{
    const Values *from = tokens + static_cast<long long>(blockIdx.x / shape.each) * shape.packs;
    Values *to = rows + shape.of(blockIdx.x);

    for (unsigned i = threadIdx.x; i < shape.packs; i += blockDim.x)
        to[i] = from[i];
}

__global__ void combine(const Values *results, const float *shares, Values *sums, Rows shape)
{
    long long copy = static_cast<long long>(blockIdx.x) * shape.each;

    for (unsigned i = threadIdx.x; i < shape.packs; i += blockDim.x) {
        float sum[Values::count] = {};
        Values made;
        for (unsigned j = 0; j < shape.each; j++) {
            Values pack = results[shape.of(copy + j) + i];
            float share = shares[copy + j];
#pragma unroll
            for (int value = 0; value < Values::count; value++)
                sum[value] += share * widen(pack.at[value]);
        }
#pragma unroll
        for (int value = 0; value < Values::count; value++)
            made.at[value] = narrow<__nv_bfloat16>(sum[value]);
        sums[static_cast<long long>(blockIdx.x) * shape.packs + i] = made;
    }
}

}  // namespace

cudaError_t kernel_expert_rows(const bench_case *one, bool back, void *const *operands, cudaStream_t stream)
{
    int64_t each = bench_top_k(one->batch);
    Rows shape = {static_cast<unsigned>(one->k / Values::count), static_cast<unsigned>(each), one->batch, one->m};

    if (one->k % Values::count || one->m % one->batch || one->m % each)
        return cudaErrorInvalidValue;
    if (back)
        combine<<<static_cast<unsigned>(one->m / each), row_threads, 0, stream>>>(
            static_cast<const Values *>(operands[MOE_RESULTS]), static_cast<const float *>(operands[MOE_SHARES]),
            static_cast<Values *>(operands[MOE_OUT]), shape);
    else
        permute<<<static_cast<unsigned>(one->m), row_threads, 0, stream>>>(
            static_cast<const Values *>(operands[MOE_TOKENS]), static_cast<Values *>(operands[MOE_ROWS]), shape);
    return cudaGetLastError();
}
