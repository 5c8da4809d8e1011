/* The shapes of mixture models' layers. */
#include "base/base.h"
#include "case_list.h"

/* From the models' own configuration files (config.json at their publishers): num_experts, hidden_size,
 * moe_intermediate_size and what they are called elsewhere. */
static const struct mixture { int64_t experts, hidden, inner; } mixtures[] = {
    {8, 4096, 14336},            /* Mixtral 8x7B */
    {8, 6144, 16384},            /* Mixtral 8x22B */
    {32, 2880, 2880},            /* GPT OSS 20B; the larger one has 128 of them */
    {128, 2880, 2880},
    {128, 2048, 768},            /* Qwen3 30B-A3B */
    {128, 4096, 1536},           /* Qwen3 235B-A22B */
    {256, 7168, 2048},           /* DeepSeek-V3 */
};
static const int64_t splits[] = {1, 2, 4, 8};            /* GPUs that share the experts */
static const int64_t row_counts[] = {2048, 8192, 32768, 131072};

/* Calls `list` for each model, split and number of rows. Splits and rows alternate like the fields of a chessboard:
 * half of the shapes show as much as all. */
static void each_shape(struct case_kind *kind, enum bench_dtype dtype,
                       void (*list)(struct case_kind *kind, enum bench_dtype dtype, const struct mixture *own,
                                    int64_t rows))
{
    int64_t multiple = bench_is_narrow(dtype) ? bench_formats[dtype].multiple : 1;

    for (size_t i = 0; i < COUNT(mixtures); i++)
        for (size_t s = 0; s < COUNT(splits); s++)
            for (size_t r = (i + s) % 2; r < COUNT(row_counts); r += 2) {
                struct mixture own = mixtures[i];

                own.experts /= splits[s];
                if (row_counts[r] % (own.experts * multiple) == 0 && own.hidden % multiple == 0 &&
                    own.inner % multiple == 0)
                    list(kind, dtype, &own, row_counts[r]);
            }
}

static void add(struct case_kind *kind, struct bench_case one)
{
    if (bench_case_flop(&one) <= case_most_flop(one.dtype))
        case_add(kind, one);
}

/* Y = X W^T; in formats without scales also dX = dY W and dW = dY^T X, as the backward has them. */
static void list_products(struct case_kind *kind, enum bench_dtype dtype, const struct mixture *own, int64_t rows)
{
    const int64_t sides[][2] = {{2 * own->inner, own->hidden}, {own->hidden, own->inner}};

    for (size_t i = 0; i < COUNT(sides); i++) {
        int64_t out = sides[i][0], in = sides[i][1];

        add(kind, (struct bench_case){BENCH_MATMUL_GROUPED, dtype, BENCH_LAYOUT_NT, own->experts, rows, out, in, 0});
        if (bench_is_narrow(dtype))
            continue;
        add(kind, (struct bench_case){BENCH_MATMUL_GROUPED, dtype, BENCH_LAYOUT_NN, own->experts, rows, in, out, 0});
        add(kind, (struct bench_case){BENCH_MATMUL_GROUPED, dtype, BENCH_LAYOUT_TN, own->experts, out, in, rows, 0});
    }
}

static void list_layer(struct case_kind *kind, enum bench_dtype dtype, const struct mixture *own, int64_t rows)
{
    if (own->experts > 1)
        add(kind, (struct bench_case){.kernel = BENCH_MOE, .dtype = dtype, .batch = own->experts, .m = rows,
                                      .n = own->inner, .k = own->hidden});
}

void case_list_grouped(struct case_kind *kind, enum bench_dtype dtype)
{
    each_shape(kind, dtype, list_products);
}

void case_list_moe(struct case_kind *kind, enum bench_dtype dtype)
{
    each_shape(kind, dtype, list_layer);
}
