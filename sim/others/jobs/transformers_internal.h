/* transformers_internal: for transformers*.c only. */
#ifndef DTSIM_TRANSFORMERS_INTERNAL_H
#define DTSIM_TRANSFORMERS_INTERNAL_H

#include "launch/argument.h"

extern const struct argument_table transformers_keys;

#endif
