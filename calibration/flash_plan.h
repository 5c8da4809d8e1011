/* flash_plan: fused attention as a cuDNN execution plan, for the GPU of a handle or for one that is only described. */
#ifndef DTSIM_FLASH_PLAN_H
#define DTSIM_FLASH_PLAN_H

#include <cudnn.h>

#include "base/base.h"
#include "case.h"

enum { FLASH_TENSORS = 40, FLASH_OPS = 32, FLASH_CONFIGS = 4 };

/* The real tensors of a plan, in the order of its pointers. Q, O and their gradients are batch x m x k, K, V and theirs
 * batch x n x k, packed, of the case's format; the others hold fp32: STATS (log of the sum of exponentials) and DELTA
 * (rows of dO * O) batch x m, DQ_SUM batch x m x k, the scalars one value each, in host memory. */
enum flash_tensor {
    FLASH_Q, FLASH_K, FLASH_V, FLASH_O, FLASH_STATS, FLASH_SCALE, FLASH_MASKED, FLASH_ONE, FLASH_DO, FLASH_DELTA,
    FLASH_DQ_SUM, FLASH_DQ, FLASH_DK, FLASH_DV, FLASH_REAL,
};
bool flash_uses(enum bench_kernel kernel, enum flash_tensor tensor);
size_t flash_bytes(const struct bench_case *one, enum flash_tensor tensor);     /* 0 for the scalars */

/* Zero-initialise; flash_plan_release when done. */
struct flash_plan {
    cudnnBackendDescriptor_t tensors[FLASH_TENSORS], made[2 * FLASH_OPS], ops[FLASH_OPS];
    cudnnBackendDescriptor_t configs[FLASH_CONFIGS], graph, heuristic, plan;
    int ntensors, nmade, nops;
    int64_t workspace;                   /* bytes */
    cudnnStatus_t status;                /* of the first call that failed */
    const char *failed;                  /* which it was */
};

/* For which GPU: a handle's, on which the plan can be executed; or NULL, and a finalized
 * CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR. */
struct flash_target {
    cudnnHandle_t handle;
    cudnnBackendDescriptor_t device;
};
/* 0, or -1 with plan->failed and plan->status. */
int flash_plan_init(struct flash_plan *plan, const struct flash_target *target, const struct bench_case *one);
void flash_plan_release(struct flash_plan *plan);
/* A variant pack of the plan on these addresses (FLASH_REAL of them), or NULL; cudnnBackendDestroyDescriptor it. */
cudnnBackendDescriptor_t flash_plan_pack(struct flash_plan *plan, const struct bench_case *one, void *const *data,
                                         void *workspace);

#endif
