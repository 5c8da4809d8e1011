/* cost: the time of a kernel on a GPU, from a profile that is fitted to measured kernels or from the roofline. */
#ifndef DTSIM_COST_H
#define DTSIM_COST_H

#include "hardware/gpu.h"
#include "kernels/skew.h"

enum kernel_kind {
    KERNEL_MATMUL,    /* `batch` products of an m x k by a k x n matrix; a convolution as its implicit product */
    KERNEL_GROUPED,   /* as a product, but in one kernel for `batch` experts, whose rows are m (layout tn: k) in all */
    KERNEL_ATTENTION, /* fused attention: `batch` = samples x heads, m queries, n keys, heads of size k; its phase
                       * says forward or backward; the share of the m x n scores that it computes is `flop` over
                       * 4 batch m n k (backward: 10 batch m n k) */
    KERNEL_MEMORY,    /* bound by memory traffic: element-wise, normalisation, softmax, lookup, optimizer */
    KERNEL_KIND_COUNT
};
extern const char *const kernel_kind_names[];    /* "products", ...; NULL-terminated */
/* The part of the training step to which a kernel belongs. */
enum phase { PHASE_FORWARD, PHASE_BACKWARD_INPUT, PHASE_BACKWARD_WEIGHT, PHASE_UPDATE, PHASE_COUNT };

/* The layout of a product's operands in memory, in row-major order: A is m x k (n) or k x m (t), B is k x n (n) or n x
 * k (t). A layer that stores its weights as outputs x inputs uses nt in the forward, nn for the gradient of its input
 * and tn for the gradient of its weights. */
enum matmul_layout { LAYOUT_NN, LAYOUT_NT, LAYOUT_TN, LAYOUT_COUNT };
extern const char *const layout_names[];         /* NULL-terminated */

/* The classes in which kernels bound by memory are measured. */
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
    CLASS_EXPERT_ROWS,   /* rows brought into the order of experts, and back with weights */
    CLASS_COUNT
};
extern const char *const memory_class_names[];   /* as in files of samples: "layernorm-forward"; NULL-terminated */

/* The products of a transformer. NONE: a product of another model, or no product. */
#define PRODUCTS(X) \
    X(PRODUCT_NONE, "") \
    X(PRODUCT_QKV, "qkv") X(PRODUCT_Q, "q") X(PRODUCT_K, "k") X(PRODUCT_V, "v") \
    X(PRODUCT_Q_DOWN, "q-down") X(PRODUCT_Q_UP, "q-up")            /* of latent attention */ \
    X(PRODUCT_KV_DOWN, "kv-down") X(PRODUCT_KV_UP, "kv-up") \
    X(PRODUCT_SCORES, "scores") X(PRODUCT_VALUES, "values")        /* of two activations, a head each */ \
    X(PRODUCT_PROJECTION, "projection") X(PRODUCT_MLP_UP, "mlp-up") X(PRODUCT_MLP_DOWN, "mlp-down") \
    X(PRODUCT_ROUTER, "router") X(PRODUCT_EXPERT_UP, "expert-up") X(PRODUCT_EXPERT_DOWN, "expert-down") \
    X(PRODUCT_SHARED_UP, "shared-up") X(PRODUCT_SHARED_DOWN, "shared-down") \
    X(PRODUCT_LORA, "lora")     /* of an adapter */ \
    X(PRODUCT_RANDOM, "random-projection")      /* of a random matrix and an input or gradient */ \
    X(PRODUCT_TRANSFORM, "transform") X(PRODUCT_LOGITS, "logits") \
    X(PRODUCT_PREDICTION, "prediction")     /* of hidden states beside the next token's embedding */ \
    X(PRODUCT_EXPERT_LATENT, "expert-latent")   /* hidden states at the width that experts get, and back */ \
    X(PRODUCT_MIXER_IN, "mixer-in")             /* the inputs of a recurrence */ \
    X(PRODUCT_INPUT, "input")                   /* patches of an image, or windows of a sound */ \
    X(PRODUCT_KV, "kv")         /* keys and values of another stack's output */
enum product_id { PRODUCTS(ENUM_VALUE) PRODUCT_COUNT };
extern const char *const product_names[];        /* "qkv", "scores", ...; of NONE "" */

struct kernel {
    const char *name;            /* for people: the product's, or "softmax", ... */
    enum product_id product;     /* MATMUL, GROUPED */
    enum kernel_kind kind;
    enum phase phase;
    enum dtype dtype;            /* of the product's operands */
    enum matmul_layout layout;   /* MATMUL, GROUPED */
    enum memory_class class;     /* MEMORY */
    double batch, m, n, k;       /* MATMUL, GROUPED, ATTENTION; MATMUL with m 0: only `flop` and `bytes` are known */
    double flop;                 /* multiply and add count as two; MATMUL: 2 batch m n k; GROUPED: 2 m n k; MEMORY: 0 */
    double efficiency;           /* MATMUL with m 0: its rate / the rate of the GPU's large products; 0 means 1 */
    double bytes;                /* read and written in device memory */
    double unvectorized;         /* MEMORY: number of values for which a thread computes an address; 0: none */
    int launches;                /* number of equal kernels, one after another */
    struct skew skew;            /* GROUPED: of the rows among the experts */
    int parts;                   /* GROUPED: the number of kernels that the host launches and that run at the same time;
                                    0: one */
    bool causal;                 /* ATTENTION: each query sees only the keys up to its own position, */
    double window;               /* and at most this number of them, its own included; 0: all */
    bool unmeasured;             /* nobody has measured a kernel that computes this: it is timed as others of its FLOP or bytes */
    double sliced;               /* of slices of a sample's tokens: scores of all its keys / computed scores; else 0 */
};

#define COST_SOURCES(X) X(COST_AUTO, "auto") X(COST_CALIBRATED, "calibrated") X(COST_ROOFLINE, "roofline")
enum cost_source { COST_SOURCES(ENUM_VALUE) };    /* AUTO becomes one of the others */
extern const char *const cost_source_names[];    /* NULL-terminated; a choice of costs.gpu */

/* Generations of fused attention kernels: xFormers' memory-efficient attention in CUTLASS, FlashAttention (Dao et al. 2022) in Triton, FlashAttention-2 (Dao 2023),
 * FlashAttention-3 (Shah et al. 2024) and on Blackwell the inference kernels of TensorRT-LLM, cuDNN 9 on Hopper and
 * Blackwell. NEWEST: the newest that was measured. */
#define ATTENTION_GENERATIONS(X) \
    X(ATTENTION_NEWEST, "newest") X(ATTENTION_EFFICIENT, "memory-efficient") X(ATTENTION_FLASH_1, "flash-1") X(ATTENTION_FLASH_2, "flash-2") \
    X(ATTENTION_FLASH_3, "flash-3") X(ATTENTION_CUDNN, "cudnn")
extern const char *const attention_generation_names[];     /* NULL-terminated */
/* What software calls: one of these; what PyTorch's scaled_dot_product_attention takes on the GPU; or no fused kernel, which
 * is transformer.flash_attention: false. */
#define ATTENTIONS(X) ATTENTION_GENERATIONS(X) X(ATTENTION_SDPA, "sdpa") X(ATTENTION_EAGER, "eager")
enum attention_generation { ATTENTIONS(ENUM_VALUE) };
/* What scaled_dot_product_attention takes of 16-bit values without a mask but the causal one, on that GPU: FlashAttention-2
 * from Ampere on and on GPUs that are not NVIDIA's, memory-efficient attention before it (pytorch v2.2 to v2.8,
 * aten/src/ATen/native/transformers/cuda/sdp_utils.cpp: priority_order, can_use_flash_attention, sm80 and later). Later
 * releases may take cuDNN's on Hopper and Blackwell (check_prefer_cudnn_attention). All others are what they are. */
enum attention_generation attention_called(enum attention_generation attention, const struct gpu *gpu);
/* The least compute capability of NVIDIA's GPUs that run such kernels: memory-efficient attention on Maxwell (sdp_utils.cpp:
 * can_use_mem_efficient_attention), FlashAttention 1 on Turing, FlashAttention-2 from Ampere on (Dao-AILab/flash-attention, README.md: "use FlashAttention 1.x for Turing GPUs"), cuDNN's fused attention too
 * (NVIDIA/TransformerEngine, pull request 393). Where a GPU lacks a newer generation the one before is called. */
double attention_capability(enum attention_generation generation);

/* Which cores compute batched half-precision products whose rows are not multiples of 16 bytes. */
#define UNALIGNED_BATCHES(X) X(UNALIGNED_TENSOR_CORES, "tensor-cores") X(UNALIGNED_CUDA_CORES, "cuda-cores")
enum unaligned_batches { UNALIGNED_BATCHES(ENUM_VALUE) };
extern const char *const unaligned_batches_names[];          /* NULL-terminated; a choice of costs.unaligned_batches */

/* How kernels are timed. */
struct cost_model {
    enum cost_source source;             /* calibrated or roofline */
    enum attention_generation attention; /* for calibrated */
    const struct gpu *gpu;
    const struct profile *profile;       /* for calibrated */
    enum unaligned_batches unaligned_batches;
};
/* What the time of a kernel stands on. */
enum cost_basis {
    BASIS_MEASURED,      /* kernels like it, of sizes in the measured range */
    BASIS_SIZES,         /* kernels like it, of other sizes; or only the FLOPs of the kernel are known */
    BASIS_LAYOUT,        /* the same kernels in another layout, number format or mask */
    BASIS_KERNELS,       /* other kernels: of another phase, or all that are bound by memory together */
    BASIS_GPU,           /* kernels of the GPU before the scenario changed its data sheet, scaled to the change */
    BASIS_DATA_SHEET,    /* the roofline */
    BASIS_COUNT
};
extern const char *const cost_basis_names[];     /* "measured", ...; NULL-terminated */

struct cost {
    double seconds;
    double extrapolated;                 /* s, the part of `seconds` of kernels unlike those the profile is fitted to */
    double unmeasured;                   /* s, the part of `seconds` of kernels that nobody has measured */
    enum kernel_kind kind;
    enum cost_basis basis;
};
/* Seconds of many kernels by what they stand on; `unmeasured`: those of them that nobody has measured. */
struct cost_bases { double seconds[KERNEL_KIND_COUNT][BASIS_COUNT], unmeasured; };
/* All of them; of one kind. */
double cost_bases_total(const struct cost_bases *bases);
double cost_bases_of(const struct cost_bases *bases, enum kernel_kind kind);
/* Adds `times` times more; multiplies all. */
void cost_bases_add(struct cost_bases *bases, const struct cost_bases *more, double times);
void cost_bases_scale(struct cost_bases *bases, double by);

/* The time of one kernel entry, all its launches together.
 * roofline: launches * (max(flop / (efficiency * matmul_efficiency * peak), of attention attention_efficiency where it is known,
 *           bytes / (memory_efficiency * memory_bandwidth)) + launch_overhead), flop and bytes per launch (Williams et
 *           al. 2009); nothing is extrapolated.
 * calibrated: launches * the time that the profile's record for such kernels gives (kernel_time.h), but at least flop /
 *           peak (for an efficiency above 1 the executed FLOPs, flop / efficiency), bytes / memory_bandwidth and
 *           launch_overhead. Kernels without a record, or outside the sizes to which it is fitted, count as
 *           extrapolated.
 * Unvectorized values take at least values / unvectorized_rate.
 * Unaligned batches on the CUDA cores take at least flop / (12.2 / 19.5 * fp32's peak): cuBLAS of CUDA 11.6 on A100,
 * bf16, 384 products of 1024 x 1024 by 1024 x 140, 12.2 TFLOP/s (85.6 with CUDA 11.7; pytorch/pytorch issue 83272). */
struct cost cost_kernel(const struct cost_model *model, const struct kernel *kernel);

/* FLOP of a launch by the conventions of published counts: fused attention with the scores that its causal mask hides
 * (Narayanan et al. 2021, appendix; LLM Foundry's MFU), but not those outside of its window; attention of a slice with
 * the scores of all of the sample's keys. Other kernels: `flop`. */
double kernel_whole_flop(const struct kernel *kernel);

#endif
