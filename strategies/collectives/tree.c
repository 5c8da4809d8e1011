/* Tree all-reduce: sums climb a binomial tree to rank 0, and the result comes down the same tree.
 *
 * A rank sends its sum across the distance of its lowest set bit: odd ranks first, then odd multiples of 2, of 4, ...
 *
 * Cost: ceil(log2 n) rounds up and as many down. It is exact for every n: rank 0 receives in each round up, one message
 * after another, and sends in each round down (Thakur, Rabenseifner, Gropp, "Optimization of collective communication
 * operations in MPICH", Int. J. High Performance Computing Applications 19(1), 2005). */
#include "rooted.h"

/* a: the whole vector; +> the receiver adds it to its own; => the receiver keeps it. */
static const char figure[] =
    "step  rank 0   rank 1   rank 2   rank 3   rank 4   rank 5\n"
    " 0             a +> 0            a +> 2            a +> 4\n"
    " 1                      a +> 0\n"
    " 2                                        a +> 0\n"
    " 3    a => 4\n"
    " 4    a => 2\n"
    " 5    a => 1            a => 3            a => 5\n";

static void write_messages(struct messages *messages, const struct task *task)
{
    binomial(messages, task, binomial(messages, task, 0, REDUCE), COPY);
}

static double ideal(const struct task *task, double latency, double bandwidth)
{
    return 2 * binomial_rounds(task->n) * (latency + task->bytes / bandwidth);
}

/* The first rounds stay in the nodes, if nodes hold a power of two. */
static double cost(const struct task *task, const struct fabric *fabric)
{
    bool aligned = (task->per_node & (task->per_node - 1)) == 0;
    double seconds = 0;

    for (int distance = 1; distance < task->n; distance *= 2)
        seconds += 2 * hop_seconds(aligned && distance < task->per_node ? fabric->inside : fabric->between,
                                   task->bytes);
    return seconds;
}

const struct collective collective_tree = {
    .op = COLLECTIVE_ALL_REDUCE,
    .name = "tree",
    .title = "Tree all-reduce (binomial reduce to rank 0, then binomial broadcast)",
    .paper = "Thakur, Rabenseifner, Gropp, Optimization of collective communication operations in MPICH, IJHPCA 19(1), "
             "2005",
    .figure = figure,
    .formula = "2 ceil(log2 n) (latency + bytes / bandwidth)",
    .library_cost = LIBRARY_TREE,
    .chunks = whole_vector,
    .write_messages = write_messages,
    .ideal = ideal,
    .cost = cost,
};
