/* Ring broadcast: the root's vector runs once along the ring, piece after piece, so that all links work at once. Ring
 * reduce is its reverse: sums run along the ring to the root, piece after piece, and collect a contribution on every
 * rank.
 *
 * Cost: the first of c pieces takes n - 1 hops, and the others follow it (a pipelined chain: Patarasuk, Faraj, Yuan,
 * "Pipelined broadcast on Ethernet switched clusters", IPDPS 2006; as NCCL broadcasts and reduces,
 * src/device/broadcast.h and reduce.h). */
#include "pieces.h"
#include "rooted.h"

#include <math.h>

/* a b: the pieces (pieces.h); => the receiver keeps it; +> the receiver adds it to its own. */
static const char broadcast_figure[] =
    "step  rank 0   rank 1   rank 2   rank 3\n"
    " 0    a => 1\n"
    " 1    b => 1   a => 2\n"
    " 2             b => 2   a => 3\n"
    " 3                      b => 3\n";
static const char reduce_figure[] =
    "step  rank 0   rank 1   rank 2   rank 3\n"
    " 0                               a +> 2\n"
    " 1                      a +> 1   b +> 2\n"
    " 2             a +> 0   b +> 1\n"
    " 3             b +> 0\n";

/* Pieces of a chain of n ranks: enough that the n - 2 pieces that fill its pipeline are at most a sixteenth of them. */
static int chunks(const struct task *task)
{
    double count = task->bytes / (128 * 1024);
    int most = task->n > 3 ? 16 * (task->n - 2) : 32;

    return most <= 32 || count < 32 ? pieces(task->bytes) : count > most ? most : (int)count;
}

/* Pieces leave the root at rank 0, or, reversed, the last rank. */
static void write_chain(struct messages *messages, const struct task *task, enum combine combine)
{
    int n = task->n, c = chunks(task);

    for (int step = 0; step < n - 2 + c; step++)
        for (int hop = 0; hop < n - 1; hop++) {
            int nearer = combine == COPY ? hop : n - 2 - hop;

            if (step >= hop && step - hop < c)
                pass(messages, step, nearer, nearer + 1, step - hop, combine);
        }
}

static void write_broadcast(struct messages *messages, const struct task *task)
{
    write_chain(messages, task, COPY);
}

static void write_reduce(struct messages *messages, const struct task *task)
{
    write_chain(messages, task, REDUCE);
}

/* Seconds of a chain: the first piece takes n - 1 hops, and the others follow it. */
static double ideal(const struct task *task, double latency, double bandwidth)
{
    int c = chunks(task);

    return task->n == 1 ? 0 : (task->n - 2 + c) * (latency + task->bytes / c / bandwidth);
}

/* The same through nodes. If a piece goes before the one before has arrived, each hop is paid once, and then the
 * slowest link decides. */
static double cost(const struct task *task, const struct fabric *fabric)
{
    int c = chunks(task), crossings = task->n / task->per_node - 1, hops = task->n - 1;
    double piece = task->bytes / c, slowest = fmin(fabric->inside.bandwidth, fabric->between.bandwidth);

    if (!fabric->buffered)
        return ideal(task, fmax(fabric->inside.latency, fabric->between.latency), slowest);
    return (hops - crossings) * hop_seconds(fabric->inside, piece) + crossings * hop_seconds(fabric->between, piece) +
           (task->n > 1 ? c - 1 : 0) * piece / slowest;
}

const struct collective collective_broadcast_ring = {
    .op = COLLECTIVE_BROADCAST,
    .name = "ring",
    .title = "Ring broadcast (pipelined chain)",
    .paper = "Patarasuk, Faraj, Yuan, Pipelined broadcast on Ethernet switched clusters, IPDPS 2006; "
             "NCCL (src/device/broadcast.h)",
    .figure = broadcast_figure,
    .formula = "(n - 2 + c) (latency + bytes / c / bandwidth), c pieces of 128 KiB, 1 to 16 (n - 2) or 32",
    .chain = true,
    .library = true,
    .usual = true,
    .chunks = chunks,
    .write_messages = write_broadcast,
    .ideal = ideal,
    .cost = cost,
};

const struct collective collective_reduce_ring = {
    .op = COLLECTIVE_REDUCE,
    .name = "ring",
    .title = "Ring reduce (pipelined chain)",
    .paper = "Patarasuk, Faraj, Yuan, Pipelined broadcast on Ethernet switched clusters, IPDPS 2006; "
             "NCCL (src/device/reduce.h)",
    .figure = reduce_figure,
    .formula = "(n - 2 + c) (latency + bytes / c / bandwidth), c pieces of 128 KiB, 1 to 16 (n - 2) or 32",
    .chain = true,
    .library = true,
    .usual = true,
    .chunks = chunks,
    .write_messages = write_reduce,
    .ideal = ideal,
    .cost = cost,
};
