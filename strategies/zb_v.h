/* zb_v: declarations of the zero-bubble schedules with chunks in a V. */
#ifndef DTSIM_ZB_V_H
#define DTSIM_ZB_V_H

#include "schedule/schedule.h"

/* A V has two legs: DOWN from the first rank to the last, UP from the last rank to the first. Forwards go down through
 * chunk 0 and up through chunk 1, backwards go down through chunk 1 and up through chunk 0. */
enum { DOWN, UP, LEGS };
static inline int leg_chunk(enum work_kind kind, int leg)
{
    return kind == FORWARD ? leg : 1 - leg;
}
/* The rank from which a work on a leg gets its input; -1 if the leg begins on this rank. */
static inline int leg_from(int ranks, int rank, int leg)
{
    return leg == DOWN ? rank - 1 : rank + 1 < ranks ? rank + 1 : -1;
}

/* Appends a work, and before an input gradient a recomputation if the plan has recomputation. */
static inline void zb_v_append(struct row *row, const struct plan *plan, enum work_kind kind, int chunk, int mb)
{
    if (plan->recompute && kind == BACKWARD_INPUT)
        recompute(row, chunk, mb);
    *GROW(row) = (struct work){.kind = kind, .chunk = chunk, .mb = mb};
}

/* zb-v, built greedily (zb_v_greedy.c). */
void zb_v_greedy(struct row *rows, const struct plan *plan);

/* Slots of forwards and input gradients, by leg, of a rank's first micro-batch; each next micro-batch is 6 slots
 * later. */
struct pattern { int forwards[LEGS], backwards[LEGS]; };
void v_pattern_rows(struct row *rows, const struct plan *plan, struct pattern (*pattern)(int ranks, int rank));

#endif
