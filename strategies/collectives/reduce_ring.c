/* Ring reduce: sums run along the ring to the root, piece after piece, and collect a contribution on every rank.
 *
 * Cost: the first of c pieces takes n - 1 hops, and the others follow it: the ring broadcast backwards (Patarasuk,
 * Faraj, Yuan, "Pipelined broadcast on Ethernet switched clusters", IPDPS 2006; as NCCL reduces,
 * src/device/reduce.h). */
#include "pieces.h"

/* a b: the pieces (pieces.h); +> the receiver adds it to its own. */
static const char figure[] =
    "step  rank 0   rank 1   rank 2   rank 3\n"
    " 0                               a +> 2\n"
    " 1                      a +> 1   b +> 2\n"
    " 2             a +> 0   b +> 1\n"
    " 3             b +> 0\n";

static void write_messages(struct messages *messages, const struct task *task)
{
    int n = task->n, c = chain_pieces(task);

    for (int step = 0; step < n - 2 + c; step++)
        for (int hop = 0; hop < n - 1; hop++)
            if (step >= hop && step - hop < c)
                reduce(messages, step, n - 1 - hop, n - 2 - hop, step - hop, 1);
}

const struct collective collective_reduce_ring = {
    .op = COLLECTIVE_REDUCE,
    .name = "ring",
    .title = "Ring reduce (pipelined chain)",
    .paper = "Patarasuk, Faraj, Yuan, Pipelined broadcast on Ethernet switched clusters, IPDPS 2006; "
             "NCCL (src/device/reduce.h)",
    .figure = figure,
    .formula = "(n - 2 + c) (latency + bytes / c / bandwidth), c pieces of 128 KiB, 1 to 16 (n - 2) or 32",
    .chain = true,
    .library = true,
    .usual = true,
    .chunks = chain_pieces,
    .write_messages = write_messages,
    .ideal = chain_ideal,
    .cost = chain_cost,
};
