/* bridge_table: the keys of Megatron Bridge's configuration. Most are Megatron-LM's arguments in sections, with '_' for
 * '-': model.tensor_model_parallel_size. */
#ifndef DTSIM_BRIDGE_TABLE_H
#define DTSIM_BRIDGE_TABLE_H

#include "launch/imported.h"

/* Megatron-LM's rows, found by the keys of Megatron Bridge, and keys that Megatron-LM has no argument for. */
extern const struct argument_table bridge_keys;

/* The key of an argument of Megatron-LM. *inverse: the key is true where the argument is not given. */
const char *bridge_key(struct arena *arena, const char *argument, bool *inverse);
/* The value that Megatron Core's classes have where a key is left out; NULL: not known, or it makes no difference. */
const char *bridge_default(const char *key);

#endif
