/* once_round: the messages of a ring. In step t every rank r sends its right neighbour chunk r - t + `ahead`: the share
 * that it began with, or that it got in the step before. */
#ifndef DTSIM_ONCE_ROUND_H
#define DTSIM_ONCE_ROUND_H

#include "collective/collective.h"

#include <math.h>

/* n - 1 steps from `step` on. */
static inline void once_round(struct messages *messages, const struct task *task, int step, int ahead,
                              enum combine combine)
{
    int ranks = task->folded ? task->folded : task->n;

    for (int t = step; t < step + task->n - 1; t++)
        for (int r = 0; r < ranks; r++)
            (combine == REDUCE ? reduce : copy)(messages, t, r, (r + 1) % ranks,
                                                ((r - t + ahead) % ranks + ranks) % ranks, 1);
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

/* The library sends a message before the one before has arrived, at a rate that is the channel's own. So the last
 * arrival ends a path of `steps` messages: the next one of a path is the rank's own next, which waits until the message
 * before has left, or the next rank's, which waits until it has arrived. The longest path stays at the slowest link, or
 * goes round through all links. */
static inline double ring_buffered(const struct task *task, const struct fabric *fabric, int rounds)
{
    struct hop inside = fabric->inside, between = fabric->between;
    int g = task->per_node, steps = rounds * (task->n - 1), crossings = g < task->n ? (steps - 1) / g + 1 : 0;
    double message = task->bytes / task->n;
    double round = crossings * hop_seconds(between, message) + (steps - crossings) * hop_seconds(inside, message);

    if (g < task->n)
        round = fmax(round, steps * message / between.bandwidth + between.latency);
    return g > 1 ? fmax(round, steps * message / inside.bandwidth + (g - 1) * inside.latency) : round;
}

/* Seconds of `rounds` rounds, in messages of a rank's share. The slowest bandwidth sets the pace. If messages wait for
 * arrivals, so does the longest latency; else a message pays each link's own. The library's tuning adds latencies and
 * bytes (NCCL, src/graph/tuning.cc). */
static inline double ring_cost(const struct task *task, const struct fabric *fabric, int rounds)
{
    struct hop inside = fabric->inside, between = fabric->between;
    int steps = rounds * (task->n - 1), crossings = rounds * (task->n / task->per_node - 1);
    double bytes = steps * (task->bytes / task->n / fmin(inside.bandwidth, between.bandwidth));

    if (!fabric->buffered)
        return steps * fmax(inside.latency, between.latency) + bytes;
    if (!fabric->tuned)
        return ring_buffered(task, fabric, rounds);
    return (steps - crossings) * inside.latency + crossings * between.latency + bytes;
}

#endif
