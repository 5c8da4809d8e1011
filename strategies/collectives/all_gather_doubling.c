/* Recursive doubling all-gather: neighbours swap their shares, then ranks two apart swap all shares that they have,
 * then ranks four apart, ...
 *
 * Other counts than powers of two are folded (fold.h): a resting rank sends its share to its neighbour before, and gets
 * all shares from it after.
 *
 * Cost: log2 n messages of 1, 2, 4, ... shares; folded, one share before them and the whole vector after them, and each
 * message of the core as large as its largest (Thakur, Rabenseifner, Gropp, "Optimization of collective communication
 * operations in MPICH", Int. J. High Performance Computing Applications 19(1), 2005). */
#include "fold.h"

/* a b c d: the shares of ranks 0 to 3; => the receiver keeps them. */
static const char figure[] =
    "step  rank 0   rank 1   rank 2   rank 3\n"
    " 0    a => 1   b => 0   c => 3   d => 2\n"
    " 1    ab => 2  ab => 3  cd => 0  cd => 1\n";

static int chunks(const struct task *task)
{
    return task->n;
}

static void draw(struct messages *messages, const struct task *task)
{
    int n = task->n, p = core_size(n), step = n > p;

    for (int i = 0; i < n - p; i++)
        copy(messages, 0, 2 * i, 2 * i + 1, 2 * i, 1);
    for (int d = 1; d < p; d *= 2, step++)
        for (int q = 0; q < p; q++) {
            int own = q / d * d, begin = core_share(n, own), end = core_share(n, own + d);

            copy(messages, step, core_rank(n, q), core_rank(n, q ^ d), begin, end - begin);
        }
    fold_out(messages, step, n, n);
}

static double ideal(const struct task *task, double latency, double bandwidth)
{
    return core_shares_ideal(task, latency, bandwidth);
}

const struct collective collective_all_gather_doubling = {
    .op = COLLECTIVE_ALL_GATHER,
    .name = "doubling",
    .title = "Recursive doubling all-gather",
    .paper = "Thakur, Rabenseifner, Gropp, Optimization of collective communication operations in MPICH, IJHPCA 19(1), "
             "2005",
    .figure = figure,
    .formula = "log2 n latency + (1 - 1/n) bytes / bandwidth, n = 2^k; else, p = 2^floor(log2 n): (2 + log2 p) "
               "latency + (n + 1 + sum of d + min(d, n - p), d = 1, 2, .. p/2) bytes / n / bandwidth",
    .crowds = true,
    .chunks = chunks,
    .messages = core_messages,
    .draw = draw,
    .ideal = ideal,
};
