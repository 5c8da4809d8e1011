/* apart: replicas that come to steady states of their own. Replicas on GPUs of several kinds, or with micro-batches of
 * several sizes, compute apart until they sum gradients: each comes to the same state again after a time of its own, so
 * that the timeline of all has no period. But a replica does the same whenever it begins. So one of each kind is replayed
 * alone, which tells its period; then all together, each beginning as much later than others as more of it is repeated:
 * then they come to their sums just as far apart as in the whole pipeline. That replicas meet nobody before the end of
 * what is repeated is not assumed but seen in that timeline. */
#ifndef DTSIM_APART_H
#define DTSIM_APART_H

#include "engine/replay.h"
#include "steady/shorter.h"

struct apart;

/* Replicas of the short workload's program that are of several kinds, share no links and exchange nothing while they
 * compute. NULL: they are no such replicas. apart_release when done. */
struct apart *apart_of(const struct program *program, const struct shorter *shorter);
void apart_release(struct apart *apart);

/* As steady_replay. */
int apart_replay(struct apart *apart, enum engine engine, struct program *program, struct timeline *timeline,
                 struct shorter *shorter, struct error *err);

#endif
