/* Ring all-reduce: n chunks travel round a ring of n ranks. First they collect every rank's contribution
 * (reduce-scatter: n - 1 steps, then rank r holds the whole sum of chunk r), then they are copied (all-gather: n - 1
 * steps).
 *
 * Cost: 2 (n - 1) messages of 1/n of the vector, one after another: no algorithm moves fewer bytes a rank (Patarasuk,
 * Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", J. Parallel and Distributed Computing
 * 69(2), 2009). */
#include "once_round.h"

/* a b c d: the chunks; +> the receiver adds it to its own; => the receiver keeps it. */
static const char figure[] =
    "step  rank 0   rank 1   rank 2   rank 3\n"
    " 0    d +> 1   a +> 2   b +> 3   c +> 0\n"
    " 1    c +> 1   d +> 2   a +> 3   b +> 0\n"
    " 2    b +> 1   c +> 2   d +> 3   a +> 0\n"
    " 3    a => 1   b => 2   c => 3   d => 0\n"
    " 4    d => 1   a => 2   b => 3   c => 0\n"
    " 5    c => 1   d => 2   a => 3   b => 0\n";

static void write_messages(struct messages *messages, const struct task *task)
{
    once_round(messages, task, 0, -1, REDUCE);
    once_round(messages, task, task->n - 1, -1, COPY);
}

static double ideal(const struct task *task, double latency, double bandwidth)
{
    return 2 * (task->n - 1) * (latency + task->bytes / task->n / bandwidth);
}

static double cost(const struct task *task, const struct fabric *fabric)
{
    return ring_cost(task, fabric, 2);
}

const struct collective collective_ring = {
    .op = COLLECTIVE_ALL_REDUCE,
    .name = "ring",
    .title = "Ring all-reduce (reduce-scatter, then all-gather)",
    .paper = "Patarasuk, Yuan, Bandwidth optimal all-reduce algorithms for clusters of workstations, JPDC 69(2), 2009",
    .figure = figure,
    .formula = "2 (n - 1) (latency + bytes / n / bandwidth)",
    .ring = true,
    .nodes = NODES_IN_RING,
    .library = true,
    .usual = true,
    .reduce_scatter = &collective_reduce_scatter_ring,
    .all_gather = &collective_all_gather_ring,
    .chunks = ring_chunks,
    .write_messages = write_messages,
    .ideal = ideal,
    .cost = cost,
};
