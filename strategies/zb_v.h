/* What the zero-bubble schedules with chunks in a V share. */
#ifndef DTSIM_ZB_V_H
#define DTSIM_ZB_V_H

#include "schedule/schedule.h"

/* Works on a V have two turns: forwards are done on chunk 0 (from rank to rank), then on chunk 1 (back again);
 * backwards on chunk 1, then on chunk 0. */
enum { DOWN, UP, TURNS };
static inline int turn_chunk(enum work_kind kind, int turn)
{
    return kind == FORWARD ? turn : 1 - turn;
}
/* The rank from which a turn's work gets its input, or -1 where the turn begins. */
static inline int turn_from(int ranks, int rank, int turn)
{
    return turn == DOWN ? rank - 1 : rank + 1 < ranks ? rank + 1 : -1;
}

/* Appends a cell, and before it a recomputation where the plan wants one. */
void zb_v_append(struct row *row, const struct plan *plan, enum work_kind kind, int chunk, int mb);

/* zb-v, built greedily (zb_v_greedy.c). */
void zb_v_greedy(struct row *rows, const struct plan *plan);

/* Slots of forwards and input gradients, DOWN and UP, of a rank's first micro-batch; repeated every 6 slots. */
struct pattern { int forwards[TURNS], backwards[TURNS]; };
void v_pattern_rows(struct row *rows, const struct plan *plan, struct pattern (*pattern)(int ranks, int rank));

#endif
