/* critical_path: the chain of operations that an iteration is as long as. The last operation to end began when the one
 * that it waited for last had ended, that one began when another had ended, and so on to the beginning. A shorter
 * operation on this chain may shorten the iteration; one that is not on it cannot.
 *
 * A transfer is one piece, however many flows it shared links with: what contention adds is part of it. Where several
 * operations ended at the same time, the chain stays in the lane, else it takes the first that is listed: another chain
 * may be as long. */
#ifndef DTSIM_CRITICAL_PATH_H
#define DTSIM_CRITICAL_PATH_H

#include "run/run.h"

/* One operation of the chain. It may end after `to`: a buffered transfer hands on its lane before its bytes arrive. */
struct path_piece { uint32_t op; double from, to; };

struct critical_path {
    /* Ascending pieces: the first begins at 0, each begins where its predecessor ends, the last ends at the
     * makespan. */
    struct path_pieces { struct path_piece *items; size_t count, capacity; } pieces;
    /* Seconds of these within metrics.window, an update: they add up to the iteration time. On the chain nobody waits,
     * so that exposed kinds are exchanges and transfers that it goes through, and none is a bubble. */
    double seconds[ACCOUNT_KIND_COUNT];
    double (*ranks)[ACCOUNT_KIND_COUNT]; /* the same by pipeline rank: transfers count for the rank that sends */
    int nranks;
};

/* critical_path_release when done. */
void critical_path_init(struct critical_path *path, const struct run *run);
void critical_path_release(struct critical_path *path);

/* The shares of an operation's time by kind, which add up to 1. */
void op_shares(const struct program *program, const struct op *op, double shares[ACCOUNT_KIND_COUNT]);

#endif
