/* Naive all-reduce: every rank sends its vector to rank 0, one after another; rank 0 sends the sum back to every rank,
 * one after another.
 *
 * Each arrival at rank 0 has a step of its own, because rank 0 takes in one vector at a time. All traffic crosses its
 * port.
 *
 * Cost: every vector crosses rank 0's port by itself, n - 1 in and n - 1 out (the latency and bandwidth model of
 * Hockney, "The communication challenge for MPP: Intel Paragon and Meiko CS-2", Parallel Computing 20(3), 1994). */
#include "rooted.h"

/* a: the whole vector; +> the receiver adds it to its own; => the receiver keeps it. */
static const char figure[] =
    "step  rank 0   rank 1   rank 2   rank 3\n"
    " 0             a +> 0\n"
    " 1                      a +> 0\n"
    " 2                               a +> 0\n"
    " 3    a => 1\n"
    " 4    a => 2\n"
    " 5    a => 3\n";

static void write_messages(struct messages *messages, const struct task *task)
{
    star(messages, task, star(messages, task, 0, REDUCE), COPY);
}

static double ideal(const struct task *task, double latency, double bandwidth)
{
    return 2 * (task->n - 1) * (latency + task->bytes / bandwidth);
}

/* Messages of ranks in the root's own node do not use the network. */
static double cost(const struct task *task, const struct fabric *fabric)
{
    return 2 * (task->per_node - 1) * hop_seconds(fabric->inside, task->bytes) +
           2 * (task->n - task->per_node) * hop_seconds(fabric->between, task->bytes);
}

const struct collective collective_naive = {
    .op = COLLECTIVE_ALL_REDUCE,
    .name = "naive",
    .title = "Naive all-reduce (gather at rank 0, then broadcast, one message at a time)",
    .paper = "the baseline; cost model: Hockney, The communication challenge for MPP, Parallel Computing 20(3), 1994",
    .figure = figure,
    .formula = "2 (n - 1) (latency + bytes / bandwidth)",
    .chunks = whole_vector,
    .write_messages = write_messages,
    .ideal = ideal,
    .cost = cost,
};
