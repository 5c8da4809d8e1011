/* interleaving: what interleaved 1F1B and interleaved zero bubble share: the turns in which micro-batches visit a
 * rank's chunks. A group of micro-batches visits the first chunk, then the second, and so on; then the next group. */
#ifndef DTSIM_INTERLEAVING_H
#define DTSIM_INTERLEAVING_H

#include "schedule/schedule.h"

struct interleaving_options {
    const struct node *node;
    int micro_batch_group;
};

int interleaving_turns(const struct plan *plan);
/* The k-th turn, in groups of `group` micro-batches; the last group may be shorter. The backwards have the same turns,
 * their chunks counted from the last. */
struct work interleaving_forward(const struct plan *plan, int group, int k);
struct work interleaving_backward(const struct plan *plan, int group, int k);

/* The forwards before a rank's first pair of forward and backward: `turns_apart` fewer on each later rank. */
int interleaving_warm_up(const struct plan *plan, int group, int rank, int turns_apart);

/* Some groups let the rows wait for each other forever: these are refused. */
int interleaving_check(const struct schedule *schedule, const struct plan *plan, int group, struct loc loc,
                       struct error *err);

/* Where no rank waits between its forwards of one chunk and the next: on one rank, with one chunk, one group, or groups
 * that all have a micro-batch for every rank. */
bool interleaving_is_even(const struct plan *plan, int group);

#endif
