/* megatron_table: what each argument of Megatron-LM is to a simulation. Names, types and defaults are those of
 * NVIDIA/Megatron-LM at d98e8a64 (core 0.20.0, 2026-08-22): megatron/training/arguments.py, training/config/ and
 * core/transformer/transformer_config.py; those of its forks and of older releases say so. */
#ifndef DTSIM_MEGATRON_TABLE_H
#define DTSIM_MEGATRON_TABLE_H

#include "base/base.h"

enum argument_class {
    ARGUMENT_MAPPED,                 /* a key of the scenario says it */
    ARGUMENT_IDLE,                   /* without effect on the time of an iteration */
    ARGUMENT_LACKS,                  /* has an effect, which the simulation does not have */
};
/* KIND_WORD: one value; KIND_LIST: several. Of KIND_ANY nobody needs to know the value. */
enum argument_kind { KIND_FLAG, KIND_INT, KIND_NUMBER, KIND_WORD, KIND_LIST, KIND_ANY };

/* One row an argument. */
struct argument_row {
    const char *name;                /* without "--" */
    enum argument_class class;
    enum argument_kind kind;
    const char *fallback;            /* its default; NULL: none */
    const char *path;                /* the key of a scenario that gets its value; NULL: megatron_*.c reads it */
    const char *words;               /* "LayerNorm=layernorm RMSNorm=rmsnorm": values there and here; of a flag: the
                                        key's value where it is given */
    const char *why;                 /* ARGUMENT_LACKS: what is missing */
    const char *needs;               /* it has no effect without one of these arguments */
    const char *logged;              /* its name in a log, where that differs; "!NAME": with the opposite truth */
};

/* The row of a name; NULL: there is none. `log`: the name stands in a log. */
const struct argument_row *megatron_row(const char *name, bool log);
/* All names, for the nearest one; NULL past the last. */
const char *megatron_name(size_t index, const void *context);
/* The rows by number; NULL past the last. */
const struct argument_row *megatron_row_at(size_t index);
/* Whether a log's name is one that the program itself sets, and no argument. */
bool megatron_is_inner(const char *name);

#endif
