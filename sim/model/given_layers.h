/* given_layers: what given_layers.c offers model.c; everyone else sees model.h. */
#ifndef DTSIM_GIVEN_LAYERS_H
#define DTSIM_GIVEN_LAYERS_H

#include "model/model.h"

/* Fills the times that were left out and checks that they fit together. */
int given_finish(const struct table *table, struct list *list, struct error *err);
int given_layers(struct arena *arena, const struct list *list, const struct shard *shard, struct loc tensor_loc,
                 const struct layer **layers, size_t *count, struct error *err);

#endif
