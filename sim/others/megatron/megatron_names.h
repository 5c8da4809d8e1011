/* megatron_names: the arguments of Megatron-LM that have a name and a class, and nothing more to say. */
#ifndef DTSIM_MEGATRON_NAMES_H
#define DTSIM_MEGATRON_NAMES_H

#include "megatron/megatron_table.h"

/* NULL past the last. */
const struct argument_row *megatron_other_at(size_t index);

#endif
