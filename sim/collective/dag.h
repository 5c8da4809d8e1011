/* dag: the DAG of a collective: its messages, and which of them each message waits for. Only the lowering of
 * collectives uses it. */
#ifndef DTSIM_DAG_H
#define DTSIM_DAG_H

#include "collective/collective.h"

/* Waits are in terms of messages and ranks, so that every channel repeats the DAG on its own members and lanes. A wait
 * below messages.count is for that message; messages.count + r is for rank r to be ready. */
struct dag {
    int n, chunks;           /* ranks whose messages are here; chunks of the vector */
    struct messages messages;
    struct deps waits;
    size_t *first;           /* list i: waits[first[i] .. first[i + 1]): a message's, then the end's of every rank */
};

void dag_init(struct dag *dag, const struct collective *collective, const struct task *task);
void dag_release(struct dag *dag);

#endif
