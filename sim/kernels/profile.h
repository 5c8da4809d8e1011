/* profile: what was measured of one type of GPU, as the few numbers of a model of its kernels: a file of
 * calibration/data/, which dtsim calibrate fit writes. */
#ifndef DTSIM_PROFILE_H
#define DTSIM_PROFILE_H

#include "kernels/kernel_time.h"

/* How well a record reproduces samples that its fit did not see: |predicted / measured - 1|. NaN: not known. */
struct fit_error {
    const struct node *node;
    int samples, held_out;
    double mean, median, max;
};
/* The sizes of the samples, inclusive; outside, a record extrapolates. */
struct covered_range { const struct node *node; double from, to; };

struct matmul_record {
    const struct node *node;
    struct list dtypes;                  /* of int, enum dtype */
    struct list layouts;                 /* of int, enum matmul_layout: those that were sampled */
    struct matmul_fit fit;
    struct covered_range batch, m, n, k;
    struct fit_error error;
};
struct attention_record {
    const struct node *node;
    int generation;                      /* enum attention_generation, but NEWEST */
    struct list dtypes;
    int direction;                       /* enum attention_direction */
    struct attention_fit fit;
    struct covered_range rows, keys, head;     /* batch x m; n; k */
    struct fit_error error;
};
struct memory_record {
    const struct node *node;
    int class;                           /* enum memory_class; other: for all classes without a record */
    struct list dtypes;                  /* int; empty: all */
    struct memory_fit fit;
    struct covered_range bytes;
    struct fit_error error;
};

struct profile {
    const struct node *node;
    const char *name;                    /* of the file: "a100-80gb" */
    const char *gpu;                     /* that was measured, as its driver calls it */
    const char *source;                  /* who measured what, and when */
    int sms;                             /* streaming multiprocessors */
    double launch_overhead;              /* s on the device of each kernel: start, ramp and tail */
    struct list matmul, attention, memory;     /* of the records above */
};
extern const struct table profile_table;

/* Reads calibration/data/NAME.yaml, or a path (with a '/' or ".yaml"). `loc` is where the name was written. */
int profile_load(struct arena *arena, const char *name, struct loc loc, struct profile *profile, struct error *err);

/* Seconds of one launch, and whether that is extrapolated. A fused attention is taken from the records of its
 * generation, or where there are none of an older one; causal or not from those of the other, if need be (the same
 * kernel visits other blocks); without any it takes as long as its products. A memory class without a record takes as
 * long as the others. */
struct kernel_seconds { double seconds; bool extrapolated; };
struct kernel_seconds profile_kernel(const struct profile *profile, const struct kernel *kernel,
                                     enum attention_generation generation);

#endif
