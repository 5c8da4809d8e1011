/* nccl_fit: a communication profile of one's own: a platform's, with its latencies and rates multiplied so that the measured
 * collectives of a table take their times. */
#ifndef DTSIM_NCCL_FIT_H
#define DTSIM_NCCL_FIT_H

#include "config/conf.h"

/* The profile as a tree (platforms/communication), for `cluster: {platform: PLATFORM, communication: FILE}`. *table: as
 * import_nccl_load makes it. One factor multiplies all latencies; each protocol's rates have one of their own. A factor that fewer
 * than two rows tell stays 1: `notes` says which, what was found, and how far off the rows are before and behind. NULL: an
 * error: no such platform, or one without a profile; rows that do not run on it. */
struct node *nccl_fit(struct arena *arena, struct node *table, const char *platform, FILE *notes, struct error *err);

#endif
