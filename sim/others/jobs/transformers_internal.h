/* transformers_internal: for transformers*.c only. */
#ifndef DTSIM_TRANSFORMERS_INTERNAL_H
#define DTSIM_TRANSFORMERS_INTERNAL_H

#include "config/conf.h"
#include "launch/launch.h"

/* Puts what Accelerate's file says into the tree of TrainingArguments, where they do not say it, and the processes into the
 * launch. */
int accelerate_read(struct arena *arena, const char *path, struct node *root, struct launch *launch, struct error *err);

#endif
