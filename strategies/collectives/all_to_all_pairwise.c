/* Pairwise all-to-all: in step k every rank sends to the rank k further on and receives from the rank k before.
 *
 * Cost: n - 1 messages of 1/n of a rank's input (Thakur, Rabenseifner, Gropp, "Optimization of collective
 * communication operations in MPICH", Int. J. High Performance Computing Applications 19(1), 2005). */
#include "collective/collective.h"

/* a b c d: the shares for ranks 0 to 3; +> it joins the other shares for the receiver, its own and those of others. */
static const char figure[] =
    "step  rank 0   rank 1   rank 2   rank 3\n"
    " 0    b +> 1   c +> 2   d +> 3   a +> 0\n"
    " 1    c +> 2   d +> 3   a +> 0   b +> 1\n"
    " 2    d +> 3   a +> 0   b +> 1   c +> 2\n";

static int chunks(const struct task *task)
{
    return task->n;
}

static void write_messages(struct messages *messages, const struct task *task)
{
    int n = task->n;

    for (int k = 1; k < n; k++)
        for (int r = 0; r < n; r++)
            reduce(messages, k - 1, r, (r + k) % n, (r + k) % n, 1);
}

static double ideal(const struct task *task, double latency, double bandwidth)
{
    return (task->n - 1) * (latency + task->bytes / task->n / bandwidth);
}

const struct collective collective_all_to_all_pairwise = {
    .op = COLLECTIVE_ALL_TO_ALL,
    .name = "pairwise",
    .title = "Pairwise all-to-all",
    .paper = "Thakur, Rabenseifner, Gropp, Optimization of collective communication operations in MPICH, IJHPCA 19(1), "
             "2005",
    .figure = figure,
    .formula = "(n - 1) (latency + bytes / n / bandwidth)",
    .crowds = true,
    .library_cost = LIBRARY_SEND,
    .library = true,
    .usual = true,
    .chunks = chunks,
    .write_messages = write_messages,
    .ideal = ideal,
};
