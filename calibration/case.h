/* case: one thing to measure: a kernel, its number format and its shape. Pure data, no GPU needed. */
#ifndef DTSIM_CASE_H
#define DTSIM_CASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How the operands of C = A B lie in memory, row by row: n as in the formula, t transposed. A first. */
enum bench_layout { BENCH_LAYOUT_NONE, BENCH_LAYOUT_NN, BENCH_LAYOUT_NT, BENCH_LAYOUT_TN, BENCH_LAYOUTS };
extern const char *const bench_layout_names[BENCH_LAYOUTS];      /* "" for BENCH_LAYOUT_NONE */

enum bench_kernel {
#define KERNEL(id, name, text) id,
#include "kernels.h"
#undef KERNEL
    BENCH_KERNELS
};
extern const char *const bench_kernel_names[BENCH_KERNELS];
extern const char *const bench_kernel_texts[BENCH_KERNELS];      /* a line: the operation that is timed */

/* The columns of a sample; 0 is an empty cell. A grouped product has `batch` experts, and m rows in all (layout tn: k);
 * a layer of experts has m rows in all (tokens times experts of each), hidden size k and inner size n. `bytes`: the
 * least that a memory-bound kernel must read and write, or the bytes that a copy or a collective between memories
 * moves. */
struct bench_case {
    enum bench_kernel kernel;
    enum bench_dtype dtype;
    enum bench_layout layout;
    int64_t batch, m, n, k;
    int64_t bytes;
};

struct bench_cases {
    struct bench_case *items;
    size_t count, capacity;
};

/* The floating-point operations of a product or of attention (a multiply and an add are two; causal attention counts
 * half); 0 for what memory or the links bound. */
double bench_case_flop(const struct bench_case *one);
/* The inputs and outputs of a kernel, in the order of its operands. */
enum operand_fill {
    FILL_NOTHING,                /* an output */
    FILL_NORMAL,                 /* normally distributed, mean 0, deviation `value` */
    FILL_SQUARE,                 /* squares of such */
    FILL_VALUE,                  /* all `value` */
    FILL_INDEX,                  /* uniform integers from 0 to below `value` */
    FILL_MASK,                   /* 1 with the probability `value`, else 0 */
    FILL_QUANTISED,              /* codes of normal values, and their scales in the two operands before */
};
enum operand_role { ROLE_IN, ROLE_OUT, ROLE_SCRATCH };
struct operand {
    enum operand_role role;
    enum bench_dtype dtype;
    enum operand_fill fill;
    double value;
    int64_t count;               /* values */
    struct quantised quantised;  /* of codes: the matrices that they make up */
};
enum { OPERANDS_MAX = 22 };
int bench_operands(const struct bench_case *one, struct operand operands[OPERANDS_MAX]);     /* how many */
/* A matrix whose values have scales takes three operands. A product with such takes A, B, the product of both factors
 * (which scales C), C, and, if it quantises A itself, A in bf16; else a product takes A, B and C. */
enum { PART_SCALES, PART_FACTOR, PART_CODES, PARTS };
enum { PLAIN_A, PLAIN_B, PLAIN_C };
enum { NARROW_A, NARROW_B = PARTS, NARROW_ALPHA = 2 * PARTS, NARROW_C, NARROW_SOURCE };
/* A layer of experts: tokens, the weight of each row in its token's sum, rows in the order of experts, gates and
 * values, their activation, the result of each row, the sums; then the weights, and, if values have scales, the
 * quantised operands. */
enum {
    MOE_TOKENS, MOE_SHARES, MOE_ROWS, MOE_WIDE, MOE_INNER, MOE_RESULTS, MOE_OUT, MOE_UP, MOE_PLAIN_DOWN,
    MOE_NARROW_DOWN = MOE_UP + PARTS, MOE_NARROW_ROWS = MOE_NARROW_DOWN + PARTS,
    MOE_NARROW_INNER = MOE_NARROW_ROWS + PARTS, MOE_UP_ALPHA = MOE_NARROW_INNER + PARTS, MOE_DOWN_ALPHA
};
/* How many experts a token goes to: 2 of 8, 4 of 32, 8 of 64 and more, as in Mixtral, GPT OSS, Qwen3 and DeepSeek-V3.
 * */
int64_t bench_top_k(int64_t experts);
/* The row of a token's copy in the order of experts, who get the copies in turn and so equally many. */
SHARED int64_t bench_expert_row(int64_t copy, int64_t experts, int64_t rows)
{
    return copy % experts * (rows / experts) + copy / experts;
}
/* Bytes of device memory that one call takes with all its operands. */
double bench_case_memory(const struct bench_case *one);

/* Constants of the kernels. */
#define BENCH_DROPOUT 0.1            /* share that is dropped */
#define BENCH_EPSILON 1e-5           /* of the norms */
enum { BENCH_VOCABULARY = 51200 };   /* rows of the embedding's table */
enum { NORM_CHUNKS = 256 };          /* groups of rows whose gradients of scale and shift are summed apart */
/* Adam (Kingma, Ba 2015, algorithm 1, with the weight decay of Loshchilov, Hutter 2019). */
#define ADAM_RATE 1e-4
#define ADAM_BETA1 0.9
#define ADAM_BETA2 0.95
#define ADAM_EPSILON 1e-8
#define ADAM_DECAY 0.1
enum { ADAM_STEP = 100 };            /* whose bias correction is taken */

/* The machine's limits, which decide the cases that are listed. */
struct bench_limits {
    double memory;               /* bytes that one case may touch */
    bool fp8, bf16, tf32;        /* the chip multiplies these formats */
    bool fp8_block, mxfp8, nvfp4; /* and the library was built to */
    bool grouped;                /* grouped products in bf16 are there */
    bool flash;                  /* fused attention is there */
    int ranks;                   /* GPUs; 1: no peers */
    bool collectives;            /* NCCL is there */
    bool quick;                  /* a tenth of the cases */
    const bool (*wanted)[BENCH_DTYPES];  /* by kernel and format, or NULL: all */
};

/* Whether the chip multiplies the case's format, and the kernel is wanted in it. */
bool bench_case_wanted(const struct bench_limits *limits, const struct bench_case *one);

/* Appends all cases in the order to measure them: shuffled within their kind (the same for the same seed), the kinds in
 * turn, so that a run that is stopped has seen something of everything. No case comes twice. */
void bench_cases_list(struct bench_cases *cases, const struct bench_limits *limits, uint64_t seed);

/* An order of all cases, for qsort; 0: they are the same. */
int bench_case_compare(const void *a, const void *b);

/* The i-th number of Halton's sequence in this base, in (0, 1) for i from 1 (Halton 1960). */
double halton(uint64_t i, unsigned base);

#ifdef __cplusplus
}
#endif

#endif
