/* precision: in which formats weights, gradients and optimizer states are stored, and what each parameter's hold and
 * move. */
#ifndef DTSIM_PRECISION_H
#define DTSIM_PRECISION_H

#include "hardware/gpu.h"

#define PRECISIONS(X) \
    X(PRECISION_FP32, "fp32") \
    X(PRECISION_TF32, "tf32") X(PRECISION_MIXED_FP16, "mixed-fp16") X(PRECISION_MIXED_BF16, "mixed-bf16") \
        X(PRECISION_BF16, "bf16") X(PRECISION_MIXED_FP8, "mixed-fp8") X(PRECISION_MIXED_FP8_BLOCK, "mixed-fp8-block") \
            X(PRECISION_MIXED_MXFP8, "mixed-mxfp8") X(PRECISION_MIXED_NVFP4, "mixed-nvfp4")
/* BF16 is a name: a scenario that is loaded has what it stands for (scenario_lay_bf16). */
enum precision { PRECISIONS(ENUM_VALUE) };
#define OPTIMIZERS(X) \
    X(OPTIMIZER_ADAM, "adam") X(OPTIMIZER_ADAM_8BIT, "adam-8bit") X(OPTIMIZER_MOMENTUM, "momentum") \
    X(OPTIMIZER_SGD, "sgd") X(OPTIMIZER_ADAFACTOR, "adafactor") \
    X(OPTIMIZER_ADAFACTOR_MOMENTUM, "adafactor-momentum") X(OPTIMIZER_LAMB, "lamb") \
    X(OPTIMIZER_ADAM_HALF, "adam-half") X(OPTIMIZER_MUON, "muon")
enum optimizer { OPTIMIZERS(ENUM_VALUE) };
#define MASTERS(X) \
    X(MASTER_FP32, "fp32") X(MASTER_REMAINDERS, "remainders") X(MASTER_HALF, "half") X(MASTER_NONE, "none")
enum master { MASTERS(ENUM_VALUE) };
#define FP8_WEIGHTS(X) X(FP8_WEIGHTS_CAST, "cast") X(FP8_WEIGHTS_KEPT, "kept") X(FP8_WEIGHTS_PRIMARY, "primary")
enum fp8_weights { FP8_WEIGHTS(ENUM_VALUE) };
#define GRADIENTS(X) \
    X(GRADIENTS_HALF, "half") X(GRADIENTS_FP32, "fp32") X(GRADIENTS_CONVERTED, "converted") \
    X(GRADIENTS_WIDENED, "widened")
enum gradients { GRADIENTS(ENUM_VALUE) };
#define MUON_TENSORS(X) \
    X(MUON_TENSOR_DUPLICATED, "duplicated") X(MUON_TENSOR_BLOCKWISE, "blockwise") \
    X(MUON_TENSOR_DISTRIBUTED, "distributed")
enum muon_tensor { MUON_TENSORS(ENUM_VALUE) };
#define NEWTON_SCHULZ(X) X(NEWTON_SCHULZ_STANDARD, "standard") X(NEWTON_SCHULZ_GRAM, "gram")
enum newton_schulz { NEWTON_SCHULZ(ENUM_VALUE) };

/* The formats of weights, gradients and optimizer states, and the passes over them. */
struct precision_spec {
    int format;                      /* enum precision */
    int optimizer;                   /* enum optimizer */
    int master;                      /* enum master */
    int fp8_weights;                 /* enum fp8_weights */
    int gradients;                   /* enum gradients */
    bool clip_gradients;             /* an update takes the norm of all gradients */
    bool fused_accumulation;         /* products of weight gradients add to the sums of the batch */
    bool fused_optimizer;            /* one kernel updates; false: Adam has one for each of its operations */
    int muon_tensor;                 /* enum muon_tensor */
    int newton_schulz;               /* enum newton_schulz */
    bool muon_split_qkv;             /* Muon takes queries, keys and values of one tensor apart */
};

/* Bytes per parameter of weights, gradients and fp32 master weights (Rajbhandari et al. 2020, ZeRO, section 3.1: 2, 2
 * and 4 for mixed precision), of a block's weights as replicas gather them under ZeRO 1 and 2, of gradients as they are
 * sent, of those that are held beside those that are summed, and of a tied embedding's gradients as its two stages sum
 * them (widened ones are widened for the sum over replicas alone: DeepSpeed, runtime/pipe/module.py,
 * allreduce_tied_weight_gradients, and runtime/engine.py, allreduce_bucket); what is read and written to make a layer's
 * gradients ready to be scattered under ZeRO 3, to add a micro-batch's gradient to the batch's, and by one update with
 * all that comes before it, of Muon's matrices without what newton_schulz_kernels has. */
struct parameter_bytes {
    double weights, gathered, gradients, sent, converted, tied, master, flattening, accumulation, update_traffic,
        matrix_traffic;
};
/* adds_up: several backwards add to the same gradients. */
struct parameter_bytes precision_bytes(const struct precision_spec *precision, bool adds_up);
/* What an optimizer keeps for each parameter. */
struct optimizer_states {
    double full;             /* B in fp32: 4 for each moment; of Muon: the moments of its AdamW */
    double matrix;           /* B of Muon's momentum, for each element of a matrix of a block; 0: all have `full` */
    int quantized;           /* of them, moments that large tensors keep in 8 bits */
    bool factored;           /* and a second moment as a sum over rows and one over columns */
    double norms;            /* B that an update reads and writes in addition to gradient, weights and moments */
};
struct optimizer_states precision_optimizer(const struct precision_spec *precision);
/* The format that computes. */
enum dtype precision_dtype(const struct precision_spec *precision);
/* Whether the products of weights in blocks have 8 or 4 bits; the format of these products. */
bool precision_is_narrow(const struct precision_spec *precision);
enum dtype precision_products(const struct precision_spec *precision);

#endif
