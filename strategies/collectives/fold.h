/* fold: an algorithm for powers of two on any number of ranks. p is the largest power of two up to n. Of the first
 * 2 (n - p) ranks the even ones send their vector to their neighbour and rest. The other p ranks, the core, get new
 * numbers and run the algorithm. At the end the neighbours send the result back. If n is a power of two there are no
 * such messages. */
#ifndef DTSIM_FOLD_H
#define DTSIM_FOLD_H

#include "collective/collective.h"

#include <math.h>

/* p. */
static inline int core_size(int n)
{
    int p = 1;

    while (p <= n / 2)
        p *= 2;
    return p;
}

/* The rank that is number q of the core. */
static inline int core_rank(int n, int q)
{
    int resting = n - core_size(n);

    return q < resting ? 2 * q + 1 : q + resting;
}

/* Where number q's partner across the distance is. If two nodes stand for all, each is the other's partner across all
 * distances between nodes; their ranks are a power of two then. */
static inline int core_partner(const struct task *task, int q, int distance)
{
    return task->folded && distance >= task->per_node ? (q + task->per_node) % task->folded : q ^ distance;
}

/* The number whose part of the vector number q has: q; if two nodes stand for all, the number of the first node's rank
 * in the same place. */
static inline int core_place(const struct task *task, int q)
{
    return task->folded ? q % task->per_node : q;
}

/* The most messages of an algorithm whose core meets once or twice across each distance. */
static inline double core_messages(const struct task *task)
{
    return 2.0 * task->n * (1 + log2(task->n));
}

/* Writes the messages to the core, as step 0; returns the first step of the core. */
static inline int fold_in(struct messages *messages, int n, int nchunks)
{
    int resting = n - core_size(n);

    for (int i = 0; i < resting; i++)
        reduce(messages, 0, 2 * i, 2 * i + 1, 0, nchunks);
    return resting > 0;
}

static inline void fold_out(struct messages *messages, int step, int n, int nchunks)
{
    for (int i = 0; i < n - core_size(n); i++)
        copy(messages, step, 2 * i + 1, 2 * i, 0, nchunks);
}

/* Seconds of the messages to the core and back. */
static inline double fold_ideal(const struct task *task, double latency, double bandwidth)
{
    return task->n > core_size(task->n) ? 2 * (latency + task->bytes / bandwidth) : 0;
}

/* The same on a cluster: neighbours are in one node if nodes hold an even number of ranks. */
static inline double fold_cost(const struct task *task, const struct fabric *fabric)
{
    struct hop hop = task->per_node % 2 ? fabric->crowded : fabric->inside;

    return fold_ideal(task, hop.latency, hop.bandwidth);
}

/* The cost of the core's messages across `distance` on a cluster: they stay in a node if the node's ranks are a power
 * of two above the distance. The messages of a folded core count as crossing nodes. */
static inline struct hop core_hop(const struct task *task, const struct fabric *fabric, int distance)
{
    bool aligned = core_size(task->n) == task->n && core_size(task->per_node) == task->per_node;

    return aligned && distance < task->per_node ? fabric->inside : fabric->crowded;
}

/* If the vector is cut into n shares: the first share of number q of the core, which has its own share and its resting
 * neighbour's. For q = p: n. */
static inline int core_share(int n, int q)
{
    int resting = n - core_size(n);

    return q < resting ? 2 * q : q + resting;
}

#endif
