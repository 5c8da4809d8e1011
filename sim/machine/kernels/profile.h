/* profile: the parameters of the kernel-time model for one type of GPU, fitted to measurements: a file of
 * calibration/data/, which 'dtsim calibrate fit' writes. */
#ifndef DTSIM_PROFILE_H
#define DTSIM_PROFILE_H

#include "kernels/kernel_time.h"

/* The error of a record on samples that its fit did not use: |predicted / measured - 1|. NaN: not known. */
struct fit_error {
    const struct node *node;
    int samples, held_out;
    double mean, median, max;
};
/* The sizes of the samples, both ends included; kernels outside count as extrapolated. */
struct covered_range { const struct node *node; double from, to; };

struct matmul_record {
    const struct node *node;
    struct list dtypes;                  /* of int, enum dtype */
    struct list layouts;                 /* of int, enum matmul_layout: the layouts of the samples */
    struct matmul_fit fit;               /* as jobs have it, */
    struct repeated_runs repeated;       /* and what samples have besides */
    struct covered_range batch, m, n, k;
    struct fit_error error;
};
struct attention_record {
    const struct node *node;
    int generation;                      /* enum attention_generation, except NEWEST */
    struct list dtypes;
    int direction;                       /* enum attention_direction */
    struct attention_fit fit;            /* as for products */
    struct repeated_runs repeated;
    struct covered_range rows, keys, head;     /* batch x m; n; k */
    struct fit_error error;
};
struct memory_record {
    const struct node *node;
    int class;                           /* enum memory_class; CLASS_OTHER: for all classes without a record */
    struct list dtypes;                  /* int; empty: all */
    struct memory_fit fit;
    struct covered_range bytes;
    struct fit_error error;
};

struct profile {
    const struct node *node;
    const char *name;                    /* the file's name: "a100-80gb" */
    const char *gpu;                     /* the GPU that was measured, as its driver calls it */
    const char *source;                  /* who measured what, and when */
    int sms;                             /* streaming multiprocessors */
    const struct gpu_ratios *changed;    /* what a scenario changed of that GPU, or NULL: kernels' times are scaled:
                                          * tiles and blocks by the achieved rate of their format and the number of
                                          * multiprocessors, bytes by the bandwidth of the memory */
    struct list matmul, grouped;         /* of struct matmul_record */
    struct list attention, memory;       /* of struct attention_record, memory_record */
    struct cache *cache;                 /* where the times of products are remembered, or NULL */
};
extern const struct table profile_table;

/* Reads calibration/data/NAME.yaml, or a path (with a '/' or ".yaml"). `loc` is the place of the name. */
int profile_load(struct arena *arena, const char *name, struct loc loc, struct profile *profile, struct error *err);

/* Seconds of one launch, and what they stand on; NaN if there is no record.
 * Fused attention uses a record of the generation asked for, else of the next older one, else of the oldest newer one;
 * of several one that was sampled at heads of that size (latent attention: the mean size of keys and values). If any
 * generation will do, the size comes before the generation. If need be, causal attention uses a record of attention
 * without a mask, or the reverse: the same kernel visits other blocks. Without any record it takes as long as its
 * matrix products.
 * Products in fp8-block and mxfp8 without a record use the record of fp8. Grouped products without a record of their
 * own have the tiles of single products.
 * A memory class without a record uses the record of CLASS_OTHER; CLASS_EXPERT_ROWS first uses the record of grouped
 * products, if that has the kernels around them. */
struct kernel_seconds { double seconds; enum cost_basis basis; };
struct kernel_seconds profile_product(const struct profile *profile, enum dtype dtype, const struct product *product);
/* matmul_seconds, remembered: a network has few different products, and asks for each of them hundreds of times. cache
 * NULL: nothing is remembered. */
double matmul_remembered(struct cache *cache, const struct matmul_fit *fit, int sms, const struct product *product);
struct kernel_seconds profile_kernel(const struct profile *profile, const struct kernel *kernel,
                                     enum attention_generation generation);

/* The mean error of the records of a kind of kernels on samples that their fits did not use, each record counting as
 * often as it has such samples; NaN: none of them has any. */
double profile_error(const struct profile *profile, enum kernel_kind kind);

#endif
