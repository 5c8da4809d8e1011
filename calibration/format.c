#include "format.h"

#include <math.h>

#include "base/base.h"

const char *const bench_dtype_names[BENCH_DTYPES] = {
    "", "fp32", "tf32", "fp16", "bf16", "fp8", "fp8-block", "mxfp8", "nvfp4", "int32", "byte", "e8m0", "e2m1",
};

int64_t bench_dtype_bytes(enum bench_dtype dtype, int64_t count)
{
    static const int bits[BENCH_DTYPES] = {8, 32, 32, 16, 16, 8, 8, 8, 4, 32, 8, 8, 4};

    return (count * bits[dtype] + 7) / 8;
}

/* A row of 32 values of e2m1 is 16 bytes. */
const struct bench_format bench_formats[BENCH_DTYPES] = {
    [BENCH_FP8] = {BENCH_FP8, BENCH_NONE, 0, SCALES_NONE, SCALES_NONE, true, 16},
    [BENCH_FP8_BLOCK] = {BENCH_FP8, BENCH_FP32, 128, SCALES_BY_BLOCK, SCALES_SQUARES, false, 128},
    [BENCH_MXFP8] = {BENCH_FP8, BENCH_E8M0, 32, SCALES_TILES, SCALES_TILES, false, 32},
    [BENCH_NVFP4] = {BENCH_E2M1, BENCH_FP8, 16, SCALES_TILES, SCALES_TILES, true, 32},
};

bool bench_is_narrow(enum bench_dtype dtype)
{
    return bench_formats[dtype].code != BENCH_NONE;
}

enum scale_layout quantised_layout(const struct quantised *matrices)
{
    const struct bench_format *format = &bench_formats[matrices->dtype];

    return matrices->weights ? format->weights : format->activations;
}

static int64_t up_to(int64_t value, int64_t step)
{
    return (value + step - 1) / step * step;
}

/* Of one matrix. */
static int64_t scales_of_one(const struct quantised *matrices)
{
    const struct bench_format *format = &bench_formats[matrices->dtype];
    int64_t blocks = format->block > 0 ? scale_blocks(matrices->k, format->block) : 0, least = 4;

    switch (quantised_layout(matrices)) {
    case SCALES_BY_BLOCK: return up_to(blocks * matrices->rows, least);
    case SCALES_SQUARES: return up_to(blocks, 4) * scale_blocks(matrices->rows, SQUARE_ROWS);
    case SCALES_TILES: return up_to(blocks, TILE_BLOCKS) * up_to(matrices->rows, TILE_ROWS);
    default: return least;
    }
}

int64_t quantised_scales(const struct quantised *matrices)
{
    return matrices->count * scales_of_one(matrices);
}

/* To so many bits after the point of the mantissa; below 2^lowest the steps stay as they are there. */
static float round_to(float x, int bits, int lowest, float most)
{
    int exponent;
    float step;

    if (!(fabsf(x) < most))
        return copysignf(most, x);
    frexpf(x, &exponent);
    exponent = exponent - 1 > lowest ? exponent - 1 : lowest;
    step = ldexpf(1, exponent - bits);
    return rintf(x / step) * step;
}

float format_round(enum bench_dtype dtype, float x)
{
    switch (dtype) {
    case BENCH_FP8: return round_to(x, 3, -6, E4M3_MOST);
    case BENCH_E2M1: return round_to(x, 1, 0, E2M1_MOST);
    case BENCH_E8M0: return power_above(x);
    default: return x;
    }
}

/* A block of a matrix: where it begins, and its rows and columns. */
struct block {
    int64_t first, rows, columns, scale;
};

/* Calls `use` for each block of all matrices; a row is one block where the format has none. */
static void each_block(const struct quantised *matrices, void (*use)(const struct block *block, void *context),
                       void *context)
{
    const struct bench_format *format = &bench_formats[matrices->dtype];
    enum scale_layout layout = quantised_layout(matrices);
    int64_t width = format->block > 0 ? format->block : matrices->k, blocks = scale_blocks(matrices->k, width);
    int64_t height = layout == SCALES_SQUARES ? SQUARE_ROWS : 1, each = scales_of_one(matrices);

    for (int64_t matrix = 0; matrix < matrices->count; matrix++)
        for (int64_t row = 0; row < matrices->rows; row += height)
            for (int64_t i = 0; i < blocks; i++) {
                int64_t rows = matrices->rows - row, columns = matrices->k - i * width;
                struct block block = {(matrix * matrices->rows + row) * matrices->k + i * width,
                                      rows < height ? rows : height, columns < width ? columns : width,
                                      matrix * each + scale_offset(layout, matrices->rows, blocks, row, i)};

                use(&block, context);
            }
}

struct pass {
    const struct quantised *matrices;
    const double *from;
    double *const *parts;
    double *to;
};

static void quantise_block(const struct block *block, void *context)
{
    struct pass *pass = context;
    const struct bench_format *format = &bench_formats[pass->matrices->dtype];
    float most = 0, scale = 1, factor = format->factor ? (float)pass->parts[1][0] : 1, inverse;

    for (int64_t i = 0; i < block->rows; i++)
        for (int64_t j = 0; j < block->columns; j++)
            most = fmaxf(most, fabsf((float)pass->from[block->first + i * pass->matrices->k + j]));
    if (format->block > 0) {
        scale = format_round(format->scale, scale_of(pass->matrices->dtype, most, factor));
        pass->parts[0][block->scale] = (double)scale;
    }
    inverse = scale_inverse(scale, factor);
    for (int64_t i = 0; i < block->rows; i++)
        for (int64_t j = 0; j < block->columns; j++) {
            int64_t at = block->first + i * pass->matrices->k + j;

            pass->parts[2][at] = (double)format_round(format->code, (float)pass->from[at] * inverse);
        }
}

void format_quantise(const struct quantised *matrices, const double *values, double *const parts[3])
{
    struct pass pass = {matrices, values, parts, NULL};
    double most = 0;

    for (int64_t i = 0; i < matrices->count * matrices->rows * matrices->k; i++)
        most = fmax(most, fabs(values[i]));
    if (bench_formats[matrices->dtype].factor) {
        parts[1][0] = (double)factor_of(matrices->dtype, (float)most);
        parts[1][1] = (double)(float)most;
    }
    each_block(matrices, quantise_block, &pass);
}

static void widen_block(const struct block *block, void *context)
{
    struct pass *pass = context;

    for (int64_t i = 0; i < block->rows; i++)
        for (int64_t j = 0; j < block->columns; j++) {
            int64_t at = block->first + i * pass->matrices->k + j;

            pass->to[at] = pass->parts[2][at] * pass->parts[0][block->scale] * pass->parts[1][0];
        }
}

void format_widen(const struct quantised *matrices, double *const parts[3], double *values)
{
    struct pass pass = {matrices, NULL, parts, values};

    each_block(matrices, widen_block, &pass);
}
