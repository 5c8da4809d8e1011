/* Ring all-gather: every rank's share travels once round the ring, and every rank keeps a copy. Ring reduce-scatter is
 * its reverse: every rank's share of the sum travels once round the ring, starting at the rank after its owner, and
 * collects a contribution on every rank. Both go to the right.
 *
 * Cost: n - 1 messages of 1/n of the vector, one after another; they are the second and the first half of the ring
 * all-reduce (Patarasuk, Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", J. Parallel and
 * Distributed Computing 69(2), 2009). */
#include "once_round.h"

/* a b c d: the shares of ranks 0 to 3; => the receiver keeps it; +> the receiver adds it to its own. */
static const char all_gather_figure[] =
    "step  rank 0   rank 1   rank 2   rank 3\n"
    " 0    a => 1   b => 2   c => 3   d => 0\n"
    " 1    d => 1   a => 2   b => 3   c => 0\n"
    " 2    c => 1   d => 2   a => 3   b => 0\n";
static const char reduce_scatter_figure[] =
    "step  rank 0   rank 1   rank 2   rank 3\n"
    " 0    d +> 1   a +> 2   b +> 3   c +> 0\n"
    " 1    c +> 1   d +> 2   a +> 3   b +> 0\n"
    " 2    b +> 1   c +> 2   d +> 3   a +> 0\n";

static void write_all_gather(struct messages *messages, const struct task *task)
{
    once_round(messages, task, 0, 0, COPY);
}

static void write_reduce_scatter(struct messages *messages, const struct task *task)
{
    once_round(messages, task, 0, -1, REDUCE);
}

static double cost(const struct task *task, const struct fabric *fabric)
{
    return ring_cost(task, fabric, 1);
}

const struct collective collective_all_gather_ring = {
    .op = COLLECTIVE_ALL_GATHER,
    .name = "ring",
    .title = "Ring all-gather",
    .paper = "Patarasuk, Yuan, Bandwidth optimal all-reduce algorithms for clusters of workstations, JPDC 69(2), 2009",
    .figure = all_gather_figure,
    .formula = "(n - 1) (latency + bytes / n / bandwidth)",
    .ring = true,
    .nodes = NODES_IN_RING,
    .library = true,
    .usual = true,
    .chunks = ring_chunks,
    .write_messages = write_all_gather,
    .ideal = ring_ideal,
    .cost = cost,
};

const struct collective collective_reduce_scatter_ring = {
    .op = COLLECTIVE_REDUCE_SCATTER,
    .name = "ring",
    .title = "Ring reduce-scatter",
    .paper = "Patarasuk, Yuan, Bandwidth optimal all-reduce algorithms for clusters of workstations, JPDC 69(2), 2009",
    .figure = reduce_scatter_figure,
    .formula = "(n - 1) (latency + bytes / n / bandwidth)",
    .ring = true,
    .nodes = NODES_IN_RING,
    .library = true,
    .usual = true,
    .chunks = ring_chunks,
    .write_messages = write_reduce_scatter,
    .ideal = ring_ideal,
    .cost = cost,
};
