#ifndef DTSIM_TRAIN_SECTION_INTERNAL_H
#define DTSIM_TRAIN_SECTION_INTERNAL_H

#include "scenario/train_section.h"

extern const struct table failures_table;

#endif
