/* apart: replicas that come to steady states of their own. Replicas on GPUs of several kinds, or with micro-batches of
 * several sizes, compute independently until they sum gradients. Each has a period of its own, so that the timeline of all
 * replicas has none. But a replica does the same works in the same times whenever it begins. So one replica of each kind is
 * replayed alone, which tells its period. Then all are replayed together. A replica whose repetitions take longer begins
 * later by the difference, so that replicas reach their sums with the same delays between them as in the whole pipeline.
 * That no replica waits for another before the end of its repeated period is not assumed: the timeline of all shows it. */
#ifndef DTSIM_APART_H
#define DTSIM_APART_H

#include "engine/replay.h"
#include "steady/shorter.h"

struct apart;

/* Replicas of the short workload's program that are of several kinds, share no links and exchange nothing while they
 * compute. NULL: they are no such replicas, or their ranks have unequal degrees, so that a micro-batch is of all replicas.
 * apart_release when done. */
struct apart *apart_of(const struct program *program, const struct shorter *shorter);
void apart_release(struct apart *apart);

/* As steady_replay. */
int apart_replay(struct apart *apart, enum engine engine, struct program *program, struct timeline *timeline,
                 struct shorter *shorter, struct error *err);

#endif
