/* stage_exchange: counts the exchanges within a layer's works, and says which of them overlap with kernels; for stage.c. */
#ifndef DTSIM_STAGE_EXCHANGE_H
#define DTSIM_STAGE_EXCHANGE_H

#include "stage/layer_cost.h"

/* The place in the list, to which they are added where they are new, of a gather of that many B by the tensor group, and of what
 * an update exchanges for a matrix. */
int exchange_gather(struct exchange_list *list, double bytes);
int exchange_matrix(struct exchange_list *list, double bytes);
/* What hides exchanges of the layer, of stage_times.hidings; `find` alone: -1 where there is no such exchange. */
int exchange_hiding(struct exchange_list *list, const struct layer *layer, bool find);
/* Adds what the context group exchanges for the attention of a forward, or of its recomputation. */
void exchanges_add_core(const struct layer_costs *costs, struct work_counts *counts, const struct layer *layer);
void exchanges_add(const struct layer_costs *costs, struct work_cost *work, const struct layer *layer, enum phase phase);
/* Adds, to a backward, the exchanges that its recomputation runs. Under recompute: operators the tensor group sums again,
 * unless a sum is kept or nobody needs it; under recompute: modules each module exchanges again. */
void exchanges_add_recomputed(const struct layer_costs *costs, struct work_cost *work, const struct layer *layer,
                              bool operators);
/* Takes the sum of the block's last product from a recomputation that leaves out its end; returns the number of these sums. */
int exchanges_end(const struct layer_costs *costs, struct work_counts *counts, const struct layer *layer);
/* Counts a forward's gathers and scatters that overlap with pieces of products, and sets the pieces' times. */
void exchanges_cut(const struct layer_costs *costs, struct layer_cost *cost, const struct layer *layer);
/* Counts the sums that overlap with products, in a backward that computes both gradients, and sets the products'
 * times. */
void exchanges_overlap(const struct layer_costs *costs, struct layer_cost *cost, const struct layer *layer);
/* Adds the memory traffic of DeepSpeed's gathered boundaries (runtime/utils.py, PartitionedTensor.full): a buffer is
 * cleared; PyTorch's all_gather into a list of tensors gathers into another buffer, and copies it into the list
 * (ProcessGroupNCCL.cpp); the result is cloned. A forward does so once, for its input; a backward twice, for its output
 * and for the output's gradient. */
void assembly_add(struct arena *arena, struct stage_times *times, const struct stage *stages, const struct scenario *scenario,
                  const struct kernel_costs *costs);

/* Whether each GPU of the tensor group sends its share of a boundary only: it has no more (sequence parallelism), or
 * the receivers gather the shares (Narayanan et al. 2021, section 4.1, scatter/gather optimization). */
bool boundary_divided(const struct parallelism *spec);
/* B of the boundary after a stage, of all GPUs that hold the stage and of all samples of a micro-batch. */
double boundary_whole(const struct scenario *scenario, const struct stage *stages, int stage);
/* Of it B that each GPU of a pipeline rank gets, which is on one side of the boundary. */
double boundary_arriving(const struct scenario *scenario, const struct stage *stages, int stage, int rank);

#endif
