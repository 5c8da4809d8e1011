/* samples: measured kernel times, from CSV files as calibration/ writes them.
 *
 * Comment lines "# key: value" say where they come from (gpu and sms are needed; attention: the generation of fused
 * attention, flash-2 where it is not said); then a line of column names, in any
 * order, and a line a sample. Cells that mean nothing for a kernel are empty. Columns that must be there: kernel dtype
 * batch m n k layout bytes median_us; further ones (spread_us, count) may. */
#ifndef DTSIM_SAMPLES_H
#define DTSIM_SAMPLES_H

#include "kernels/kernel_time.h"

/* SUSTAINED: a product, run for seconds without a pause; what it means for others is in kernel_time.h. */
enum sample_kind { SAMPLE_MATMUL, SAMPLE_ATTENTION, SAMPLE_MEMORY, SAMPLE_SUSTAINED, SAMPLE_UNUSED };

struct sample {
    struct loc loc;
    enum sample_kind kind;
    int which;                           /* ATTENTION: enum attention_direction; MEMORY: enum memory_class */
    enum dtype dtype;                    /* of products and attention; MEMORY: where its bytes are not given */
    enum matmul_layout layout;           /* of products */
    double batch, m, n, k;               /* of products and attention */
    double bytes;                        /* MEMORY */
    double seconds;                      /* the median */
};

struct samples {
    struct arena *arena;
    const char *gpu, *source, *date, *driver, *cuda;     /* NULL: not said */
    int sms;
    int attention;                       /* enum attention_generation; of all files */
    struct loc gpu_loc;
    struct sample *items;
    size_t count, capacity;
};

/* Appends the file's samples; samples of another GPU, unknown kernels, columns that are missing or there twice,
 * numbers that are none, are not positive or not finite, sizes that are not whole, times that no GPU reaches, and a
 * last line that does not end are errors. Zero-initialise, give an arena; samples_release when done. A kernel's bytes,
 * where that cell is empty, are what it reads and writes of m x n values. */
int samples_load(struct samples *samples, const char *path, struct error *err);
int samples_parse(struct samples *samples, const char *name, const char *text, size_t length, struct error *err);
/* samples_amount.c: floating-point operations; bytes read and written at least; the same of m x n values (adam: of m
 * parameters) where a file does not say. An error: a time in which no GPU of that many multiprocessors did it. */
double sample_flop(const struct sample *sample);
double sample_bytes(const struct sample *sample);
double sample_class_bytes(enum memory_class class, double m, double n, double value);
int sample_check(const struct sample *sample, int sms, struct loc loc, struct error *err);
/* What the files' comments say of where they come from, in one line. */
const char *samples_source(const struct samples *samples);
void samples_release(struct samples *samples);

#endif
