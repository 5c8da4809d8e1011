/* gpu: the data sheet of one type of GPU, from a file of platforms/gpus/, which gives the source of each number. */
#ifndef DTSIM_GPU_H
#define DTSIM_GPU_H

#include "config/field.h"

/* Number formats of compute kernels. */
enum dtype { DTYPE_FP32, DTYPE_TF32, DTYPE_FP16, DTYPE_BF16, DTYPE_FP8, DTYPE_COUNT };
extern const char *const dtype_names[];                 /* NULL-terminated */
double dtype_bytes(enum dtype dtype);

struct gpu {
    const struct node *node;
    const char *name;                /* the file's name: "a100-80gb" */
    const char *title;               /* "NVIDIA A100-SXM4-80GB" */
    double memory;                   /* B */
    double memory_bandwidth;         /* B/s, data sheet */
    double memory_efficiency;        /* achievable share of memory_bandwidth */
    struct gpu_rates {
        const struct node *node;
        double fp32, tf32, fp16, bf16, fp8;  /* FLOP/s of dense products, on tensor cores if there are any; 0: none */
    } peak;
    double matmul_efficiency;        /* achievable share of the peak for large matrix products */
    double launch_overhead;          /* s per kernel */
    int multiprocessors;             /* 0: not known */
};
extern const struct table gpu_table;

/* The value of a cluster's `gpu:`. */
struct gpu_spec {
    const struct node *node;
    const char *name;                /* platforms/gpus/NAME.yaml, or a path */
    double memory;                   /* B, instead of the data sheet's; NaN: that */
};
extern const struct table gpu_spec_table;

/* Reads platforms/gpus/NAME.yaml, or a path (with a '/' or ".yaml"). `loc` is the place of the name. */
int gpu_load(struct arena *arena, const char *name, struct loc loc, struct gpu *gpu, struct error *err);
double gpu_rate(const struct gpu *gpu, enum dtype dtype);    /* FLOP/s on the data sheet; 0: no rate of its own */
double gpu_peak(const struct gpu *gpu, enum dtype dtype);    /* FLOP/s; for a format without a rate of its own fp32's */

#endif
