/* Recursive doubling all-gather: neighbours swap their shares, then ranks two apart swap all shares that they have,
 * then ranks four apart, ...
 *
 * Other counts than powers of two have no such partners. There rank r sends the shares that it has to rank r - 1, then
 * to rank r - 2, to rank r - 4, ..., in the last step only those that the receiver lacks (Bruck, Ho, Kipnis, Upfal,
 * Weathersby, "Efficient algorithms for all-to-all communications in multiport message-passing systems", IEEE
 * Transactions on Parallel and Distributed Systems 8(11), 1997; Open MPI does the same,
 * ompi/mca/coll/base/coll_base_allgather.c).
 *
 * Cost: ceil(log2 n) messages, together n - 1 shares (Thakur, Rabenseifner, Gropp, "Optimization of collective
 * communication operations in MPICH", Int. J. High Performance Computing Applications 19(1), 2005). */
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

static void write_messages(struct messages *messages, const struct task *task)
{
    int n = task->n, step = 0;
    bool pairs = core_size(n) == n;

    for (int d = 1; d < n; d *= 2, step++)
        for (int r = 0; r < n; r++) {
            if (pairs)
                copy(messages, step, r, r ^ d, r / d * d, d);
            else
                copy(messages, step, r, (r + n - d) % n, r, d < n - d ? d : n - d);
        }
}

static double ideal(const struct task *task, double latency, double bandwidth)
{
    int n = task->n, steps = 0;

    for (int d = 1; d < n; d *= 2)
        steps++;
    return steps * latency + (n - 1) * (task->bytes / n) / bandwidth;
}

const struct collective collective_all_gather_doubling = {
    .op = COLLECTIVE_ALL_GATHER,
    .name = "doubling",
    .title = "Recursive doubling all-gather",
    .paper = "Thakur, Rabenseifner, Gropp, Optimization of collective communication operations in MPICH, IJHPCA 19(1), "
             "2005; where n is no power of two: Bruck, Ho, Kipnis, Upfal, Weathersby, Efficient algorithms for "
             "all-to-all communications in multiport message-passing systems, IEEE TPDS 8(11), 1997",
    .figure = figure,
    .formula = "ceil(log2 n) latency + (1 - 1/n) bytes / bandwidth",
    .crowds = true,
    .chunks = chunks,
    .messages = core_messages,
    .write_messages = write_messages,
    .ideal = ideal,
};
