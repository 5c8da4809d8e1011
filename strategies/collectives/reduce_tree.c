/* Tree reduce: sums climb a binomial tree to the root, across neighbours first, then two apart, four, ...
 *
 * Cost: ceil(log2 n) rounds, in each of which the root takes in one more sum (Thakur, Rabenseifner, Gropp,
 * "Optimization of collective communication operations in MPICH", Int. J. High Performance Computing Applications
 * 19(1), 2005). */
#include "collective/collective.h"

/* a: the whole vector; +> the receiver adds it to its own. */
static const char figure[] =
    "step  rank 0   rank 1   rank 2   rank 3   rank 4   rank 5\n"
    " 0             a +> 0            a +> 2            a +> 4\n"
    " 1                      a +> 0\n"
    " 2                                        a +> 0\n";

static int chunks(const struct task *task)
{
    (void)task;
    return 1;
}

static void write_messages(struct messages *messages, const struct task *task)
{
    int n = task->n, step = 0;

    for (int distance = 1; distance < n; distance *= 2, step++)
        for (int r = 0; r + distance < n; r += 2 * distance)
            reduce(messages, step, r + distance, r, 0, 1);
}

static double ideal(const struct task *task, double latency, double bandwidth)
{
    int rounds = 0;

    for (int reach = 1; reach < task->n; reach *= 2)
        rounds++;
    return rounds * (latency + task->bytes / bandwidth);
}

const struct collective collective_reduce_tree = {
    .op = COLLECTIVE_REDUCE,
    .name = "tree",
    .title = "Tree reduce (binomial)",
    .paper = "Thakur, Rabenseifner, Gropp, Optimization of collective communication operations in MPICH, IJHPCA 19(1), "
             "2005",
    .figure = figure,
    .formula = "ceil(log2 n) (latency + bytes / bandwidth)",
    .chunks = chunks,
    .write_messages = write_messages,
    .ideal = ideal,
};
