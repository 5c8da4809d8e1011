/* megatron_names: the arguments of Megatron-LM that have a name and a class, and nothing more to say. */
#ifndef DTSIM_MEGATRON_NAMES_H
#define DTSIM_MEGATRON_NAMES_H

#include "megatron/megatron_table.h"

/* NULL past the last. */
const struct argument_row *megatron_other_at(size_t index);

/* Whether a program is Megatron-LM's own, by the name of its file. */
bool megatron_is_own(const char *program);
/* Whether an argument that is not Megatron-LM's changes the model or how it is divided, as far as its name tells. */
bool megatron_is_shape(const char *name);

#endif
