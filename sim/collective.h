/* collective: what a collective algorithm draws, all that its file in strategies/collectives/ sees. An algorithm draws
 * arrows between n abstract ranks; it never writes time. */
#ifndef DTSIM_COLLECTIVE_H
#define DTSIM_COLLECTIVE_H

#include "program.h"

enum combine { COPY, REDUCE };       /* what the receiver does with what arrives: keep it, or add it to its own */

/* In `step`, src sends the chunks [chunk, chunk + nchunks) to dst. An arrow waits for what last arrived, in earlier
 * steps, for any of these chunks at its source and at its destination; and a rank sends one arrow after another (per
 * channel), in the order drawn. Within a step everything happens at the same time: arrows of one step do not see each
 * other, and several may bring the same chunk to the same rank. Arrivals that must not overlap, such as those at the
 * root of a gather, therefore have steps of their own. */
struct arrow {
    int step, src, dst, chunk, nchunks;
    enum combine combine;
};
struct arrows { struct arrow *items; size_t count, capacity; };

/* Draw one arrow. Steps must not fall from one to the next. */
void copy(struct arrows *arrows, int step, int src, int dst, int chunk, int nchunks);
void reduce(struct arrows *arrows, int step, int src, int dst, int chunk, int nchunks);

struct collective {
    const char *name;                /* "ring", as under strategy.all_reduce */
    const char *title;               /* "Ring all-reduce (reduce-scatter, then all-gather)" */
    const char *paper;               /* where it and its formula are from */
    const char *figure;              /* its drawing in ASCII, for help */
    const char *formula;             /* its closed form, as text */
    int (*chunks)(int n);            /* how many equal chunks the vector is cut into */
    void (*draw)(struct arrows *arrows, int n);
    /* Seconds on a full-duplex network without contention, every pair `latency` s and `bandwidth` B/s apart. */
    double (*ideal)(int n, double bytes, double latency, double bandwidth);
};

/* All of strategies/collectives/list.h, in its order. */
const struct collective *collective_at(size_t index);            /* NULL past the last */
const char *collective_name(size_t index);                       /* a choice_name */
const struct collective *collective_find(const char *name);      /* NULL: unknown */

/* Which GPU sends for which member, and over how many rings (channels) at once. */
struct group {
    int n;                           /* members */
    const int *ranks;                /* lanes belong to these ranks of the program */
    const int *gpus;                 /* one a member */
};

/* The collective as transfers: each channel moves 1/channels of `bytes` along its own member order, in which the
 * members of every node are rotated, so that channels enter and leave a node through different NICs (as NCCL's rings).
 * lanes: n * channels lanes, lanes[member * channels + channel]. No arrow from or to member m
 * begins before ready[m] (if ready is not NULL). Of `like` what, mb and stage are used. done receives, per member, one
 * id that ends when the member holds its result and all that it sent has left: a zero-second COMPUTE on its first
 * lane. */
struct cluster;
void collective_lower(const struct collective *collective, const struct cluster *cluster, const struct group *group,
                      double bytes, int channels, const uint32_t *lanes, const uint32_t *ready, struct op like,
                      struct program *program, uint32_t *done);
/* As many rings as NICs that the members of a node use, where the group holds several GPUs in each of several nodes
 * (all nodes alike, the members of a node next to each other), else 1. */
int collective_channels(const struct cluster *cluster, const struct group *group);

#endif
