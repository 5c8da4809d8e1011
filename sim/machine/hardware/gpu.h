/* gpu: the data sheet of one type of GPU, from a file of platforms/gpus/, which gives the source of each number. */
#ifndef DTSIM_GPU_H
#define DTSIM_GPU_H

#include "config/field.h"

/* Number formats of compute kernels. Of 8 bits: FP8, one scale for a tensor (or a row); FP8_BLOCK, a scale for 1 x 128
 * activations and for 128 x 128 weights (DeepSeek-V3 Technical Report 2024, section 3.3.2); MXFP8, a scale of a byte
 * for 32 values (OCP Microscaling Formats 1.0). Of 4 bits: NVFP4, a scale of a byte for 16 values and one for the
 * tensor (NVIDIA, Pretraining Large Language Models with NVFP4, 2025). */
enum dtype {
    DTYPE_FP32,
    DTYPE_TF32,
    DTYPE_FP16,
    DTYPE_BF16,
    DTYPE_FP8,
    DTYPE_FP8_BLOCK,
    DTYPE_MXFP8,
    DTYPE_NVFP4,
    DTYPE_COUNT
};
extern const char *const dtype_names[];                 /* NULL-terminated */
double dtype_bytes(enum dtype dtype);                   /* of a value, without its share of a scale */
double dtype_scaled_bytes(enum dtype dtype);            /* with its share of the scale of its 128, 32 or 16 values */

struct gpu {
    const struct node *node;
    const char *name;                /* the file's name: "a100-80gb" */
    const char *base;                /* the GPU whose data sheet this one changes; NULL: none. Kernels are that GPU's,
                                      * scaled by the data sheets */
    const char *title;               /* "NVIDIA A100-SXM4-80GB" */
    double memory;                   /* B */
    double memory_bandwidth;         /* B/s, data sheet */
    double memory_efficiency;        /* achievable share of memory_bandwidth */
    struct gpu_rates {
        const struct node *node;
        double fp32, tf32, fp16, bf16, fp8, nvfp4; /* FLOP/s of dense products, on tensor cores if any; 0: none */
    } peak;
    double matmul_efficiency;        /* achievable share of the peak for large matrix products */
    double attention_efficiency;     /* share of the peak that fused attention achieves; NaN: as products */
    double launch_overhead;          /* s per kernel */
    double host_speed;               /* of the processor that launches its kernels, over DGX A100's */
    double compute_capability;       /* of NVIDIA's GPUs, 8.6: which programs the chip can run; 0: not known, or not theirs */
    int multiprocessors;             /* 0: not known */
    double unvectorized_rate;        /* values/s of element-wise kernels that compute an address for each value; 0: not
                                      * known, and memory alone limits them */
    struct gpu_power {               /* W, of a GPU with its share of its node */
        const struct node *node;
        double idle;                 /* it waits */
        double compute;
        double communication;        /* and it does not compute meanwhile */
    } *power;                        /* NULL: nothing is known; its node NULL: estimated from board_power */
    double board_power;              /* W, the most that the board takes; NaN: not known */
    double power_error;              /* the share of `power` that it may be off (gpu_power_error) */
    const struct gpu_ratios *changed;    /* NULL: kernels run as on the GPU of the file, or of its base */
};
extern const struct table gpu_table;
extern const struct table gpu_power_table;
/* The share by which the power of such a GPU may be off where it takes so many W; `power` is not NULL. */
double gpu_power_error(const struct gpu *gpu, double watts);

/* What a scenario, or a file with a base, changes of a data sheet on which kernels' times depend: the new value over the
 * value of the GPU whose kernels were measured. Bandwidth and peaks are the achieved ones: times their efficiency. */
struct gpu_ratios { double memory_bandwidth, peak[DTYPE_COUNT], multiprocessors; };

/* The value of a cluster's `gpu:`. Given values replace the data sheet's. */
struct gpu_spec {
    const struct node *node;
    const char *name;                /* platforms/gpus/NAME.yaml, or a path */
    double memory;                   /* B; NaN: the data sheet's */
    double memory_bandwidth;         /* B/s; NaN: the data sheet's */
    double matmul_efficiency;        /* NaN: the data sheet's */
    struct gpu_rates *peak;          /* NULL, or rates; a rate that is NaN is the data sheet's */
    int multiprocessors;             /* 0: the data sheet's */
};
extern const struct table gpu_spec_table;

/* Reads platforms/gpus/NAME.yaml, or a path (with a '/' or ".yaml"). `loc` is the place of the name. */
int gpu_load(struct arena *arena, const char *name, struct loc loc, struct gpu *gpu, struct error *err);
/* Replaces what the spec gives. */
void gpu_change(struct arena *arena, const struct gpu_spec *spec, struct gpu *gpu);
/* What the spec changes, as keys and values on one line: "memory: 96 GB, peak: {bf16: 800 TFLOP/s}"; "": nothing. */
const char *gpu_changes(struct arena *arena, const struct gpu_spec *spec);
/* FLOP/s on the data sheet; 0: no rate of its own. The tensor cores have one rate for all formats of 8 bits. */
double gpu_rate(const struct gpu *gpu, enum dtype dtype);
double gpu_peak(const struct gpu *gpu, enum dtype dtype);    /* FLOP/s; for a format without a rate of its own fp32's */

#endif
