/* cluster_load: the steps of loading a cluster, for the files of this folder. The keys of a platform's file are merged with
 * the user's keys as trees and then parsed once, so that every message names the place where its value was written. */
#ifndef DTSIM_CLUSTER_LOAD_H
#define DTSIM_CLUSTER_LOAD_H

#include "hardware/cluster.h"

/* The value of `cluster:` as a mapping; a name or a path becomes {platform: NAME}. NULL after an error. */
struct node *cluster_mapping(struct arena *arena, const struct node *value, struct error *err);
/* The mapping merged over its platform, which may itself be merged over another platform. *ideal: whether this chain of
 * platforms ends at 'ideal'. *base: the keys of the platform's file, merged in the same way, or NULL. NULL after an
 * error. */
const struct node *cluster_platform(struct arena *arena, const struct node *map, bool *ideal, const struct node **base,
                                    struct error *err);

/* Sets network.file of a cluster whose network is named. -1 after an error. */
int cluster_network_file(struct arena *arena, struct cluster *cluster, struct error *err);

/* Refuses keys that have no effect on this cluster, whatever runs on it, if they differ from the platform's. The
 * platform's own are no mistake: another communication library may use them. -1 after an error. */
int cluster_check_idle(struct arena *arena, const struct cluster *cluster, struct error *err);

#endif
