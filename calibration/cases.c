/* The shapes that are measured, and their order. */
#include <math.h>
#include <stdlib.h>

#include "base/base.h"
#include "case_list.h"

bool bench_case_wanted(const struct bench_limits *limits, const struct bench_case *one)
{
    if (limits->wanted && !limits->wanted[one->kernel][one->dtype])
        return false;
    if (one->dtype == BENCH_BF16 && (one->kernel == BENCH_MATMUL_GROUPED || one->kernel == BENCH_MOE))
        return limits->bf16 && limits->grouped;
    switch (one->dtype) {
    case BENCH_TF32: return limits->tf32;
    case BENCH_BF16: return limits->bf16;
    case BENCH_FP8: return limits->fp8;
    case BENCH_FP8_BLOCK: return limits->fp8_block;
    case BENCH_MXFP8: return limits->mxfp8;
    case BENCH_NVFP4: return limits->nvfp4;
    default: return true;
    }
}

static bool is_possible(const struct bench_limits *limits, const struct bench_case *one)
{
    bool fused = one->kernel >= BENCH_ATTENTION_FORWARD && one->kernel <= BENCH_ATTENTION_BACKWARD_CAUSAL;

    return bench_case_wanted(limits, one) && (!fused || limits->flash) && bench_case_memory(one) <= limits->memory;
}

void case_add(struct case_kind *kind, struct bench_case one)
{
    if (is_possible(kind->limits, &one))
        *GROW(&kind->cases) = one;
}

enum bench_dtype case_half(const struct bench_limits *limits)
{
    return limits->bf16 ? BENCH_BF16 : BENCH_FP16;
}

double case_most_flop(enum bench_dtype dtype)
{
    return dtype == BENCH_FP32 ? 2e12 : dtype == BENCH_TF32 ? 8e12 : 20e12;
}

/* Values with scales exist only in one layout, and in multiples of some size. */
static void add_product(struct case_kind *kind, struct bench_case one)
{
    int64_t multiple = bench_is_narrow(one.dtype) ? bench_formats[one.dtype].multiple : 1;

    if (one.m % multiple || one.n % multiple || one.k % multiple)
        return;
    if (bench_is_narrow(one.dtype))
        one.layout = BENCH_LAYOUT_NT;
    if (bench_case_flop(&one) <= case_most_flop(one.dtype))
        case_add(kind, one);
}

static void add_matmul(struct case_kind *kind, enum bench_dtype dtype, enum bench_layout layout, int64_t batch,
                       int64_t m, int64_t n, int64_t k)
{
    add_product(kind, (struct bench_case){BENCH_MATMUL, dtype, layout, batch, m, n, k, 0});
}

/* Y = X W^T with the weight as frameworks keep it (out x in), dX = dY W, dW = dY^T X. */
static void add_linear(struct case_kind *kind, enum bench_dtype dtype, int64_t rows, int64_t in, int64_t out)
{
    add_matmul(kind, dtype, BENCH_LAYOUT_NT, 1, rows, out, in);
    add_matmul(kind, dtype, BENCH_LAYOUT_NN, 1, rows, in, out);
    add_matmul(kind, dtype, BENCH_LAYOUT_TN, 1, out, in, rows);
}

/* Hidden sizes of published models, from GPT-2 medium to the 1T parameters of Narayanan et al. 2021 (table 1); the
 * inner size of a gated MLP where the model has one (Llama 2 and 3: Touvron et al. 2023, Dubey et al. 2024). */
static const struct { int64_t hidden, gated; } widths[] = {
    {1024, 0}, {1600, 0}, {2048, 5632}, {2304, 0}, {3072, 8192}, {4096, 11008}, {4096, 14336}, {5120, 13824},
    {6144, 0}, {8192, 28672}, {10240, 0}, {12288, 0}, {16384, 53248}, {20480, 0}, {25600, 0},
};
static const int64_t token_counts[] = {512, 1024, 2048, 4096, 8192, 16384};

/* The four products of a layer, each split over 1 to 8 GPUs (Shoeybi et al. 2019, section 3), and the output layer. */
static void list_layers(struct case_kind *kind, enum bench_dtype dtype)
{
    for (size_t w = 0; w < COUNT(widths); w++)
        for (size_t i = 0; i < COUNT(token_counts); i++)
            for (int64_t split = 1; split <= 8; split *= 2) {
                int64_t hidden = widths[w].hidden, part = hidden / split, rows = token_counts[i];

                add_linear(kind, dtype, rows, hidden, 3 * part);
                add_linear(kind, dtype, rows, part, hidden);
                if (widths[w].gated > 0) {
                    add_linear(kind, dtype, rows, hidden, 2 * widths[w].gated / split);
                    add_linear(kind, dtype, rows, widths[w].gated / split, hidden);
                } else {
                    add_linear(kind, dtype, rows, hidden, 4 * part);
                    add_linear(kind, dtype, rows, 4 * part, hidden);
                }
                add_linear(kind, dtype, rows, hidden, BENCH_VOCABULARY / split);
            }
}

double halton(uint64_t i, unsigned base)
{
    double value = 0, digit = 1;

    for (; i > 0; i /= base) {
        digit /= base;
        value += digit * (double)(i % base);
    }
    return value;
}

/* Log-uniform from low to high, a multiple of `step`. */
static int64_t spread(double share, double low, double high, int64_t step)
{
    int64_t steps = (int64_t)round(low * pow(high / low, share) / (double)step);

    return (steps > 0 ? steps : 1) * step;
}

/* Shapes between those of models, multiples of `step`: samples spread evenly over the logarithms of m, n and k. */
static void list_filling(struct case_kind *kind, enum bench_kernel kernel, enum bench_dtype dtype, int64_t step,
                         uint64_t count)
{
    static const enum bench_layout layouts[] = {BENCH_LAYOUT_NT, BENCH_LAYOUT_NN, BENCH_LAYOUT_TN};

    for (uint64_t i = 1; i <= count; i++) {
        add_product(kind, (struct bench_case){kernel, dtype, layouts[i % COUNT(layouts)], 1,
                                              spread(halton(i, 2), 16, 32768, step),
                                              spread(halton(i, 3), 64, 32768, step),
                                              spread(halton(i, 5), 64, 32768, step), 0});
    }
}

/* Products of Llama 3 70B's MLP and of their gradients: as large as in training, and much larger than the cache. In
 * formats other than the usual one only the forward's, because each takes seconds. */
static void list_sustained(struct case_kind *kind, enum bench_dtype dtype)
{
    static const struct { enum bench_layout layout; int64_t m, n, k; } products[] = {
        {BENCH_LAYOUT_NT, 8192, 28672, 8192}, {BENCH_LAYOUT_NT, 8192, 8192, 28672},
        {BENCH_LAYOUT_NN, 8192, 8192, 28672}, {BENCH_LAYOUT_TN, 28672, 8192, 8192},
    };

    for (size_t i = 0; i < COUNT(products); i++)
        if (dtype == case_half(kind->limits) || products[i].layout == BENCH_LAYOUT_NT)
            case_add(kind, (struct bench_case){BENCH_MATMUL_SUSTAINED, dtype, products[i].layout, 1, products[i].m,
                                          products[i].n, products[i].k, 0});
}

static const int64_t sequences[] = {512, 1024, 2048, 4096, 8192, 16384};
static const int64_t head_counts[] = {8, 16, 32, 96, 256};

/* The products of attention that is not fused: scores (and the gradient of the shares), values (and dQ), dK and dV. */
static void list_heads(struct case_kind *kind, enum bench_dtype dtype)
{
    static const int64_t sizes[] = {64, 75, 80, 96, 108, 128};     /* 75 and 108: rows of no multiple of 16 bytes */

    for (size_t h = 0; h < COUNT(head_counts); h++)
        for (size_t s = 0; s < COUNT(sequences) && sequences[s] <= 4096; s++)
            for (size_t d = 0; d < COUNT(sizes); d++) {
                add_matmul(kind, dtype, BENCH_LAYOUT_NT, head_counts[h], sequences[s], sequences[s], sizes[d]);
                add_matmul(kind, dtype, BENCH_LAYOUT_NN, head_counts[h], sequences[s], sizes[d], sequences[s]);
                add_matmul(kind, dtype, BENCH_LAYOUT_TN, head_counts[h], sequences[s], sizes[d], sequences[s]);
            }
}

/* Head sizes alternate like the fields of a chessboard: half of the shapes show as much as all, and cuDNN takes half a
 * second to plan each. */
static void list_fused(struct case_kind *kind, enum bench_dtype dtype)
{
    for (int kernel = BENCH_ATTENTION_FORWARD; kernel <= BENCH_ATTENTION_BACKWARD_CAUSAL; kernel++)
        for (size_t h = 0; h < COUNT(head_counts); h++)
            for (size_t s = 0; s < COUNT(sequences); s++) {
                struct bench_case one = {(enum bench_kernel)kernel, dtype, BENCH_LAYOUT_NONE, head_counts[h],
                                         sequences[s], sequences[s], (h + s) % 2 ? 64 : 128, 0};

                if (bench_case_flop(&one) <= case_most_flop(dtype))
                    case_add(kind, one);
            }
}

/* Bytes that each element reads and writes in memory: `values` values of the format, and `fixed` bytes. */
static const struct row_kernel {
    enum bench_kernel kernel;
    double values, fixed;
} row_kernels[] = {
    {BENCH_LAYERNORM_FORWARD, 2, 0}, {BENCH_LAYERNORM_BACKWARD, 3, 0},
    {BENCH_RMSNORM_FORWARD, 2, 0}, {BENCH_RMSNORM_BACKWARD, 3, 0},
    {BENCH_GELU_FORWARD, 2, 0}, {BENCH_GELU_BACKWARD, 3, 0},
    {BENCH_SWIGLU_FORWARD, 3, 0}, {BENCH_SWIGLU_BACKWARD, 5, 0},
    {BENCH_DROPOUT_FORWARD, 3, 1}, {BENCH_DROPOUT_BACKWARD, 2, 1},
    {BENCH_EMBEDDING_FORWARD, 2, 0}, {BENCH_EMBEDDING_BACKWARD, 1, 8},
};
static const struct row_kernel softmax_kernels[] = {{BENCH_SOFTMAX_FORWARD, 2, 0}, {BENCH_SOFTMAX_BACKWARD, 3, 0}};
static const struct row_kernel loss_kernels[] = {
    {BENCH_CROSS_ENTROPY_FORWARD, 1, 0}, {BENCH_CROSS_ENTROPY_BACKWARD, 2, 0},
};

static void add_rows(struct case_kind *kind, const struct row_kernel *row, enum bench_dtype dtype, int64_t m, int64_t n)
{
    struct bench_case one = {.kernel = row->kernel, .dtype = dtype, .m = m, .n = n};

    if (row->kernel == BENCH_EMBEDDING_FORWARD || row->kernel == BENCH_EMBEDDING_BACKWARD)
        one.k = BENCH_VOCABULARY;
    one.bytes = (int64_t)((double)m * (double)n * (row->values * (double)bench_dtype_bytes(dtype, 1) + row->fixed));
    case_add(kind, one);
}

/* A row is kept in the registers of a block. */
enum { ROW_BYTES = 1 << 16 };

static void list_rows(struct case_kind *kind, enum bench_dtype dtype)
{
    static const int64_t columns[] = {1024, 2048, 4096, 8192, 12288, 25600};
    static const int64_t vocabularies[] = {6400, 32000, 51200, 128256};

    for (size_t i = 0; i < COUNT(token_counts); i++) {
        for (size_t c = 0; c < COUNT(columns) && bench_dtype_bytes(dtype, columns[c]) <= ROW_BYTES; c++)
            for (size_t r = 0; r < COUNT(row_kernels); r++)
                add_rows(kind, &row_kernels[r], dtype, token_counts[i], columns[c]);
        for (size_t c = 0; c < COUNT(vocabularies); c++)
            for (size_t r = 0; r < COUNT(loss_kernels); r++)
                add_rows(kind, &loss_kernels[r], dtype, token_counts[i], vocabularies[c]);
    }
    for (size_t h = 0; h < COUNT(head_counts); h++)
        for (size_t s = 0; s < COUNT(sequences); s++)
            for (size_t r = 0; r < COUNT(softmax_kernels); r++)
                add_rows(kind, &softmax_kernels[r], dtype, head_counts[h] * sequences[s], sequences[s]);
}

/* Adam reads gradient and states and writes states and copy; 12 bytes of states each way. */
static void list_flat(struct case_kind *kind, enum bench_dtype dtype)
{
    for (int64_t m = 1 << 14; m <= (int64_t)1 << 30; m *= 4) {
        int64_t width = bench_dtype_bytes(dtype, 1);

        case_add(kind, (struct bench_case){.kernel = BENCH_ADAM, .dtype = dtype, .m = m,
                                           .bytes = m * (24 + 2 * width)});
        case_add(kind, (struct bench_case){.kernel = BENCH_REDUCTION, .dtype = dtype, .m = m, .bytes = m * width});
    }
}

static void list_copies(struct case_kind *kind, enum bench_dtype dtype)
{
    case_add(kind, (struct bench_case){.kernel = BENCH_LAUNCH});
    for (int64_t m = 1 << 11; m <= (int64_t)1 << 31; m *= 2)
        case_add(kind, (struct bench_case){.kernel = BENCH_COPY_DEVICE, .dtype = dtype, .m = m,
                                      .bytes = 2 * bench_dtype_bytes(dtype, m)});
    for (int64_t bytes = 1 << 12; bytes <= (int64_t)1 << 28; bytes *= 4)
        for (int kernel = BENCH_COPY_TO_DEVICE_PINNED; kernel <= BENCH_COPY_TO_HOST_OVERLAP; kernel++)
            case_add(kind, (struct bench_case){.kernel = (enum bench_kernel)kernel, .bytes = bytes});
}

/* Two, four, ... GPUs and all of them. The sizes are whole numbers of fp32 for every rank. */
static void list_peers(struct case_kind *kind)
{
    int ranks = kind->limits->ranks;

    for (int64_t bytes = 1 << 12; ranks > 1 && bytes <= (int64_t)1 << 30; bytes *= 4) {
        case_add(kind, (struct bench_case){.kernel = BENCH_PEER_COPY, .m = 2, .bytes = bytes});
        for (int n = 2; kind->limits->collectives && n <= ranks; n = n < ranks && 2 * n > ranks ? ranks : 2 * n)
            for (int kernel = BENCH_ALL_REDUCE; kernel <= BENCH_REDUCE_SCATTER; kernel++)
                case_add(kind, (struct bench_case){.kernel = (enum bench_kernel)kernel, .dtype = BENCH_FP32, .m = n,
                                              .bytes = bytes / (4 * n) * 4 * n});
    }
}

/* splitmix64 (Steele, Lea, Flood 2014) */
static uint64_t next(uint64_t *seed)
{
    uint64_t z = *seed += 0x9E3779B97F4A7C15u;

    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

int bench_case_compare(const void *a, const void *b)
{
    const struct bench_case *one = a, *two = b;
    const int64_t columns[][2] = {
        {one->kernel, two->kernel}, {one->dtype, two->dtype}, {one->layout, two->layout}, {one->batch, two->batch},
        {one->m, two->m}, {one->n, two->n}, {one->k, two->k}, {one->bytes, two->bytes},
    };

    for (size_t i = 0; i < COUNT(columns); i++)
        if (columns[i][0] != columns[i][1])
            return columns[i][0] < columns[i][1] ? -1 : 1;
    return 0;
}

/* Removes cases that two lists have in common, then shuffles the order (Fisher, Yates). */
static void settle(struct bench_cases *cases, uint64_t *seed)
{
    size_t kept = 0;

    if (cases->count == 0)
        return;
    qsort(cases->items, cases->count, sizeof *cases->items, bench_case_compare);
    for (size_t i = 0; i < cases->count; i++)
        if (i == 0 || bench_case_compare(&cases->items[i], &cases->items[kept - 1]))
            cases->items[kept++] = cases->items[i];
    cases->count = kept;
    for (size_t i = kept - 1; i > 0; i--) {
        size_t other = next(seed) % (i + 1);
        struct bench_case swap = cases->items[i];

        cases->items[i] = cases->items[other];
        cases->items[other] = swap;
    }
}

enum { KINDS_PLAIN = 16, KINDS_NARROW = 4, FORMATS_NARROW = BENCH_NVFP4 - BENCH_FP8 + 1,
       KINDS = KINDS_PLAIN + FORMATS_NARROW * KINDS_NARROW };

/* The kinds of a format whose values have scales. */
static void list_narrow(struct case_kind kinds[KINDS_NARROW], enum bench_dtype dtype)
{
    int64_t step = bench_formats[dtype].multiple;

    list_filling(&kinds[0], BENCH_MATMUL, dtype, step, dtype == BENCH_FP8 ? 300 : 150);
    list_filling(&kinds[1], BENCH_MATMUL_QUANTIZED, dtype, step, 100);
    case_list_grouped(&kinds[2], dtype);
    case_list_moe(&kinds[3], dtype);
}

static void list_kinds(struct case_kind kinds[KINDS], const struct bench_limits *limits)
{
    enum bench_dtype half = case_half(limits);

    list_layers(&kinds[0], half);
    list_filling(&kinds[1], BENCH_MATMUL, half, 8, 600);
    for (int64_t step = 1; step <= 4; step *= 2)     /* the first ones with rows that are no multiples of 16 bytes */
        list_filling(&kinds[1], BENCH_MATMUL, half, step, 100);
    list_heads(&kinds[2], half);
    list_fused(&kinds[3], half);
    list_rows(&kinds[4], half);
    list_flat(&kinds[5], half);
    list_copies(&kinds[6], half);
    list_peers(&kinds[7]);
    list_filling(&kinds[8], BENCH_MATMUL, BENCH_TF32, 8, 200);
    list_filling(&kinds[9], BENCH_MATMUL, BENCH_FP32, 8, 150);
    if (half != BENCH_FP16)
        list_filling(&kinds[10], BENCH_MATMUL, BENCH_FP16, 8, 150);
    list_rows(&kinds[11], BENCH_FP32);
    list_flat(&kinds[12], BENCH_FP32);
    for (int dtype = BENCH_FP32; dtype <= BENCH_NVFP4; dtype++)
        if (dtype == (int)half || (dtype != BENCH_FP16 && dtype != BENCH_BF16))
            list_sustained(&kinds[13], (enum bench_dtype)dtype);
    case_list_grouped(&kinds[14], BENCH_BF16);
    case_list_moe(&kinds[15], BENCH_BF16);
    for (int i = 0; i < FORMATS_NARROW; i++)
        list_narrow(&kinds[KINDS_PLAIN + i * KINDS_NARROW], (enum bench_dtype)(BENCH_FP8 + i));
}

void bench_cases_list(struct bench_cases *cases, const struct bench_limits *limits, uint64_t seed)
{
    struct case_kind kinds[KINDS] = {0};
    size_t left = 0;

    for (int i = 0; i < KINDS; i++)
        kinds[i].limits = limits;
    list_kinds(kinds, limits);
    for (int i = 0; i < KINDS; i++) {
        settle(&kinds[i].cases, &seed);
        if (limits->quick)
            kinds[i].cases.count = (kinds[i].cases.count + 9) / 10;
        left += kinds[i].cases.count;
    }
    for (size_t turn = 0; left > 0; turn++)
        for (int i = 0; i < KINDS; i++)
            if (turn < kinds[i].cases.count) {
                *GROW(cases) = kinds[i].cases.items[turn];
                left--;
            }
    for (int i = 0; i < KINDS; i++)
        free(kinds[i].cases.items);
}
