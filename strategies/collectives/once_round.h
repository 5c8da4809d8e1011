/* once_round: the messages of a ring. In step t every rank r sends its right neighbour chunk r - t + `ahead`: the share
 * that it began with, or that it got in the step before. */
#ifndef DTSIM_ONCE_ROUND_H
#define DTSIM_ONCE_ROUND_H

#include "collective/collective.h"

/* n - 1 steps from `step` on; `hand` is copy or reduce. */
static inline void once_round(struct messages *messages, const struct task *task, int step, int ahead,
                              void (*hand)(struct messages *, int, int, int, int, int))
{
    int ranks = task->folded ? task->folded : task->n;

    for (int t = step; t < step + task->n - 1; t++)
        for (int r = 0; r < ranks; r++)
            hand(messages, t, r, (r + 1) % ranks, ((r - t + ahead) % ranks + ranks) % ranks, 1);
}

/* A share of the vector for each rank. */
static inline int ring_chunks(const struct task *task)
{
    return task->n;
}

/* Seconds of one round. */
static inline double ring_ideal(const struct task *task, double latency, double bandwidth)
{
    return (task->n - 1) * (latency + task->bytes / task->n / bandwidth);
}

#endif
