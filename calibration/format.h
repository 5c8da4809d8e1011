/* format: the number formats that are measured, and for those of 8 and 4 bits their scales: which values share one, how
 * it is rounded, and where it lies in memory. A value is code x scale of its block x factor of its matrix.
 *
 * Which scales cuBLASLt takes and where they lie: cuBLAS documentation 13, "Narrow Precision Data Types Usage". */
#ifndef DTSIM_FORMAT_H
#define DTSIM_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__
#define SHARED static inline __host__ __device__
#else
#define SHARED static inline
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* tf32 is fp32 in memory; fp8 is e4m3 with one scale a matrix; fp8-block is e4m3 with a scale for 128 values of
 * activations and for 128 x 128 of weights (DeepSeek-AI 2024, section 3.3.2); mxfp8 is e4m3 with a scale for 32 values,
 * a power of two (OCP Microscaling Formats 1.0); nvfp4 is e2m1 with a scale in e4m3 for 16 values. Those after it are
 * of operands alone. */
enum bench_dtype {
    BENCH_NONE, BENCH_FP32, BENCH_TF32, BENCH_FP16, BENCH_BF16, BENCH_FP8, BENCH_FP8_BLOCK, BENCH_MXFP8, BENCH_NVFP4,
    BENCH_INT32, BENCH_BYTE, BENCH_E8M0, BENCH_E2M1, BENCH_DTYPES
};
extern const char *const bench_dtype_names[BENCH_DTYPES];        /* "" for BENCH_NONE */
/* Of so many values in memory. E2m1 has two in a byte; mxfp8 and nvfp4 count their codes, not their scales. */
int64_t bench_dtype_bytes(enum bench_dtype dtype, int64_t count);

/* Where the scale of a row's block along k lies. */
enum scale_layout {
    SCALES_NONE,                 /* there are no blocks */
    SCALES_BY_BLOCK,             /* the first block of every row, then the second of every row, ... */
    SCALES_SQUARES,              /* one for 128 rows; those of the first 128 rows, padded to a multiple of 4, ... */
    SCALES_TILES,                /* tiles of 128 rows by 4 blocks; within one: rows 0, 32, 64, 96, then 1, 33, ... */
};

enum { SQUARE_ROWS = 128, TILE_ROWS = 128, TILE_BLOCKS = 4 };

/* A format whose values have scales. */
struct bench_format {
    enum bench_dtype code, scale;        /* of a value; of a block's scale, BENCH_NONE: there are no blocks */
    int block;                           /* values along k that share a scale */
    enum scale_layout activations, weights;
    bool factor;                         /* the matrix has a factor, from its largest value */
    int multiple;                        /* the library takes sizes that are multiples of it */
};
extern const struct bench_format bench_formats[BENCH_DTYPES];    /* all zero: its values have no scales */
bool bench_is_narrow(enum bench_dtype dtype);

/* `count` matrices of rows x k, one after another. The scales of each begin at a multiple of 16 bytes. */
struct quantised {
    enum bench_dtype dtype;
    bool weights;
    int64_t count, rows, k;
};
enum scale_layout quantised_layout(const struct quantised *matrices);
/* Places for the scales of all matrices, with padding; 4 where there are no blocks. */
int64_t quantised_scales(const struct quantised *matrices);

#define E4M3_MOST 448.0f
#define E2M1_MOST 6.0f

SHARED int64_t scale_blocks(int64_t k, int64_t block)
{
    return (k + block - 1) / block;
}

/* Where the scale of a block lies among those of its matrix, which has `blocks` blocks a row. */
SHARED int64_t scale_offset(enum scale_layout layout, int64_t rows, int64_t blocks, int64_t row, int64_t block)
{
    switch (layout) {
    case SCALES_BY_BLOCK: return block * rows + row;
    case SCALES_SQUARES: return row / SQUARE_ROWS * ((blocks + 3) / 4 * 4) + block;
    case SCALES_TILES:
        return (row / TILE_ROWS * ((blocks + TILE_BLOCKS - 1) / TILE_BLOCKS) + block / TILE_BLOCKS) * TILE_ROWS *
                   TILE_BLOCKS + row % 32 * 16 + row % TILE_ROWS / 32 * TILE_BLOCKS + block % TILE_BLOCKS;
    default: return 0;
    }
}

/* The least power of two that is not below x, as e8m0 has it: from 2^-126. */
SHARED float power_above(float x)
{
    uint32_t bits;
    float power;

    memcpy(&bits, &x, sizeof bits);
    bits = (bits >> 23) + ((bits & 0x7fffff) > 0);
    bits = (bits < 1 ? 1 : bits > 254 ? 254 : bits) << 23;
    memcpy(&power, &bits, sizeof power);
    return power;
}

/* The factor of a matrix whose largest value is `most`: the largest code and the largest scale reach it. */
SHARED float factor_of(enum bench_dtype dtype, float most)
{
    return most / (dtype == BENCH_NVFP4 ? E2M1_MOST * E4M3_MOST : E4M3_MOST);
}

/* The scale of a block, before it is rounded to its format. */
SHARED float scale_of(enum bench_dtype dtype, float most, float factor)
{
    return dtype == BENCH_NVFP4 ? most / E2M1_MOST / factor : most / E4M3_MOST;
}

/* What a value is multiplied by to get its code. */
SHARED float scale_inverse(float scale, float factor)
{
    float whole = scale * factor;

    return whole > 0 ? 1 / whole : 0;
}

/* ---- on the CPU ---- */

/* The nearest value that the format has, of two the one with the even code; the largest for all beyond it. Any format
 * but integers; bf16 and fp16 are not rounded. */
float format_round(enum bench_dtype dtype, float x);
/* Quantises matrices, in the steps of the GPU's kernels. `parts` are scales, factor (and the largest value) and codes,
 * as bench_operands() lists them. */
void format_quantise(const struct quantised *matrices, const double *values, double *const parts[3]);
/* The values that codes, scales and factor stand for. */
void format_widen(const struct quantised *matrices, double *const parts[3], double *values);

#ifdef __cplusplus
}
#endif

#endif
