/* cluster_platform: what a platform's file and the user's keys say together. They are merged as node trees and parsed
 * once, so that every message names the place where its number was written. */
#ifndef DTSIM_CLUSTER_PLATFORM_H
#define DTSIM_CLUSTER_PLATFORM_H

#include "hardware/cluster.h"

/* What stands under `cluster:` as a mapping: a name or a path is one that changes nothing. NULL after an error. */
struct node *cluster_mapping(struct arena *arena, const struct node *value, struct error *err);
/* The mapping with the keys of its platform, and of that one's platform, below its own; and whether the first of these
 * is the ideal cluster. NULL after an error. */
struct node *cluster_platform(struct arena *arena, struct node *map, bool *ideal, struct error *err);

#endif
