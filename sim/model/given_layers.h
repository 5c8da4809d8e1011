/* given_layers: functions of given_layers.c for model.c; all other files include model.h. */
#ifndef DTSIM_GIVEN_LAYERS_H
#define DTSIM_GIVEN_LAYERS_H

#include "model/model.h"

/* Fills the values that were left out of the layers or stages of a list, and checks that they fit together. */
int given_finish(const struct table *table, struct list *list, struct error *err);
/* As model_layers, for a list of given layers. */
int given_layers(struct arena *arena, const struct list *list, const struct shard *shard, struct loc tensor_loc,
                 const struct layer **layers, size_t *count, struct error *err);

#endif
