/* megatron_table: what each argument of Megatron-LM is to a simulation. Names, types and defaults are of
 * NVIDIA/Megatron-LM at d98e8a64 (core 0.20.0, 2026-08-22): megatron/training/arguments.py, training/config/ and
 * core/transformer/transformer_config.py; arguments of its forks and of older releases say so. */
#ifndef DTSIM_MEGATRON_TABLE_H
#define DTSIM_MEGATRON_TABLE_H

#include "launch/argument.h"

/* The row of a name; NULL: there is none. `log`: the name stands in a log. */
const struct argument_row *megatron_row(const char *name, bool log);
/* The rows by number; NULL past the last. */
const struct argument_row *megatron_row_at(size_t index);
/* Whether a log's name is one that the program itself sets, and no argument. */
bool megatron_is_inner(const char *name);

extern const struct argument_table megatron_arguments;

#endif
