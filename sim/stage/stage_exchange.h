/* stage_exchange: what a layer's works exchange, and what of it overlaps; for stage.c. */
#ifndef DTSIM_STAGE_EXCHANGE_H
#define DTSIM_STAGE_EXCHANGE_H

#include "stage/stage.h"

/* Whether the context group divides the layer's attention. */
bool divides_attention(const struct parallelism *spec, const struct layer *layer);
void exchanges_add(struct stage_work *work, const struct parallelism *spec, const struct costs_spec *costs,
                   const struct layer *layer, enum phase phase);
/* Of a forward, the gathers and sums that travel beside pieces of their products; the stage notes what these take. */
void exchanges_cut(struct stage_work *forward, struct stage *stage, const struct parallelism *spec,
                   const struct costs_spec *costs, const struct layer *layer);
/* Of a backward that computes both gradients, the sums that run beside products; the stage notes what these take. */
void exchanges_overlap(struct stage_work *backward, struct stage *stage, const struct parallelism *spec,
                       const struct costs_spec *costs, const struct layer *layer);
/* What passes through memory where DeepSpeed gathers a boundary (runtime/utils.py, PartitionedTensor.full): a buffer is
 * cleared; PyTorch's all_gather into a list of tensors gathers into another, and copies that into the list
 * (ProcessGroupNCCL.cpp); the result is cloned. Once before a forward, and before a backward for the output and for its
 * gradient. */
void assembly_add(struct stage *stages, const struct scenario *scenario);

#endif
