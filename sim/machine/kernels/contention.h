/* contention: how much a collective slows the kernels that run at the same time. Each channel of the collective is a
 * block of threads that occupies a multiprocessor of the GPU until the collective ends (NVIDIA, NCCL User Guide,
 * NCCL_MAX_CTAS); the kernels get the other multiprocessors. The mean of measured slowdowns is 18.9 % (Lee et al. 2025,
 * arXiv 2507.03114); 24 channels on an A100's 108 or an H100's 132 multiprocessors are 22 and 18 %. Kernels bound by
 * memory lose about the same share of memory bandwidth, because a ring reads and writes all data that it passes on (235
 * GB/s in both directions: 23 % of an A100's); so all kernels are treated alike. */
#ifndef DTSIM_CONTENTION_H
#define DTSIM_CONTENTION_H

#include "hardware/cluster.h"

bool contention_possible(const struct cluster *cluster);     /* channels and multiprocessors are known */
/* The share of a GPU's multiprocessors that a collective over these GPUs occupies: channels / multiprocessors; 0 if
 * either is not known. Between nodes NCCL finds a ring for each of a node's NICs and doubles the rings (NVIDIA/nccl,
 * src/graph/search.cc, ncclTopoSearchRecNet, and connect.cc, ncclTopoPostset), up to the profile's channels. */
double contention_share(const struct cluster *cluster, const int *gpus, int n);

/* Kernels of `kernels` s and a collective of `collective` s begin together: the seconds from the end of the kernels
 * alone to the end of both. While the collective runs, the kernels proceed at a rate of 1 - share. If they end after
 * the collective, the result is what they lost, share * collective; else it is collective - kernels. */
double contention_exposed(double collective, double kernels, double share);

/* Collectives that run one after another, at the same time as the kernels of one lane. Zero-initialise. */
struct contention {
    double collective;       /* s that the collectives still run */
    double kept;             /* sum over these collectives of seconds * share of the multiprocessors */
};
void contention_add(struct contention *beside, double collective, double share);
/* Runs kernels of that many seconds next. Returns by how many seconds the collectives lengthen them, and subtracts the
 * time that passes from the collectives. */
double contention_stretch(struct contention *beside, double kernels);
/* Subtracts from the collectives a time without kernels. */
void contention_pass(struct contention *beside, double seconds);

#endif
