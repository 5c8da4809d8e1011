/* stage_exchange: the exchanges within a layer's works, and which of them overlap with kernels; for stage.c
 * and lower/. */
#ifndef DTSIM_STAGE_EXCHANGE_H
#define DTSIM_STAGE_EXCHANGE_H

#include "stage/stage.h"

/* Adds what the context group exchanges for the attention of a forward, or of its recomputation. */
void exchanges_add_core(struct work_counts *counts, const struct parallelism *spec, const struct layer *layer);
void exchanges_add(struct work_cost *work, const struct parallelism *spec, const struct kernel_costs *costs,
                   const struct layer *layer, enum phase phase);
/* Adds, to a backward, the exchanges that its recomputation runs. Under recompute: operators the tensor group sums again,
 * unless a sum is kept or nobody needs it; under recompute: modules each module exchanges again. */
void exchanges_add_recomputed(struct work_cost *work, const struct parallelism *spec, const struct kernel_costs *costs,
                              const struct layer *layer, bool operators);
/* Counts a forward's gathers and scatters that overlap with pieces of products, and sets the pieces' times. */
void exchanges_cut(struct work_counts *forward, struct stage_columns *columns, const struct parallelism *spec,
                   const struct kernel_costs *costs, const struct layer *layer);
/* Counts the sums that overlap with products, in a backward that computes both gradients, and sets the products'
 * times. */
void exchanges_overlap(struct work_counts *backward, struct stage_columns *columns, const struct parallelism *spec,
                       const struct kernel_costs *costs, const struct layer *layer);
/* Adds the sizes of a layer's exchanges to its stage. All layers of a model that take part in an exchange exchange the same
 * number of bytes. */
void exchange_sizes_add(struct stage *stage, const struct layer *layer);
/* A layer's counts, all of whose exchanges one hiding hides. */
struct work_counts counts_hidden(struct work_counts counts, int hiding);
/* Adds what hides a layer's exchanges to the hidings of its stage, unless these have it already; returns its index there.
 * Layers share a hiding whose times are equal, or of which one has none: it has no exchange that these would hide. */
int hiding_add(struct stage_times *times, const struct hiding *own);
/* Adds the memory traffic of DeepSpeed's gathered boundaries (runtime/utils.py, PartitionedTensor.full): a buffer is
 * cleared; PyTorch's all_gather into a list of tensors gathers into another buffer, and copies it into the list
 * (ProcessGroupNCCL.cpp); the result is cloned. A forward does so once, for its input; a backward twice, for its output
 * and for the output's gradient. */
void assembly_add(struct stage_times *times, const struct stage *stages, const struct scenario *scenario,
                  const struct kernel_costs *costs);

/* A product in n pieces while its input is gathered in `gather` s: first the piece of the GPU's own rows, then each
 * piece as its rows arrive around the ring. Copy engines pass the rows on, so products keep all multiprocessors. Returns
 * the seconds in addition to the whole product's. Source, also of the next function: NVIDIA/TransformerEngine,
 * initialize_ub's "ring_exchange" and "pipeline". */
double gather_in_pieces(double gather, const struct pieces *product, int n);
/* A product in pieces whose results are summed in `scatter` s: each piece's sum overlaps with the next piece, from which
 * it takes a share of the multiprocessors; the last sum is exposed. Returns the seconds in addition to the whole
 * product's. */
double scatter_in_pieces(double scatter, const struct pieces *product, double share);

/* s of exchanges of the tensor group that the kernels beside a column-parallel product do not hide: a gather of `gather` s,
 * a sum of `scatter` s, in a group of n whose exchanges take a share of the multiprocessors. */
struct column_exchange { double gather, scatter, share; int n; };
/* In a backward (EXCHANGE_OVERLAPPED): sums overlap with the product for weights, gathers before them with the product for
 * inputs (Korthikanti et al. 2022, section 4.2.2). The backward of a row-parallel product gathers its input too: exposed,
 * as in every EXCHANGE_TENSOR, or overlapped with pieces of that product. */
double column_overlapped(const struct column_exchange *exchange, const struct stage_columns *columns);
/* In a forward (EXCHANGE_PIECES): gathers and sums overlap with pieces of products. */
double column_pieces(const struct column_exchange *exchange, const struct stage_columns *columns);

/* The group around which keys and values are passed: the context group, or one ring of a hybrid one. */
enum group_kind context_ring(const struct parallelism *spec);
/* B that a GPU passes on in a step of the backward, where its own keys and values take `bytes` B: gradients in fp32
 * alone, where they go apart, or both. */
double context_next_bytes(const struct scenario *scenario, double bytes);

/* Steps of attention block by block, in a context group of n: s that an exchange of keys and values takes, `pass`, of all
 * at once where they are gathered; of their gradients alone, or of both together, `next`; and of a step's kernels. */
struct context_steps {
    int n;
    bool gathered;           /* keys and values come once, not at every step */
    bool apart;              /* `next` is of gradients alone */
    bool waits;              /* nothing overlaps */
    double pass, next, forward, backward;
};
/* Without `pass` and `next`. Under the zigzag split all steps attend to equally many keys, so each step takes 1/n of the
 * attention. */
struct context_steps context_steps_of(const struct scenario *scenario, const struct hiding *hiding);
/* The seconds of exchanges that kernels do not hide. Ring attention (Liu et al. 2023, section 3): in each of n steps a GPU
 * attends to one block of keys and values, and the block goes on to the next GPU, n - 1 times. In the backward the
 * gradients of a block follow it a step later: the first step passes the block, the last step its gradients, all other
 * steps both (Transformer Engine). Or gradients go apart, after each step, and the last ones after the last step
 * (PyTorch, _templated_ring_attention_backward). */
double steps_forward(const struct context_steps *steps);
double steps_backward(const struct context_steps *steps);

/* B of the boundary after a stage, of all GPUs that hold the stage and of all samples of a micro-batch. */
double boundary_whole(const struct scenario *scenario, const struct stage *stages, int stage);
/* Of it B that each GPU of a pipeline rank gets, which is on one side of the boundary. */
double boundary_arriving(const struct scenario *scenario, const struct stage *stages, int stage, int rank);

#endif
