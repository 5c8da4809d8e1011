/* Butterfly all-reduce (recursive doubling): partners at distance 1, 2, 4, ... swap their sums, so that after each
 * round twice as many ranks share the same sum.
 *
 * Steps 0 and 3 of the figure fold a count that is no power of two (fold.h): ranks 1, 3, 4, 5 are numbers 0, 1, 2, 3
 * of a butterfly of four.
 *
 * Cost: log2 p rounds, p the largest power of two up to n; two more to fold (Thakur, Rabenseifner, Gropp, "Optimization
 * of collective communication operations in MPICH", Int. J. High Performance Computing Applications 19(1), 2005). */
#include "fold.h"

/* a: the whole vector; +> the receiver adds it to its own; => the receiver keeps it. */
static const char figure[] =
    "step  rank 0   rank 1   rank 2   rank 3   rank 4   rank 5\n"
    " 0    a +> 1            a +> 3\n"
    " 1             a +> 3            a +> 1   a +> 5   a +> 4\n"
    " 2             a +> 4            a +> 5   a +> 1   a +> 3\n"
    " 3             a => 0            a => 2\n";

static int chunks(const struct task *task)
{
    (void)task;
    return 1;
}

static void write_messages(struct messages *messages, const struct task *task)
{
    int n = task->n, p = core_size(n), ranks = task->folded ? task->folded : p, step = fold_in(messages, n, 1);

    for (int distance = 1; distance < p; distance *= 2, step++)
        for (int q = 0; q < ranks; q++)
            reduce(messages, step, core_rank(n, q), core_rank(n, core_partner(task, q, distance)), 0, 1);
    fold_out(messages, step, n, 1);
}

static double ideal(const struct task *task, double latency, double bandwidth)
{
    int rounds = 0;

    for (int p = core_size(task->n); p > 1; p /= 2)
        rounds++;
    return rounds * (latency + task->bytes / bandwidth) + fold_ideal(task, latency, bandwidth);
}

static double cost(const struct task *task, const struct fabric *fabric)
{
    double seconds = fold_cost(task, fabric);

    for (int distance = 1; distance < core_size(task->n); distance *= 2)
        seconds += hop_seconds(core_hop(task, fabric, distance), task->bytes);
    return seconds;
}

const struct collective collective_butterfly = {
    .op = COLLECTIVE_ALL_REDUCE,
    .name = "butterfly",
    .title = "Butterfly all-reduce (recursive doubling)",
    .paper = "Thakur, Rabenseifner, Gropp, Optimization of collective communication operations in MPICH, IJHPCA 19(1), "
             "2005",
    .figure = figure,
    .formula = "log2 p (latency + bytes / bandwidth), p = 2^floor(log2 n); n > p: + 2 (latency + bytes / bandwidth)",
    .nodes = NODES_ALIKE_OF_TWO,
    .chunks = chunks,
    .messages = core_messages,
    .write_messages = write_messages,
    .ideal = ideal,
    .cost = cost,
};
