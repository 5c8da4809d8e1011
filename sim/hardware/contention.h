/* contention: what a collective costs the kernels that run beside it. Each of its channels is a block of threads that
 * keeps a multiprocessor of the GPU until the collective ends (NVIDIA, NCCL User Guide, NCCL_MAX_CTAS), and products
 * get the others. Of measured slowdowns the mean is 18.9 % (Lee et al. 2025, arXiv 2507.03114); 24 channels on an
 * A100's 108 or an H100's 132 multiprocessors are 22 and 18 %. Kernels bound by memory lose about as much of its
 * bandwidth, as a ring reads and writes what it passes on (235 GB/s both ways: 23 % of an A100's), and are not told
 * apart. */
#ifndef DTSIM_CONTENTION_H
#define DTSIM_CONTENTION_H

#include "hardware/cluster.h"

bool contention_possible(const struct cluster *cluster);     /* channels and multiprocessors are known */
/* Of a GPU's multiprocessors, those that a collective over these GPUs keeps: channels / multiprocessors; 0 where either
 * is not known. Between nodes NCCL finds a ring for each of a node's NICs and doubles them (NVIDIA/nccl, src/graph/
 * search.cc, ncclTopoSearchRecNet, and connect.cc, ncclTopoPostset), up to the profile's channels. */
double contention_share(const struct cluster *cluster, const int *gpus, int n);

/* Seconds that kernels of `kernels` s and a collective of `collective` s, begun together, take beyond the kernels
 * alone. While the collective runs the kernels proceed at 1 - share. They outlast it: what they lost, share *
 * collective. They do not: what is left of the collective. */
double contention_exposed(double collective, double kernels, double share);

/* Collectives that run beside one lane's kernels, one after another. Zero-initialise. */
struct contention {
    double collective;       /* s that are left of them */
    double kept;             /* of these, times the share that each keeps */
};
void contention_add(struct contention *beside, double collective, double share);
/* The kernels come next: seconds that they take longer. What ran beside them is taken off: all of it at most. */
double contention_stretch(struct contention *beside, double kernels);
/* So many seconds pass without kernels. */
void contention_pass(struct contention *beside, double seconds);

#endif
