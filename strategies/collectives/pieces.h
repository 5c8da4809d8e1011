/* pieces: the number of equal pieces of a pipelined algorithm's vector. More pieces fill the pipeline sooner, but each
 * pays its latency. NCCL begins with 512 KiB, a step of its default buffers (DEFAULT_BUFFSIZE, 4 MiB, in NCCL_STEPS,
 * 8), and halves them down to 128 KiB while a tree is not well filled (src/enqueue.cc). More than 32 pieces gain little
 * and need more messages to simulate. */
#ifndef DTSIM_PIECES_H
#define DTSIM_PIECES_H

#include "collective/collective.h"

static inline int pieces(double bytes)
{
    double count = bytes / (128 * 1024);

    return count < 1 ? 1 : count > 32 ? 32 : (int)count;
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

#endif
