/* bridge_internal: what the readers of Megatron Bridge's and NeMo 2's configurations share. */
#ifndef DTSIM_BRIDGE_INTERNAL_H
#define DTSIM_BRIDGE_INTERNAL_H

#include "jobs/jobs_internal.h"

/* A tree without the keys by which Hydra makes objects (_target_, _call_, ...); a mapping of them alone is a value: the
 * name of a number format (fp32, bf16, fp16, fp8), of a function, or of a member of an enumeration. */
struct node *bridge_plain(struct arena *arena, const struct node *node);
/* Fills a scenario from the launch's arguments, which are keys of Megatron Bridge. class: of the model, or NULL;
 * software: the file of platforms/software; printed: the configuration is one that the program printed, with each key.
 * 0 or -1. */
int bridge_build(struct imported *m, const char *class, const char *software, bool printed);

#endif
