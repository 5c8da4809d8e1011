/* cluster_platform: merges the keys of a platform's file with the user's keys. Node trees are merged and then parsed
 * once, so that every message names the place where its value was written. */
#ifndef DTSIM_CLUSTER_PLATFORM_H
#define DTSIM_CLUSTER_PLATFORM_H

#include "hardware/cluster.h"

/* The value of `cluster:` as a mapping; a name or a path becomes {platform: NAME}. NULL after an error. */
struct node *cluster_mapping(struct arena *arena, const struct node *value, struct error *err);
/* The mapping merged over its platform, which may itself be merged over another platform. *ideal: whether this chain of
 * platforms ends at 'ideal'. *base: the keys of the platform's file, merged in the same way, or NULL. NULL after an
 * error. */
const struct node *cluster_platform(struct arena *arena, const struct node *map, bool *ideal, const struct node **base,
                                    struct error *err);

#endif
