/* product: C = A B of one shape through cuBLASLt, for operands anywhere in the device's memory. */
#ifndef DTSIM_PRODUCT_H
#define DTSIM_PRODUCT_H

#include <cublasLt.h>

#include "device.h"

/* Which operands of a job a product takes: A, B (with scales: the first of their parts), C, and what scales C (-1: 1).
 * `count` products lie one after another in them. */
struct product_operands {
    int a, b, c, alpha;
    int64_t count;
};

/* Zero-initialise; product_close when done, also after an error. */
struct product {
    struct bench_case shape;     /* of one product: its format, layout, batch, m, n, k */
    struct product_operands with;
    cublasLtMatmulDesc_t how;
    cublasLtMatrixLayout_t a, b, c;
    cublasLtMatmulPreference_t preference;
    cublasLtMatmulAlgo_t algorithm;
};

/* Describes the product and takes the algorithm that the library's heuristic names first. -1 with job->why. */
int product_open(struct job *job, struct product *product);
/* Enqueues product `index` of the job's set; `workspace` has the device's workspace_size. -1 with job->why. */
int product_call(struct job *job, const struct product *product, int set, int64_t index, cudaStream_t stream,
                 void *workspace);
/* Quantises operand `from`, in bf16, as A. */
int product_quantise(struct job *job, const struct product *product, int set, int from);
/* The scale of C, after A or B was quantised; nothing for formats that need none. */
int product_alpha(struct job *job, const struct product *product, int set);
void product_close(struct product *product);
/* The place of matrix `index` of `count` that an operand holds. */
void *product_matrix(const struct job *job, int set, int operand, int64_t index, int64_t count);
cudaDataType_t product_type(enum bench_dtype dtype);

#endif
