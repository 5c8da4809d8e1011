/* cost: how many seconds a kernel takes on a GPU. One interface: the roofline now, calibrated profiles beside it. */
#ifndef DTSIM_COST_H
#define DTSIM_COST_H

#include "gpu.h"

enum kernel_kind {
    KERNEL_MATMUL,       /* `batch` products of an m x k by a k x n matrix; a convolution as its implicit product */
    KERNEL_MEMORY,       /* element-wise, normalisation, softmax, lookup, optimizer: bound by memory traffic */
};
/* Which part of the training step a kernel belongs to. */
enum phase { PHASE_FORWARD, PHASE_BACKWARD_INPUT, PHASE_BACKWARD_WEIGHT, PHASE_UPDATE, PHASE_COUNT };

struct kernel {
    const char *name;            /* "qkv", "scores", "softmax", ... */
    enum kernel_kind kind;
    enum phase phase;
    enum dtype dtype;            /* of the product's operands */
    double batch, m, n, k;       /* MATMUL */
    double flop;                 /* multiply and add count as two; MATMUL: 2 batch m n k */
    double bytes;                /* read and written in device memory */
    int launches;                /* how many kernels of this kind and size one after another */
    bool loss;                   /* of the loss, not of the model's output */
    bool attention_core;         /* scores, softmax, dropout, values: what selective recomputation redoes */
};

enum cost_source { COST_ROOFLINE };
extern const char *const cost_source_names[];    /* NULL-terminated; a choice of costs.gpu */

/* Seconds of one kernel entry (all its launches).
 * roofline: launches * (max(flop / (matmul_efficiency * peak), bytes / (memory_efficiency * memory_bandwidth))
 *           + launch_overhead), flop and bytes per launch (Williams, Waterman, Patterson 2009). */
double cost_seconds(enum cost_source source, const struct gpu *gpu, const struct kernel *kernel);

#endif
