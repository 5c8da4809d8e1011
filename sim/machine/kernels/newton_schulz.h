/* newton_schulz: what it costs to orthogonalize the matrices of a model, as Muon does (Jordan et al. 2024, "Muon: An
 * optimizer for hidden layers in neural networks"; KellerJordan/Muon, muon.py): five iterations of products in half
 * precision. */
#ifndef DTSIM_NEWTON_SCHULZ_H
#define DTSIM_NEWTON_SCHULZ_H

#include "hardware/precision.h"
#include "kernels/cost.h"

enum { NEWTON_SCHULZ_STEPS = 5, NEWTON_SCHULZ_KERNELS = 5, MATRIX_PARTS = 3, MATRIX_SHAPES = 48 };

/* Which of a matrix's dimensions the GPUs of a tensor group divide among them. */
enum matrix_cut { MATRIX_WHOLE, MATRIX_ROWS, MATRIX_COLUMNS };
/* A weight of a block on one GPU. */
struct matrix {
    double out, in;              /* rows and columns that the GPU has; 0 x 0: no matrix */
    double parts[MATRIX_PARTS];  /* rows of queries, keys and values, which one tensor has; 0: it has one thing alone */
    enum matrix_cut cut;
    bool expert;                 /* it belongs to an expert */
    double count;                /* of this shape in a tensor: one an expert of the GPU, or two of a gated MLP */
};
/* Matrices by their shape, each shape once. */
struct matrices {
    struct matrix items[MATRIX_SHAPES];
    size_t count;
};
/* Adds the matrix's count to that of its shape. */
void matrices_add(struct matrices *sum, const struct matrix *matrix);
/* Elements of all of them. */
double matrices_elements(const struct matrices *matrices);

/* How one shape is orthogonalized. */
struct orthogonalization {
    int tensor;                  /* GPUs that divide the matrix; 1: none do */
    enum muon_tensor mode;       /* what these do */
    enum newton_schulz method;
    enum dtype dtype;            /* of the products */
    bool split;                  /* parts are matrices of their own */
    double value;                /* B of an element of the momentum */
};
/* The kernels for all `count` matrices of the shape, on one GPU; returns how many entries were written, of MATRIX_PARTS
 * times NEWTON_SCHULZ_KERNELS at most.
 *
 * Of an m x n matrix, m <= n after a transposition, an iteration has the products X X' (2 m^2 n FLOP), A A (2 m^3) and
 * B X (2 m^2 n); what is added to the last two is read, and their results are copied there: 6 B of each element of
 * A and X. Before and after: the norm is taken (read), divided by (read, written), the result is brought to half
 * precision (read, written) and back, and scaled twice (Emerging-Optimizers, muon_utils.py, muon.py).
 * gram: iterates on X X' and multiplies X twice alone (DeepSpeed, runtime/zero/muon/original_muon.py,
 * zeropower_via_gram_newtonschulz): 4 products with X instead of 10, 14 squares instead of 5; square matrices as
 * standard.
 * A divided matrix is gathered and orthogonalized by all its GPUs (duplicated), or each takes its part for a matrix
 * (blockwise), or products sum over the divided dimension and A is summed over the GPUs (distributed; Megatron Core,
 * emerging_optimizers.py, TensorParallelMuon; muon_utils.py, newton_schulz_tp). */
size_t newton_schulz_kernels(const struct matrix *matrix, const struct orthogonalization *how, struct kernel *kernels);
/* FLOP of these kernels. */
double newton_schulz_flop(const struct matrix *matrix, const struct orthogonalization *how);
/* What the GPUs of a tensor group exchange for all matrices of the shape: all-gathers of momentum (duplicated) or
 * all-reduces of A (distributed): how many, and B of all together as collective.h counts them. */
struct orthogonal_exchanges { double count, bytes; };
struct orthogonal_exchanges newton_schulz_exchanges(const struct matrix *matrix, const struct orthogonalization *how);

/* Whole matrices are handed out to `owners` GPUs, the most expensive ones first, each to the owner with the least FLOP
 * so far (Megatron Core, layer_wise_optimizer.py, _compute_per_buffer_param_layout): the matrices of the owner with most
 * FLOP, and the elements of the owner that has most of them. */
struct owned_matrices {
    struct matrices slowest;
    double elements;
};
void matrices_owned(const struct matrices *all, int owners, struct owned_matrices *owned);

#endif
