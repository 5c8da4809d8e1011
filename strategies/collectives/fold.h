/* fold: how an algorithm for powers of two treats any number of ranks. p is the largest power of two that is not above
 * n. Of the first 2 (n - p) ranks the even ones hand their vector to their neighbour and rest; the p others, the core,
 * are numbered anew and do the algorithm; at the end the neighbours hand the result back. Where n is a power of two
 * nothing is drawn and nothing is paid. */
#ifndef DTSIM_FOLD_H
#define DTSIM_FOLD_H

#include "collective.h"

/* p. */
static inline int core_size(int n)
{
    int p = 1;

    while (p <= n / 2)
        p *= 2;
    return p;
}

/* The rank that is number q of the core. */
static inline int core_rank(int n, int q)
{
    int resting = n - core_size(n);

    return q < resting ? 2 * q + 1 : q + resting;
}

/* Draws the way in, as step 0; gives the first step of the core. */
static inline int fold_in(struct arrows *arrows, int n, int nchunks)
{
    int resting = n - core_size(n);

    for (int i = 0; i < resting; i++)
        reduce(arrows, 0, 2 * i, 2 * i + 1, 0, nchunks);
    return resting > 0;
}

static inline void fold_out(struct arrows *arrows, int step, int n, int nchunks)
{
    for (int i = 0; i < n - core_size(n); i++)
        copy(arrows, step, 2 * i + 1, 2 * i, 0, nchunks);
}

/* Seconds of both. */
static inline double fold_ideal(int n, double bytes, double latency, double bandwidth)
{
    return n > core_size(n) ? 2 * (latency + bytes / bandwidth) : 0;
}

#endif
