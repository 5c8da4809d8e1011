/* Tree broadcast: the root's vector comes down a binomial tree, across half of the ranks first, then a quarter, ...
 * Tree reduce is its reverse: sums climb the tree to the root, across neighbours first, then two apart, four, ...
 *
 * Cost: ceil(log2 n) rounds, in each of which the root sends once more, or takes in one more sum (Thakur, Rabenseifner,
 * Gropp, "Optimization of collective communication operations in MPICH", Int. J. High Performance Computing
 * Applications 19(1), 2005). */
#include "rooted.h"

/* a: the whole vector; => the receiver keeps it; +> the receiver adds it to its own. */
static const char broadcast_figure[] =
    "step  rank 0   rank 1   rank 2   rank 3   rank 4   rank 5\n"
    " 0    a => 4\n"
    " 1    a => 2\n"
    " 2    a => 1            a => 3            a => 5\n";
static const char reduce_figure[] =
    "step  rank 0   rank 1   rank 2   rank 3   rank 4   rank 5\n"
    " 0             a +> 0            a +> 2            a +> 4\n"
    " 1                      a +> 0\n"
    " 2                                        a +> 0\n";

static void write_broadcast(struct messages *messages, const struct task *task)
{
    binomial(messages, task, 0, COPY);
}

static void write_reduce(struct messages *messages, const struct task *task)
{
    binomial(messages, task, 0, REDUCE);
}

static double ideal(const struct task *task, double latency, double bandwidth)
{
    return binomial_rounds(task->n) * (latency + task->bytes / bandwidth);
}

const struct collective collective_broadcast_tree = {
    .op = COLLECTIVE_BROADCAST,
    .name = "tree",
    .title = "Tree broadcast (binomial)",
    .paper = "Thakur, Rabenseifner, Gropp, Optimization of collective communication operations in MPICH, IJHPCA 19(1), "
             "2005",
    .figure = broadcast_figure,
    .formula = "ceil(log2 n) (latency + bytes / bandwidth)",
    .chunks = whole_vector,
    .write_messages = write_broadcast,
    .ideal = ideal,
};

const struct collective collective_reduce_tree = {
    .op = COLLECTIVE_REDUCE,
    .name = "tree",
    .title = "Tree reduce (binomial)",
    .paper = "Thakur, Rabenseifner, Gropp, Optimization of collective communication operations in MPICH, IJHPCA 19(1), "
             "2005",
    .figure = reduce_figure,
    .formula = "ceil(log2 n) (latency + bytes / bandwidth)",
    .chunks = whole_vector,
    .write_messages = write_reduce,
    .ideal = ideal,
};
