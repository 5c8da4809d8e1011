/* operator_internal: from a list of operators to a layer; the forms in which layers keep tensors. */
#ifndef DTSIM_OPERATOR_INTERNAL_H
#define DTSIM_OPERATOR_INTERNAL_H

#include "model/operator.h"

/* B of a value in the form in which it is kept, where these modules (bits) run again. */
double kept_bytes(const struct cut *cut, const struct kept_value *value, unsigned again);
/* B of all values of a block, or of all others. */
double kept_sum(const struct operators *ops, bool block, unsigned again);
/* A block's tensors of kept_sum, the core's last; they live in the arena. */
const struct saved_tensor *kept_list(struct arena *arena, const struct operators *ops, unsigned again, size_t *count);
/* Appends the kernels of an operator that packs() began. */
void packing_kernels(struct operators *ops, const struct operator *op);
/* Appends the operators of attention over the queries, keys and values that a GPU sees. */
void plain_attention(struct operators *ops, const struct cut *seen);
void flash_attention(struct operators *ops, const struct cut *seen);
/* Completes the layer: its operators, and all that they add up to. */
void operators_finish(struct arena *arena, struct operators *ops, struct layer *layer);

double transformer_parameters(const struct transformer *shape);
double transformer_active_parameters(const struct transformer *shape);
int transformer_layers(struct arena *arena, const struct transformer *shape, const struct shard *shard,
                       struct loc tensor_loc, const struct layer **layers, size_t *count, struct error *err);

#endif
