/* pieces: into how many equal pieces a pipelined algorithm cuts what it moves. More pieces fill the pipeline sooner,
 * and each pays its latency. NCCL begins with 512 KiB, a step of its default buffers (DEFAULT_BUFFSIZE, 4 MiB, in
 * NCCL_STEPS, 8), and halves that down to 128 KiB while a tree is not well filled (src/enqueue.cc). Beyond 32 pieces
 * little is left to gain, only more messages to simulate. */
#ifndef DTSIM_PIECES_H
#define DTSIM_PIECES_H

#include "collective.h"

static inline int pieces(double bytes)
{
    double count = bytes / (128 * 1024);

    return count < 1 ? 1 : count > 32 ? 32 : (int)count;
}

#endif
