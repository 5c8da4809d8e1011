/* Ring broadcast: the root's vector runs once along the ring, piece after piece, so that all links work at once.
 *
 * Cost: the first of c pieces takes n - 1 hops, and the others follow it (a pipelined chain: Patarasuk, Faraj, Yuan,
 * "Pipelined broadcast on Ethernet switched clusters", IPDPS 2006; as NCCL broadcasts, src/device/broadcast.h). */
#include "pieces.h"

/* a b: the pieces (pieces.h); => the receiver keeps it. */
static const char figure[] =
    "step  rank 0   rank 1   rank 2   rank 3\n"
    " 0    a => 1\n"
    " 1    b => 1   a => 2\n"
    " 2             b => 2   a => 3\n"
    " 3                      b => 3\n";

static void write_messages(struct messages *messages, const struct task *task)
{
    int n = task->n, c = chain_pieces(task);

    for (int step = 0; step < n - 2 + c; step++)
        for (int r = 0; r < n - 1; r++)
            if (step >= r && step - r < c)
                copy(messages, step, r, r + 1, step - r, 1);
}

const struct collective collective_broadcast_ring = {
    .op = COLLECTIVE_BROADCAST,
    .name = "ring",
    .title = "Ring broadcast (pipelined chain)",
    .paper = "Patarasuk, Faraj, Yuan, Pipelined broadcast on Ethernet switched clusters, IPDPS 2006; "
             "NCCL (src/device/broadcast.h)",
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
