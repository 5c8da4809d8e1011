/* Tree broadcast: the root's vector comes down a binomial tree, across half of the ranks first, then a quarter, ...
 *
 * Cost: ceil(log2 n) rounds, in each of which the root sends once more (Thakur, Rabenseifner, Gropp, "Optimization of
 * collective communication operations in MPICH", Int. J. High Performance Computing Applications 19(1), 2005). */
#include "collective/collective.h"

/* a: the whole vector; => the receiver keeps it. */
static const char figure[] =
    "step  rank 0   rank 1   rank 2   rank 3   rank 4   rank 5\n"
    " 0    a => 4\n"
    " 1    a => 2\n"
    " 2    a => 1            a => 3            a => 5\n";

static int chunks(const struct task *task)
{
    (void)task;
    return 1;
}

static void write_messages(struct messages *messages, const struct task *task)
{
    int n = task->n, step = 0, distance = 1;

    while (distance < n)
        distance *= 2;
    for (distance /= 2; distance > 0; distance /= 2, step++)
        for (int r = 0; r + distance < n; r += 2 * distance)
            copy(messages, step, r, r + distance, 0, 1);
}

static double ideal(const struct task *task, double latency, double bandwidth)
{
    int rounds = 0;

    for (int reach = 1; reach < task->n; reach *= 2)
        rounds++;
    return rounds * (latency + task->bytes / bandwidth);
}

const struct collective collective_broadcast_tree = {
    .op = COLLECTIVE_BROADCAST,
    .name = "tree",
    .title = "Tree broadcast (binomial)",
    .paper = "Thakur, Rabenseifner, Gropp, Optimization of collective communication operations in MPICH, IJHPCA 19(1), "
             "2005",
    .figure = figure,
    .formula = "ceil(log2 n) (latency + bytes / bandwidth)",
    .chunks = chunks,
    .write_messages = write_messages,
    .ideal = ideal,
};
