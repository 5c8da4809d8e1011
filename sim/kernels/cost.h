/* cost: how many seconds a kernel takes on a GPU: from a profile fitted to measured kernels, or from the roofline. */
#ifndef DTSIM_COST_H
#define DTSIM_COST_H

#include "hardware/gpu.h"

enum kernel_kind {
    KERNEL_MATMUL,       /* `batch` products of an m x k by a k x n matrix; a convolution as its implicit product */
    KERNEL_ATTENTION,    /* fused: `batch` heads of samples, m queries, n keys, heads of size k; forward by its phase;
                          * what of m x n it visits: `flop` over 4 (backward 10) batch m n k */
    KERNEL_MEMORY,       /* element-wise, normalisation, softmax, lookup, optimizer: bound by memory traffic */
};
/* Which part of the training step a kernel belongs to. */
enum phase { PHASE_FORWARD, PHASE_BACKWARD_INPUT, PHASE_BACKWARD_WEIGHT, PHASE_UPDATE, PHASE_COUNT };

/* How the operands of a product lie in memory, row by row: A as m x k or (t) as k x m, B as k x n or (t) as n x k. A
 * layer that keeps its weights as outputs x inputs has nt forward, nn for its input's gradient, tn for its weights'. */
enum matmul_layout { LAYOUT_NN, LAYOUT_NT, LAYOUT_TN, LAYOUT_COUNT };
extern const char *const layout_names[];         /* NULL-terminated */

/* Kernels bound by memory, as they are measured. */
enum memory_class {
    CLASS_OTHER,         /* any element-wise kernel */
    CLASS_SOFTMAX_FORWARD, CLASS_SOFTMAX_BACKWARD,
    CLASS_LAYERNORM_FORWARD, CLASS_LAYERNORM_BACKWARD,
    CLASS_RMSNORM_FORWARD, CLASS_RMSNORM_BACKWARD,
    CLASS_GELU_FORWARD, CLASS_GELU_BACKWARD,
    CLASS_SWIGLU_FORWARD, CLASS_SWIGLU_BACKWARD,
    CLASS_DROPOUT_RESIDUAL_FORWARD, CLASS_DROPOUT_RESIDUAL_BACKWARD,
    CLASS_EMBEDDING_FORWARD, CLASS_EMBEDDING_BACKWARD,
    CLASS_CROSS_ENTROPY_FORWARD, CLASS_CROSS_ENTROPY_BACKWARD,
    CLASS_ADAM,          /* the optimizer's update */
    CLASS_REDUCTION, CLASS_COPY,
    CLASS_COUNT
};
extern const char *const memory_class_names[];   /* as in files of samples: "layernorm-forward"; NULL-terminated */

/* The products of a transformer. NONE: a product of another model, or no product. */
enum product_id {
    PRODUCT_NONE,
    PRODUCT_QKV, PRODUCT_Q, PRODUCT_K, PRODUCT_V,
    PRODUCT_Q_DOWN, PRODUCT_Q_UP, PRODUCT_KV_DOWN, PRODUCT_KV_UP,    /* latent attention */
    PRODUCT_SCORES, PRODUCT_VALUES,                                  /* of two activations, a head each */
    PRODUCT_PROJECTION, PRODUCT_MLP_UP, PRODUCT_MLP_DOWN,
    PRODUCT_ROUTER, PRODUCT_EXPERT_UP, PRODUCT_EXPERT_DOWN, PRODUCT_SHARED_UP, PRODUCT_SHARED_DOWN,
    PRODUCT_LORA,                                                    /* of an adapter */
    PRODUCT_TRANSFORM, PRODUCT_LOGITS,
    PRODUCT_COUNT
};
extern const char *const product_names[];        /* "qkv", "scores", ...; of NONE "" */

struct kernel {
    const char *name;            /* for people: the product's, or "softmax", ... */
    enum product_id product;        /* MATMUL */
    enum kernel_kind kind;
    enum phase phase;
    enum dtype dtype;            /* of the product's operands */
    enum matmul_layout layout;          /* MATMUL */
    enum memory_class class;     /* MEMORY */
    double batch, m, n, k;       /* MATMUL, ATTENTION; MATMUL with m 0: only `flop` and `bytes` are known */
    double flop;                 /* multiply and add count as two; MATMUL: 2 batch m n k; MEMORY: 0 */
    double efficiency;           /* MATMUL with m 0: its rate over that of the GPU's large products; 0: 1 */
    double bytes;                /* read and written in device memory */
    int launches;                /* how many kernels of this kind and size one after another */
    bool causal;                 /* ATTENTION: each query sees the keys up to its own */
    bool loss;                   /* of the loss, not of the model's output */
    bool attention_core;         /* scores, softmax, dropout, values: what selective recomputation redoes */
    bool tail;                   /* FORWARD: neither its result nor what comes behind it is needed by the backward */
};

#define COST_SOURCES(X) X(COST_AUTO, "auto") X(COST_CALIBRATED, "calibrated") X(COST_ROOFLINE, "roofline")
enum cost_source { COST_SOURCES(ENUM_VALUE) };    /* AUTO: until it is resolved */
extern const char *const cost_source_names[];    /* NULL-terminated; a choice of costs.gpu */

/* Generations of fused attention: FlashAttention (Dao et al. 2022) as its Triton kernels compute it, FlashAttention-2
 * (Dao 2023), FlashAttention-3 and cuDNN on Hopper (Shah et al. 2024). NEWEST: the newest that was measured. */
#define ATTENTION_GENERATIONS(X) \
    X(ATTENTION_NEWEST, "newest") X(ATTENTION_FLASH_1, "flash-1") X(ATTENTION_FLASH_2, "flash-2") \
    X(ATTENTION_FLASH_3, "flash-3")
enum attention_generation { ATTENTION_GENERATIONS(ENUM_VALUE) };
extern const char *const attention_generation_names[];     /* NULL-terminated; a choice of costs.attention */

/* What computes batched products of half formats whose rows are no multiples of 16 bytes. */
#define UNALIGNED_BATCHES(X) X(UNALIGNED_TENSOR_CORES, "tensor-cores") X(UNALIGNED_CUDA_CORES, "cuda-cores")
enum unaligned_batches { UNALIGNED_BATCHES(ENUM_VALUE) };
extern const char *const unaligned_batches_names[];          /* NULL-terminated; a choice of costs.unaligned_batches */

/* What kernels are timed by. */
struct cost_model {
    enum cost_source source;             /* calibrated or roofline */
    enum attention_generation attention; /* calibrated */
    const struct gpu *gpu;
    const struct profile *profile;       /* calibrated */
    enum unaligned_batches unaligned_batches;
};
struct cost {
    double seconds;
    double extrapolated;                 /* of them, of kernels unlike those that the profile was fitted to */
};

/* One kernel entry (all its launches).
 * roofline: launches * (max(flop / (efficiency * matmul_efficiency * peak),
 *           bytes / (memory_efficiency * memory_bandwidth)) + launch_overhead), flop and bytes per launch (Williams et
 *           al. 2009); nothing is extrapolated.
 * calibrated: launches * kernel_time of the profile's record for such kernels, but never under flop / peak (of what
 *           is multiplied: flop / efficiency, where that is above 1), bytes / memory_bandwidth or launch_overhead. What
 *           has no record, or lies outside the sizes that it was fitted to, counts as extrapolated.
 * Unaligned batches on the CUDA cores take at least flop / (12.2 / 19.5 * fp32's peak): cuBLAS of CUDA 11.6 on A100,
 * bf16, 384 products of 1024 x 1024 by 1024 x 140, 12.2 TFLOP/s (85.6 with CUDA 11.7; pytorch/pytorch issue 83272). */
struct cost cost_kernel(const struct cost_model *model, const struct kernel *kernel);

#endif
