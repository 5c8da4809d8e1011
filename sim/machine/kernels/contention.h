/* contention: how much a collective slows the kernels that run at the same time. Each channel of the collective is a
 * block of threads that occupies a multiprocessor of the GPU until the collective ends (NVIDIA, NCCL User Guide,
 * NCCL_MAX_CTAS); the kernels get the other multiprocessors. The mean of measured slowdowns is 18.9 % (Lee et al. 2025,
 * arXiv 2507.03114); 24 channels on an A100's 108 or an H100's 132 multiprocessors are 22 and 18 %. Kernels bound by
 * memory lose about the same share of memory bandwidth, because a ring reads and writes all data that it passes on (235
 * GB/s in both directions: 23 % of an A100's); so all kernels are treated alike, but for products on Hopper. */
#ifndef DTSIM_CONTENTION_H
#define DTSIM_CONTENTION_H

#include "hardware/cluster.h"

bool contention_possible(const struct cluster *cluster);     /* channels and multiprocessors are known */
/* What kernels lose to a collective over these GPUs while it runs. `all`: the share of the multiprocessors that it occupies:
 * channels / multiprocessors; 0 if either is not known. Between nodes NCCL finds a ring for each of a node's NICs and doubles
 * the rings (NVIDIA/nccl, src/graph/search.cc, ncclTopoSearchRecNet, and connect.cc, ncclTopoPostset), up to the profile's
 * channels.
 * `products`: what matrix products lose. Hopper's have one block for each multiprocessor, which computes tiles of its own in
 * turn; the blocks that find their multiprocessor occupied come after all others, so that a product takes twice as long,
 * however few channels there are (pytorch/pytorch#143988 and #147966, FSDP on H100; CUTLASS, "Blackwell Cluster Launch
 * Control", static scheduler), unless fewer blocks are asked for, and so a `margin` is left. Blocks of older chips compute a
 * tile each, and Blackwell's can take tiles from each other. */
struct contention_share { double all, products; };
struct contention_share contention_share(const struct cluster *cluster, const int *gpus, int n, bool margin);
/* The mean over kernels of which that part are products. */
double contention_mean(struct contention_share share, double products);

/* Kernels of `kernels` s and a collective of `collective` s begin together: the seconds from the end of the kernels
 * alone to the end of both. While the collective runs, the kernels proceed at a rate of 1 - share. If they end after
 * the collective, the result is what they lost, share * collective; else it is collective - kernels. */
double contention_exposed(double collective, double kernels, double share);

/* Collectives that run one after another, at the same time as the kernels of one lane. Zero-initialise. */
struct contention {
    double collective;       /* s that the collectives still run */
    struct contention_share kept;    /* sum over these collectives of seconds * share */
};
void contention_add(struct contention *beside, double collective, struct contention_share share);
/* Adds what others are beside, or subtracts it: `times` is 1 or -1. */
void contention_join(struct contention *beside, const struct contention *more, int times);
/* Runs kernels of that many seconds next, of which a part are products. Returns by how many seconds the collectives lengthen
 * them, and subtracts the time that passes from the collectives. */
double contention_stretch(struct contention *beside, double kernels, double products);
/* Subtracts from the collectives a time without kernels. */
void contention_pass(struct contention *beside, double seconds);

#endif
