/* unequal_ranks: a scenario whose pipeline ranks have unequal degrees. */
#ifndef DTSIM_TEST_UNEQUAL_RANKS_H
#define DTSIM_TEST_UNEQUAL_RANKS_H

#include "simulated.h"

/* Tied embeddings or not; samples of a micro-batch; engine; stages; more of the strategy; nodes. */
static const char shape[] =
    "model: {transformer: {layers: 4, hidden: 768, heads: 24, sequence: 768, vocabulary: 50304, tied: %s}}\n"
    "batch: {micro: %d, micro_batches: 4}\nsimulation: {engine: %s, collectives: messages}\n"
    "strategy: {stages: [%s], %s}\n"
    "cluster: {platform: dgx-a100, nodes: %d, communication: none, network: {nics: 8, latency: 2 us}}\n";

#endif
