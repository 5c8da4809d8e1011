/* pieces: into how many equal pieces a pipelined algorithm cuts what it moves. More pieces fill the pipeline sooner,
 * and each pays its latency; of 512 KiB, a step of NCCL's default buffers (DEFAULT_BUFFSIZE, 4 MiB, in NCCL_STEPS, 8),
 * the latency is a small part. Beyond 32 pieces little is left to gain, only more messages to simulate. */
#ifndef DTSIM_PIECES_H
#define DTSIM_PIECES_H

#include "collective.h"

static inline int pieces(double bytes)
{
    double count = bytes / (512 * 1024);

    return count < 1 ? 1 : count > 32 ? 32 : (int)count;
}

#endif
