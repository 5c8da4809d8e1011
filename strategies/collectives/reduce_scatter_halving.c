/* Recursive halving reduce-scatter: partners half of the ranks apart swap the halves of the vector that belong to the
 * other's side, then a quarter apart, ..., until every rank's own share is left.
 *
 * Other counts than powers of two are folded (fold.h): a resting rank's vector goes to its neighbour, which collects
 * the shares of both.
 *
 * Cost: log2 n messages of 1/2, 1/4, ... of the vector; folded, one of the whole vector before them and one share after
 * them, and each message of the core as large as its largest (Thakur, Rabenseifner, Gropp, "Optimization of collective
 * communication operations in MPICH", Int. J. High Performance Computing Applications 19(1), 2005). */
#include "fold.h"

/* a b c d: the shares of ranks 0 to 3; +> the receiver adds them to its own. */
static const char figure[] =
    "step  rank 0   rank 1   rank 2   rank 3\n"
    " 0    cd +> 2  cd +> 3  ab +> 0  ab +> 1\n"
    " 1    b +> 1   a +> 0   d +> 3   c +> 2\n";

static int chunks(const struct task *task)
{
    return task->n;
}

static void write_messages(struct messages *messages, const struct task *task)
{
    int n = task->n, p = core_size(n), step = fold_in(messages, n, n);

    for (int d = p / 2; d > 0; d /= 2, step++)
        for (int q = 0; q < p; q++) {
            int other = (q ^ d) / d * d, begin = core_share(n, other), end = core_share(n, other + d);

            reduce(messages, step, core_rank(n, q), core_rank(n, q ^ d), begin, end - begin);
        }
    for (int i = 0; i < n - p; i++)
        copy(messages, step, 2 * i + 1, 2 * i, 2 * i, 1);
}

/* The core swaps shares across the distances 1, 2, .. p / 2, each time the shares of `distance` numbers. The lowest
 * numbers have the most shares, and so the largest messages, for which all others wait. */
static double ideal(const struct task *task, double latency, double bandwidth)
{
    int n = task->n, p = core_size(n), messages = 0, shares = 0;

    for (int distance = 1; distance < p; distance *= 2, messages++)
        shares += core_share(n, distance);
    if (n > p) {
        messages += 2;
        shares += n + 1;
    }
    return messages * latency + shares * task->bytes / n / bandwidth;
}

const struct collective collective_reduce_scatter_halving = {
    .op = COLLECTIVE_REDUCE_SCATTER,
    .name = "halving",
    .title = "Recursive halving reduce-scatter",
    .paper = "Thakur, Rabenseifner, Gropp, Optimization of collective communication operations in MPICH, IJHPCA 19(1), "
             "2005",
    .figure = figure,
    .formula = "log2 n latency + (1 - 1/n) bytes / bandwidth, n = 2^k; else, p = 2^floor(log2 n): (2 + log2 p) "
               "latency + (n + 1 + sum of d + min(d, n - p), d = 1, 2, .. p/2) bytes / n / bandwidth",
    .crowds = true,
    .chunks = chunks,
    .messages = core_messages,
    .write_messages = write_messages,
    .ideal = ideal,
};
