/* pieces: the number of equal pieces of a pipelined algorithm's vector. More pieces fill the pipeline sooner, but each
 * pays its latency. NCCL begins with 512 KiB, a step of its default buffers (DEFAULT_BUFFSIZE, 4 MiB, in NCCL_STEPS,
 * 8), and halves them down to 128 KiB while a tree is not well filled (src/enqueue.cc). More than 32 pieces gain little
 * and need more messages to simulate. */
#ifndef DTSIM_PIECES_H
#define DTSIM_PIECES_H

#include "collective/collective.h"

#include <math.h>

enum { PIECES_MOST = 32 };

static inline int pieces(double bytes)
{
    double count = bytes / (128 * 1024);

    return count < 1 ? 1 : count > PIECES_MOST ? PIECES_MOST : (int)count;
}

/* Pieces of a chain of n ranks: enough that the n - 2 pieces that fill its pipeline are at most a sixteenth of them. */
static inline int chain_pieces(const struct task *task)
{
    double count = task->bytes / (128 * 1024);
    int most = task->n > 3 ? 16 * (task->n - 2) : 32;

    return most <= 32 || count < 32 ? pieces(task->bytes) : count > most ? most : (int)count;
}

/* Seconds of a chain: the first piece takes n - 1 hops, and the others follow it. */
static inline double chain_ideal(const struct task *task, double latency, double bandwidth)
{
    int c = chain_pieces(task);

    return task->n == 1 ? 0 : (task->n - 2 + c) * (latency + task->bytes / c / bandwidth);
}

/* The same through nodes. If a piece goes before the one before has arrived, each hop is paid once, and then the
 * slowest link decides. */
static inline double chain_cost(const struct task *task, const struct fabric *fabric)
{
    int c = chain_pieces(task), crossings = task->n / task->per_node - 1, hops = task->n - 1;
    double piece = task->bytes / c, slowest = fmin(fabric->inside.bandwidth, fabric->between.bandwidth);

    if (!fabric->buffered)
        return chain_ideal(task, fmax(fabric->inside.latency, fabric->between.latency), slowest);
    return (hops - crossings) * hop_seconds(fabric->inside, piece) + crossings * hop_seconds(fabric->between, piece) +
           (task->n > 1 ? c - 1 : 0) * piece / slowest;
}

#endif
