/* pieces: the number of equal pieces of a pipelined algorithm's vector. More pieces fill the pipeline sooner, but each
 * pays its latency. NCCL begins with 512 KiB, a step of its default buffers (DEFAULT_BUFFSIZE, 4 MiB, in NCCL_STEPS,
 * 8), and halves them down to 128 KiB while a tree is not well filled (src/enqueue.cc). More than 32 pieces gain little
 * and need more messages to simulate. */
#ifndef DTSIM_PIECES_H
#define DTSIM_PIECES_H

#include "collective/collective.h"

enum { PIECES_MOST = 32 };

static inline int pieces(double bytes)
{
    double count = bytes / (128 * 1024);

    return count < 1 ? 1 : count > PIECES_MOST ? PIECES_MOST : (int)count;
}

#endif
