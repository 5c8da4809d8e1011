/* case: one thing to measure: a kernel, its number format and its shape. Pure data, no GPU needed. */
#ifndef DTSIM_CASE_H
#define DTSIM_CASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* tf32 is fp32 in memory, fp8 is e4m3; the last two are of operands alone. */
enum bench_dtype {
    BENCH_NONE, BENCH_FP32, BENCH_TF32, BENCH_FP16, BENCH_BF16, BENCH_FP8, BENCH_INT32, BENCH_BYTE, BENCH_DTYPES
};
extern const char *const bench_dtype_names[BENCH_DTYPES];        /* "" for BENCH_NONE */
int bench_dtype_bytes(enum bench_dtype dtype);                   /* of a value in memory */

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

/* The columns of a sample; 0 is an empty cell. `bytes`: the least that a memory-bound kernel must read and write, or
 * the bytes that a copy or a collective between memories moves. */
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
    FILL_NORMAL,                 /* normally distributed, mean 0, deviation 1 */
    FILL_SQUARE,                 /* squares of such */
    FILL_VALUE,                  /* all `value` */
    FILL_INDEX,                  /* uniform integers from 0 to below `value` */
    FILL_MASK,                   /* 1 with the probability `value`, else 0 */
};
enum operand_role { ROLE_IN, ROLE_OUT, ROLE_SCRATCH };
struct operand {
    enum operand_role role;
    enum bench_dtype dtype;
    enum operand_fill fill;
    double value;
    int64_t count;               /* values */
};
enum { OPERANDS_MAX = 12 };
int bench_operands(const struct bench_case *one, struct operand operands[OPERANDS_MAX]);     /* how many */
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

#endif
