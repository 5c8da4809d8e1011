/* dag: the DAG of a collective: its messages, and the messages that each of them waits for. For collective_lower.c. */
#ifndef DTSIM_DAG_H
#define DTSIM_DAG_H

#include "collective/collective.h"

/* Waits name messages and ranks, so that every channel repeats the DAG on its own members and lanes. A wait below
 * messages.count is for this message; messages.count + r is for rank r to be ready. */
struct dag {
    int n, chunks, ports;    /* ranks in the DAG; chunks of the vector; ports of a rank */
    struct messages messages;
    struct deps waits;
    uint32_t *first;         /* list i: waits[first[i] .. first[i + 1]): of message i, then of the end of every rank */
};

void dag_init(struct dag *dag, const struct collective *collective, const struct task *task);
void dag_release(struct dag *dag);
/* The same, kept until some others have been asked for. */
const struct dag *dags_find(struct dags *dags, const struct collective *collective, const struct task *task);

#endif
