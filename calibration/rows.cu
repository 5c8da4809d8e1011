// Kernels that need a whole row: softmax, the norms, cross-entropy. A block takes a row and keeps it in registers, 16
// bytes a load, so that each value comes from memory once; the long rows of cross-entropy are read as a stream instead.
#include "device_kernels.h"
#include "pack.cuh"

namespace {

// So many that each may have 128 registers.
constexpr int held_threads = 512;

// The row that the block works on: up to `most` packs a thread, `packs` in all, interleaved over the threads.
template <typename T, int most> struct Row {
    Pack<T> held[most];

    __device__ void load(const T *row, int packs)
    {
        const Pack<T> *from = reinterpret_cast<const Pack<T> *>(row);
#pragma unroll
        for (int i = 0; i < most; i++) {
            int at = threadIdx.x + i * blockDim.x;
            if (at < packs)
                held[i] = from[at];
        }
    }

    // use(value, column) for each value of this thread.
    template <typename Use> __device__ void each(int packs, Use use) const
    {
#pragma unroll
        for (int i = 0; i < most; i++) {
            int at = threadIdx.x + i * blockDim.x;
            if (at < packs)
#pragma unroll
                for (int j = 0; j < Pack<T>::count; j++)
                    use(widen(held[i].at[j]), at * Pack<T>::count + j, i, j);
        }
    }

    // Writes made(value, column) for each.
    template <typename Make> __device__ void write(T *row, int packs, Make make) const
    {
        Pack<T> *to = reinterpret_cast<Pack<T> *>(row);
#pragma unroll
        for (int i = 0; i < most; i++) {
            int at = threadIdx.x + i * blockDim.x;
            if (at < packs) {
                Pack<T> made;
#pragma unroll
                for (int j = 0; j < Pack<T>::count; j++)
                    made.at[j] = narrow<T>(make(widen(held[i].at[j]), at * Pack<T>::count + j, i, j));
                to[at] = made;
            }
        }
    }
};

// A pack of a vector that all rows share: not worth registers, it stays in the nearest cache.
template <typename T> __device__ inline Pack<T> shared_pack(const T *vector, int i)
{
    return reinterpret_cast<const Pack<T> *>(vector)[threadIdx.x + i * blockDim.x];
}

// What a kernel gets: operands in the order of bench_operands(), and the row's length.
struct Operands {
    void *at[OPERANDS_MAX];
    int n;
    template <typename T> __device__ T *as(int i) const { return static_cast<T *>(at[i]); }
    template <typename T> __device__ T *row(int i) const
    {
        return static_cast<T *>(at[i]) + static_cast<long long>(blockIdx.x) * n;
    }
};

template <typename T, int most> __global__ void __launch_bounds__(held_threads) softmax_forward(Operands with)
{
    Row<T, most> x;
    int packs = with.n / Pack<T>::count;
    float top = -INFINITY, sum = 0;

    x.load(with.row<const T>(0), packs);
    x.each(packs, [&](float value, int, int, int) { top = fmaxf(top, value); });
    top = block_all<Most>(top);
    x.each(packs, [&](float value, int, int, int) { sum += __expf(value - top); });
    sum = 1 / block_all<Sum>(sum);
    x.write(with.row<T>(1), packs, [&](float value, int, int, int) { return __expf(value - top) * sum; });
}

template <typename T, int most> __global__ void __launch_bounds__(held_threads) softmax_backward(Operands with)
{
    Row<T, most> y, dy;
    int packs = with.n / Pack<T>::count;
    float sum = 0;

    y.load(with.row<const T>(0), packs);
    dy.load(with.row<const T>(1), packs);
    y.each(packs, [&](float value, int, int i, int j) { sum += value * widen(dy.held[i].at[j]); });
    sum = block_all<Sum>(sum);
    y.write(with.row<T>(2), packs,
            [&](float value, int, int i, int j) { return value * (widen(dy.held[i].at[j]) - sum); });
}

// LayerNorm where `shift`, else RMSNorm.
template <typename T, int most, bool shift>
__global__ void __launch_bounds__(held_threads) norm_forward(Operands with)
{
    Row<T, most> x;
    const T *scale = with.as<const T>(1), *offset = with.as<const T>(2);
    int packs = with.n / Pack<T>::count;
    float mean = 0, squares = 0;

    x.load(with.row<const T>(0), packs);
    if (shift) {
        x.each(packs, [&](float value, int, int, int) { mean += value; });
        mean = block_all<Sum>(mean) / with.n;
    }
    x.each(packs, [&](float value, int, int, int) { squares += (value - mean) * (value - mean); });
    float inverse = rsqrtf(block_all<Sum>(squares) / with.n + static_cast<float>(BENCH_EPSILON));
    if (threadIdx.x == 0) {
        if (shift)
            with.as<float>(4)[blockIdx.x] = mean;
        with.as<float>(shift ? 5 : 3)[blockIdx.x] = inverse;
    }
    x.write(with.row<T>(shift ? 3 : 2), packs, [&](float value, int, int i, int j) {
        float unit = (value - mean) * inverse * widen(shared_pack(scale, i).at[j]);
        return shift ? unit + widen(shared_pack(offset, i).at[j]) : unit;
    });
}

template <typename T, int most, bool shift>
__global__ void __launch_bounds__(held_threads) norm_backward(Operands with)
{
    Row<T, most> x, dy;
    const T *scale = with.as<const T>(2);
    int packs = with.n / Pack<T>::count;
    float mean = shift ? with.as<const float>(3)[blockIdx.x] : 0, plain = 0, along = 0;
    float inverse = with.as<const float>(shift ? 4 : 3)[blockIdx.x];

    x.load(with.row<const T>(0), packs);
    dy.load(with.row<const T>(1), packs);
    x.each(packs, [&](float value, int, int i, int j) {
        float slope = widen(dy.held[i].at[j]) * widen(shared_pack(scale, i).at[j]);
        plain += slope;
        along += slope * (value - mean) * inverse;
    });
    if (shift)
        plain = block_all<Sum>(plain) / with.n;
    along = block_all<Sum>(along) / with.n;
    x.write(with.row<T>(shift ? 5 : 4), packs, [&](float value, int, int i, int j) {
        float slope = widen(dy.held[i].at[j]) * widen(shared_pack(scale, i).at[j]);
        return inverse * (slope - (shift ? plain : 0) - (value - mean) * inverse * along);
    });
}

constexpr int column_threads = 32, row_threads = 8;

// Gradients of scale and shift: blocks of 32 packs of columns by a group of rows; each leaves its sums in the scratch.
template <typename T, bool shift> __global__ void norm_columns(Operands with, int m, int rows)
{
    constexpr int count = Pack<T>::count;
    __shared__ float part[row_threads][column_threads][2 * count];
    const Pack<T> *x = with.as<const Pack<T>>(0), *dy = with.as<const Pack<T>>(1);
    int packs = with.n / count, column = blockIdx.x * column_threads + threadIdx.x;
    int end = min(m, static_cast<int>(blockIdx.y + 1) * rows);
    float sums[2 * count] = {};

    for (int row = blockIdx.y * rows + threadIdx.y; column < packs && row < end; row += row_threads) {
        Pack<T> value = x[static_cast<long long>(row) * packs + column];
        Pack<T> slope = dy[static_cast<long long>(row) * packs + column];
        float mean = shift ? with.as<const float>(3)[row] : 0, inverse = with.as<const float>(shift ? 4 : 3)[row];
#pragma unroll
        for (int j = 0; j < count; j++) {
            sums[j] += widen(slope.at[j]) * (widen(value.at[j]) - mean) * inverse;
            if (shift)
                sums[count + j] += widen(slope.at[j]);
        }
    }
#pragma unroll
    for (int j = 0; j < 2 * count; j++)
        part[threadIdx.y][threadIdx.x][j] = sums[j];
    __syncthreads();
    if (threadIdx.y > 0 || column >= packs)
        return;
    float *scratch = with.as<float>(shift ? 8 : 6);
    for (int j = 0; j < (shift ? 2 : 1) * count; j++) {
        float sum = 0;
        for (int i = 0; i < row_threads; i++)
            sum += part[i][threadIdx.x][j];
        scratch[(static_cast<long long>(j / count) * NORM_CHUNKS + blockIdx.y) * with.n + column * count + j % count] =
            sum;
    }
}

template <typename T, bool shift> __global__ void norm_totals(Operands with, int groups)
{
    int column = blockIdx.x * blockDim.x + threadIdx.x;

    for (int which = 0; column < with.n && which < (shift ? 2 : 1); which++) {
        const float *scratch = with.as<const float>(shift ? 8 : 6);
        float sum = 0;
        for (int i = 0; i < groups; i++)
            sum += scratch[static_cast<long long>(which * NORM_CHUNKS + i) * with.n + column];
        with.as<T>((shift ? 6 : 5) + which)[column] = narrow<T>(sum);
    }
}

// Maximum and sum in one pass: what has been summed shrinks whenever a larger value comes.
template <typename T> __global__ void cross_entropy_forward(Operands with)
{
    const T *row = with.row<const T>(0);
    const Pack<T> *x = reinterpret_cast<const Pack<T> *>(row);
    float top = -INFINITY, sum = 0;

    for (int at = threadIdx.x; at < with.n / Pack<T>::count; at += blockDim.x) {
        Pack<T> pack = x[at];
        float above = top;
#pragma unroll
        for (int j = 0; j < Pack<T>::count; j++)
            above = fmaxf(above, widen(pack.at[j]));
        sum *= __expf(top - above);
        top = above;
#pragma unroll
        for (int j = 0; j < Pack<T>::count; j++)
            sum += __expf(widen(pack.at[j]) - top);
    }
    float all = block_all<Most>(top);
    sum = block_all<Sum>(top > -INFINITY ? sum * __expf(top - all) : 0);
    if (threadIdx.x == 0) {
        float total = all + logf(sum);
        with.as<float>(2)[blockIdx.x] = total - widen(row[with.as<const int>(1)[blockIdx.x]]);
        with.as<float>(3)[blockIdx.x] = total;
    }
}

template <typename T> __global__ void cross_entropy_backward(Operands with)
{
    const Pack<T> *x = reinterpret_cast<const Pack<T> *>(with.row<const T>(0));
    Pack<T> *dx = reinterpret_cast<Pack<T> *>(with.row<T>(4));
    int right = with.as<const int>(1)[blockIdx.x];
    float total = with.as<const float>(2)[blockIdx.x], slope = with.as<const float>(3)[blockIdx.x];

    for (int at = threadIdx.x; at < with.n / Pack<T>::count; at += blockDim.x) {
        Pack<T> pack = x[at], made;
#pragma unroll
        for (int j = 0; j < Pack<T>::count; j++) {
            float share = __expf(widen(pack.at[j]) - total);
            made.at[j] = narrow<T>((at * Pack<T>::count + j == right ? share - 1 : share) * slope);
        }
        dx[at] = made;
    }
}

int whole_warps(int threads)
{
    return (threads + 31) / 32 * 32;
}

template <typename T, bool shift> void sum_columns(const Operands &with, int m, cudaStream_t stream)
{
    int groups = min(static_cast<int>(NORM_CHUNKS), (m + 2 * row_threads - 1) / (2 * row_threads));
    int rows = (m + groups - 1) / groups, packs = with.n / Pack<T>::count;
    dim3 grid((packs + column_threads - 1) / column_threads, (m + rows - 1) / rows);

    norm_columns<T, shift><<<grid, dim3(column_threads, row_threads), 0, stream>>>(with, m, rows);
    norm_totals<T, shift><<<(with.n + 127) / 128, 128, 0, stream>>>(with, static_cast<int>(grid.y));
}

// The kernels that keep rows in registers, `most` packs a thread.
template <typename T, int most>
void run_held(const bench_case *one, const Operands &with, int threads, cudaStream_t stream)
{
    int m = static_cast<int>(one->m);

    switch (one->kernel) {
    case BENCH_SOFTMAX_FORWARD: softmax_forward<T, most><<<m, threads, 0, stream>>>(with); break;
    case BENCH_SOFTMAX_BACKWARD: softmax_backward<T, most><<<m, threads, 0, stream>>>(with); break;
    case BENCH_LAYERNORM_FORWARD: norm_forward<T, most, true><<<m, threads, 0, stream>>>(with); break;
    case BENCH_RMSNORM_FORWARD: norm_forward<T, most, false><<<m, threads, 0, stream>>>(with); break;
    case BENCH_LAYERNORM_BACKWARD:
        norm_backward<T, most, true><<<m, threads, 0, stream>>>(with);
        sum_columns<T, true>(with, m, stream);
        break;
    default:
        norm_backward<T, most, false><<<m, threads, 0, stream>>>(with);
        sum_columns<T, false>(with, m, stream);
    }
}

template <typename T> cudaError_t run(const bench_case *one, const Operands &with, cudaStream_t stream)
{
    int packs = with.n / Pack<T>::count, m = static_cast<int>(one->m), streamed = min(1024, whole_warps(packs));

    if (with.n % Pack<T>::count)
        return cudaErrorInvalidValue;
    if (one->kernel == BENCH_CROSS_ENTROPY_FORWARD)
        cross_entropy_forward<T><<<m, streamed, 0, stream>>>(with);
    else if (one->kernel == BENCH_CROSS_ENTROPY_BACKWARD)
        cross_entropy_backward<T><<<m, streamed, 0, stream>>>(with);
    else if (packs <= 2 * held_threads)
        run_held<T, 2>(one, with, whole_warps((packs + 1) / 2), stream);
    else if (packs <= 8 * held_threads)
        run_held<T, 8>(one, with, min(held_threads, whole_warps((packs + 3) / 4)), stream);
    else
        return cudaErrorInvalidValue;
    return cudaGetLastError();
}

}  // namespace

bool kernel_is_rows(bench_kernel kernel)
{
    return (kernel >= BENCH_SOFTMAX_FORWARD && kernel <= BENCH_RMSNORM_BACKWARD) ||
           kernel == BENCH_CROSS_ENTROPY_FORWARD || kernel == BENCH_CROSS_ENTROPY_BACKWARD;
}

cudaError_t kernel_rows(const bench_case *one, void *const *operands, cudaStream_t stream)
{
    Operands with;

    for (int i = 0; i < OPERANDS_MAX; i++)
        with.at[i] = operands[i];
    with.n = static_cast<int>(one->n);
    switch (one->dtype) {
    case BENCH_FP32: return run<float>(one, with, stream);
    case BENCH_FP16: return run<__half>(one, with, stream);
    case BENCH_BF16: return run<__nv_bfloat16>(one, with, stream);
    default: return cudaErrorInvalidValue;
    }
}
