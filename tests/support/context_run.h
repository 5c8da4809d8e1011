/* context_run: a small transformer with experts on a cluster, for tests of context parallelism. */
#ifndef DTSIM_TEST_CONTEXT_RUN_H
#define DTSIM_TEST_CONTEXT_RUN_H

#include "simulated.h"

enum { H = 512, HEADS = 8, SEQUENCE = 4096, LAYERS = 2 };

struct place { int context, data, expert, gpus_per_node, nodes; double bandwidth, latency; };

static inline void run_context(struct simulated *simulated, const struct place *p, const char *attention,
                               const char *engine, const char *more, int micro_batches)
{
    run_text(simulated,
             "model: {transformer: {layers: %d, hidden: %d, heads: %d, sequence: %d, vocabulary: 1000, positions: 0,\n"
             "        flash_attention: true, experts: 8, experts_per_token: 2}}\n"
             "cluster: {nodes: %d, gpus_per_node: %d, gpu: a100-80gb,\n"
             "          inside: {bandwidth: %.17g B/s, latency: %.17g s},\n"
             "          network: {bandwidth: 25 GB/s, latency: 5 us, nics: %d}}\n"
             "strategy: {context: %d, data: %d, expert: %d, context_attention: %s}\ncosts: {host_launch: 0}\n"
             "simulation: {engine: %s%s}\nbatch: {micro_batches: %d}\n",
             LAYERS, H, HEADS, SEQUENCE, p->nodes, p->gpus_per_node, p->bandwidth, p->latency, p->gpus_per_node,
             p->context, p->data, p->expert, attention, engine, more, micro_batches);
}

#endif
