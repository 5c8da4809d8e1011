/* interleaving: the turns in which micro-batches visit a rank's chunks, in interleaved 1F1B and interleaved zero
 * bubble. A group of micro-batches visits the first chunk, then the second, and so on; then the next group does. */
#ifndef DTSIM_INTERLEAVING_H
#define DTSIM_INTERLEAVING_H

#include "schedule/schedule.h"

struct interleaving_options {
    const struct node *node;
    int micro_batch_group;
};

int interleaving_turns(const struct plan *plan);         /* the number of a rank's forwards */
/* Appends a rank's k-th work of this kind, after its recomputation if it has one; nothing where the rank has no such
 * turn. Groups have `group` micro-batches; the last one may be smaller. Backwards visit the chunks in the opposite
 * order. */
void interleaving_turn(struct row *row, const struct plan *plan, int group, enum work_kind kind, int k);
/* So many forwards, or all if there are fewer. */
int interleaving_in_flight(const struct plan *plan, int forwards);

/* The number of forwards before a rank's first pair of forward and backward: `turns_apart` fewer on each later rank. */
int interleaving_warm_up(const struct plan *plan, int group, int rank, int turns_apart);

/* Error: with these groups the rows deadlock (EXIT_INFEASIBLE). */
int interleaving_check(const struct schedule *schedule, const struct plan *plan, int group, struct loc loc,
                       struct error *err);

/* Whether no rank waits between its forwards of one chunk and the next: with one rank, one chunk, one group, or if
 * every group has a micro-batch for every rank. */
bool interleaving_is_even(const struct plan *plan, int group);

#endif
