/* Recursive doubling all-gather: neighbours swap their shares, then ranks two apart swap all shares that they have,
 * then ranks four apart, ... Recursive halving reduce-scatter is its reverse: partners half of the ranks apart swap the
 * halves of the vector that belong to the other's side, then a quarter apart, ..., until every rank's own share is
 * left.
 *
 * Other counts than powers of two have no such partners. There an all-gather's rank r sends the shares that it has to
 * rank r - 1, then to rank r - 2, to rank r - 4, ..., in the last step only those that the receiver lacks (Bruck, Ho,
 * Kipnis, Upfal, Weathersby, "Efficient algorithms for all-to-all communications in multiport message-passing systems",
 * IEEE Transactions on Parallel and Distributed Systems 8(11), 1997; Open MPI does the same,
 * ompi/mca/coll/base/coll_base_allgather.c). A reduce-scatter is folded (fold.h): a resting rank's vector goes to its
 * neighbour, which collects the shares of both.
 *
 * Cost: ceil(log2 n) messages, together n - 1 shares; folded, one of the whole vector before them and one share after
 * them, and each message of the core as large as its largest (Thakur, Rabenseifner, Gropp, "Optimization of collective
 * communication operations in MPICH", Int. J. High Performance Computing Applications 19(1), 2005). */
#include "fold.h"

/* a b c d: the shares of ranks 0 to 3; => the receiver keeps them; +> the receiver adds them to its own. */
static const char all_gather_figure[] =
    "step  rank 0   rank 1   rank 2   rank 3\n"
    " 0    a => 1   b => 0   c => 3   d => 2\n"
    " 1    ab => 2  ab => 3  cd => 0  cd => 1\n";
static const char reduce_scatter_figure[] =
    "step  rank 0   rank 1   rank 2   rank 3\n"
    " 0    cd +> 2  cd +> 3  ab +> 0  ab +> 1\n"
    " 1    b +> 1   a +> 0   d +> 3   c +> 2\n";

static int chunks(const struct task *task)
{
    return task->n;
}

/* The rounds of the core, from `step` on: partners swap the shares of their own side, across neighbours first; reversed
 * (REDUCE), those of the other's side, across half of the core first. Returns the step after the last. */
static int write_rounds(struct messages *messages, int n, int step, enum combine combine)
{
    int p = core_size(n);

    for (int i = 1; i < p; i *= 2, step++) {
        int d = combine == COPY ? i : p / 2 / i;

        for (int q = 0; q < p; q++) {
            int side = (combine == COPY ? q : q ^ d) / d * d;
            int begin = core_share(n, side), end = core_share(n, side + d);

            (combine == COPY ? copy : reduce)(messages, step, core_rank(n, q), core_rank(n, q ^ d), begin, end - begin);
        }
    }
    return step;
}

static void write_all_gather(struct messages *messages, const struct task *task)
{
    int n = task->n, step = 0;

    if (core_size(n) == n)
        write_rounds(messages, n, 0, COPY);
    else
        for (int d = 1; d < n; d *= 2, step++)
            for (int r = 0; r < n; r++)
                copy(messages, step, r, (r + n - d) % n, r, d < n - d ? d : n - d);
}

static void write_reduce_scatter(struct messages *messages, const struct task *task)
{
    int n = task->n, step = write_rounds(messages, n, fold_in(messages, n, n), REDUCE);

    for (int i = 0; i < n - core_size(n); i++)
        copy(messages, step, 2 * i + 1, 2 * i, 2 * i, 1);
}

static double all_gather_ideal(const struct task *task, double latency, double bandwidth)
{
    int n = task->n, steps = 0;

    for (int d = 1; d < n; d *= 2)
        steps++;
    return steps * latency + (n - 1) * (task->bytes / n) / bandwidth;
}

/* The core swaps shares across the distances 1, 2, .. p / 2, each time the shares of `distance` numbers. The lowest
 * numbers have the most shares, and so the largest messages, for which all others wait. */
static double reduce_scatter_ideal(const struct task *task, double latency, double bandwidth)
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

const struct collective collective_all_gather_doubling = {
    .op = COLLECTIVE_ALL_GATHER,
    .name = "doubling",
    .title = "Recursive doubling all-gather",
    .paper = "Thakur, Rabenseifner, Gropp, Optimization of collective communication operations in MPICH, IJHPCA 19(1), "
             "2005; where n is no power of two: Bruck, Ho, Kipnis, Upfal, Weathersby, Efficient algorithms for "
             "all-to-all communications in multiport message-passing systems, IEEE TPDS 8(11), 1997",
    .figure = all_gather_figure,
    .formula = "ceil(log2 n) latency + (1 - 1/n) bytes / bandwidth",
    .crowds = true,
    .chunks = chunks,
    .messages = core_messages,
    .write_messages = write_all_gather,
    .ideal = all_gather_ideal,
};

const struct collective collective_reduce_scatter_halving = {
    .op = COLLECTIVE_REDUCE_SCATTER,
    .name = "halving",
    .title = "Recursive halving reduce-scatter",
    .paper = "Thakur, Rabenseifner, Gropp, Optimization of collective communication operations in MPICH, IJHPCA 19(1), "
             "2005",
    .figure = reduce_scatter_figure,
    .formula = "log2 n latency + (1 - 1/n) bytes / bandwidth, n = 2^k; else, p = 2^floor(log2 n): (2 + log2 p) "
               "latency + (n + 1 + sum of d + min(d, n - p), d = 1, 2, .. p/2) bytes / n / bandwidth",
    .crowds = true,
    .chunks = chunks,
    .messages = core_messages,
    .write_messages = write_reduce_scatter,
    .ideal = reduce_scatter_ideal,
};
