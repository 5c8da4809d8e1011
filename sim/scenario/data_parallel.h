/* data_parallel: the forms of data parallelism: what they exchange is said in scenario.h; here, what goes together. */
#ifndef DTSIM_DATA_PARALLEL_H
#define DTSIM_DATA_PARALLEL_H

#include "scenario/scenario.h"

/* Where a key of `strategy:` stands. */
#define STRATEGY_LOC(scenario, key)                                                                                    \
    node_loc((scenario)->strategy.node ? (scenario)->strategy.node : (scenario)->node, key)

/* Over how many replicas ZeRO divides: all, or groups of so many. The number of replicas is known. */
int shard_resolve(struct scenario *scenario, struct error *err);
/* Refuses what does not go together, at its place, and fills the defaults of compression. The plan is known but for its
 * micro-batches. */
int data_parallel_check(struct scenario *scenario, struct error *err);

#endif
