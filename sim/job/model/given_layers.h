/* given_layers: functions of given_layers.c for model.c; all other files include model.h. */
#ifndef DTSIM_GIVEN_LAYERS_H
#define DTSIM_GIVEN_LAYERS_H

#include "model/model.h"

/* Fills the values that were left out of the layers or stages of a list, and checks that they fit together. */
int given_finish(const struct table *table, struct list *list, struct error *err);
/* As model_layers, for a list of given layers. */
int given_layers(struct arena *arena, const struct list *list, const struct shard *shard, struct loc tensor_loc,
                 const struct layer **layers, size_t *count, struct error *err);
/* The layers of a table (RFC 4180), as a list of `model: layers` would have them: a line a layer, below a line with names
 * of keys, "forward" or, where the numbers have no unit, "forward (ms)". Empty cells are keys left out, lines that begin
 * with '#' are comments. `loc`: who names the file. NULL after an error. */
struct node *layers_csv(struct arena *arena, const char *path, struct loc loc, struct error *err);

#endif
