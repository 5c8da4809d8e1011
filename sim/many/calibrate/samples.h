/* samples: measured kernel times, from CSV files as calibration/ writes them.
 *
 * A file begins with comment lines "# key: value", which describe the measurement: gpu and sms are required; attention
 * is the generation of fused attention, flash-2 by default. Then come a line of column names, in any order, and one
 * line per sample. Required columns: kernel dtype batch m n k layout bytes median_us. Not required: window, the keys
 * that a query of causal attention sees at most; expert_skew and skew_range, how unevenly the rows of a grouped product
 * or of a layer are divided among the experts (struct skew, measured_range). Others (spread_us, count) are allowed. Cells
 * that have no meaning for a kernel are empty. */
#ifndef DTSIM_SAMPLES_H
#define DTSIM_SAMPLES_H

#include "kernels/kernel_time.h"

/* SUSTAINED: a product that ran for seconds without a pause (see `speed` in kernel_time.h). */
enum sample_kind { SAMPLE_MATMUL, SAMPLE_ATTENTION, SAMPLE_MEMORY, SAMPLE_SUSTAINED, SAMPLE_UNUSED };

struct sample {
    struct loc loc;
    enum sample_kind kind;
    int which;                           /* MATMUL: enum product_form; ATTENTION: enum attention_direction; MEMORY:
                                          * enum memory_class */
    enum dtype dtype;                    /* of products and attention; of MEMORY if its bytes are not given */
    enum matmul_layout layout;           /* of products */
    double batch, m, n, k;               /* of products and attention */
    double bytes;                        /* MEMORY; ATTENTION, 0: each head has its own keys and values */
    double window;                       /* of causal attention; 0: none */
    struct skew skew;                    /* of experts' rows */
    double seconds;                      /* the median */
};

struct samples {
    struct arena *arena;
    const char *gpu, *source, *date, *driver, *cuda;     /* NULL: not given */
    int sms;
    int attention;                       /* enum attention_generation, the same in all files */
    struct loc gpu_loc;
    struct sample *items;
    size_t count, capacity;
};

/* Appends the samples of a file. Zero-initialise and set the arena; samples_release when done. If the cell of a
 * kernel's bytes is empty, they follow from its m x n values (sample_class_bytes). Errors: another GPU; unknown
 * kernels; columns that are missing or given twice; cells that are not a number, or a number that is not positive or
 * not finite; sizes that are not whole; times that no GPU can have; a last line without newline. */
int samples_load(struct samples *samples, const char *path, struct error *err);
int samples_parse(struct samples *samples, const char *name, const char *text, size_t length, struct error *err);
/* Whether a profile is compared with the sample only: a window or a skew are computed from kernels without them, so
 * nothing is fitted to such samples. Only where all experts of a format are uneven, they are fitted. */
bool sample_is_derived(const struct sample *sample);
/* As a product: MATMUL and SUSTAINED. */
struct product sample_product(const struct sample *sample);
struct heads sample_heads(const struct sample *sample);
/* samples_amount.c. The floating-point operations of a sample. */
double sample_flop(const struct sample *sample);
/* The bytes that a sample at least reads and writes. */
double sample_bytes(const struct sample *sample);
/* The bytes that a kernel of that class reads and writes for m x n values (adam: m parameters) of `value` bytes. */
double sample_class_bytes(enum memory_class class, double m, double n, double value);
/* Refuses a time that is too short or too long for any GPU with that many multiprocessors. */
int sample_check(const struct sample *sample, int sms, struct loc loc, struct error *err);
/* The source that the files' comments give, in one line. */
const char *samples_source(const struct samples *samples);
void samples_release(struct samples *samples);

#endif
