/* plain: a published run as a person would ask for it who knows the model, the cluster and the degrees, and the
 * software by its name, but none of its flags. */
#ifndef DTSIM_PLAIN_H
#define DTSIM_PLAIN_H

#include "config/conf.h"

/* The scenario without every key but these: the model's shape, cluster, batch, schedule, degrees (tensor, pipeline,
 * stage_replicas, data, context, expert), chunks, zero, shard, sequence_parallel, precision, optimizer, recompute,
 * offload, lora, and the name of the software. */
struct node *plain_scenario(struct arena *arena, const struct node *root);

#endif
