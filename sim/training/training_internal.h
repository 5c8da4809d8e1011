#ifndef DTSIM_TRAINING_INTERNAL_H
#define DTSIM_TRAINING_INTERNAL_H

#include "training/training.h"

extern const struct table failures_table;

#endif
