/* Ring all-gather: every rank's share travels once round the ring, and every rank keeps a copy.
 *
 * Cost: n - 1 messages of 1/n of the vector, one after another; it is the second half of the ring all-reduce
 * (Patarasuk, Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", J. Parallel and Distributed
 * Computing 69(2), 2009). */
#include "once_round.h"

/* a b c d: the shares of ranks 0 to 3; => the receiver keeps it. */
static const char figure[] =
    "step  rank 0   rank 1   rank 2   rank 3\n"
    " 0    a => 1   b => 2   c => 3   d => 0\n"
    " 1    d => 1   a => 2   b => 3   c => 0\n"
    " 2    c => 1   d => 2   a => 3   b => 0\n";

static void write_messages(struct messages *messages, const struct task *task)
{
    once_round(messages, task, 0, 0, copy);
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
    .figure = figure,
    .formula = "(n - 1) (latency + bytes / n / bandwidth)",
    .ring = true,
    .nodes = NODES_IN_RING,
    .library = true,
    .usual = true,
    .chunks = ring_chunks,
    .write_messages = write_messages,
    .ideal = ring_ideal,
    .cost = cost,
};
