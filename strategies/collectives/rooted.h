/* rooted: messages between the root, rank 0, and all other ranks. A broadcast copies them away from the root. Reversed,
 * they go back the same ways and are summed: a reduce. An all-reduce does one after the other. */
#ifndef DTSIM_ROOTED_H
#define DTSIM_ROOTED_H

#include "collective/collective.h"

/* COPY: one chunk from the rank that is nearer to the root; REDUCE, the reverse: to it. */
static inline void pass(struct messages *messages, int step, int nearer, int farther, int chunk, enum combine combine)
{
    if (combine == COPY)
        copy(messages, step, nearer, farther, chunk, 1);
    else
        reduce(messages, step, farther, nearer, chunk, 1);
}

/* The vector is one chunk. */
static inline int whole_vector(const struct task *task)
{
    (void)task;
    return 1;
}

/* From the root to every rank, one after another, from `step` on; returns the step after the last. */
static inline int star(struct messages *messages, const struct task *task, int step, enum combine combine)
{
    for (int r = 1; r < task->n; r++)
        pass(messages, step++, 0, r, 0, combine);
    return step;
}

/* The rounds of a binomial tree: each doubles the ranks that are reached. */
static inline int binomial_rounds(int n)
{
    int rounds = 0;

    for (int reach = 1; reach < n; reach *= 2)
        rounds++;
    return rounds;
}

/* Down a binomial tree, across half of the ranks first, then a quarter, ..., from `step` on; reversed, up the tree,
 * across neighbours first. Returns the step after the last. */
static inline int binomial(struct messages *messages, const struct task *task, int step, enum combine combine)
{
    int rounds = binomial_rounds(task->n);

    for (int i = 0; i < rounds; i++, step++) {
        int distance = 1 << (combine == COPY ? rounds - 1 - i : i);

        for (int r = 0; r + distance < task->n; r += 2 * distance)
            pass(messages, step, r, r + distance, 0, combine);
    }
    return step;
}

#endif
