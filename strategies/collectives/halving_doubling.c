/* Halving-doubling all-reduce (Rabenseifner): a butterfly in which partners split the part of the vector that they
 * share. Each sends the half that the other keeps, and sums its own half. After log2 n rounds every rank holds one
 * finished chunk. The same rounds in the opposite order gather all chunks.
 *
 * Other counts are folded as in butterfly.c, with whole vectors.
 *
 * Cost: with p the largest power of two up to n, halves, quarters, ... of the vector, (1 - 1/p) of it each way; two
 * whole vectors more to fold (Rabenseifner, "Optimization of collective reduction operations", ICCS 2004, LNCS 3036;
 * Thakur, Rabenseifner, Gropp, "Optimization of collective communication operations in MPICH", Int. J. High Performance
 * Computing Applications 19(1), 2005). */
#include "fold.h"

/* a b c d: the chunks; +> the receiver adds them to its own; => the receiver keeps them. */
static const char figure[] =
    "step  rank 0   rank 1   rank 2   rank 3\n"
    " 0    cd +> 1  ab +> 0  cd +> 3  ab +> 2\n"
    " 1    b +> 2   d +> 3   a +> 0   c +> 1\n"
    " 2    a => 2   c => 3   b => 0   d => 1\n"
    " 3    ab => 1  cd => 0  ab => 3  cd => 2\n";

/* The first of the p / distance chunks that number q still has after the rounds at distances below `distance`. */
static int block(int p, int q, int distance)
{
    int begin = 0;

    for (int d = 1; d < distance; d *= 2)
        if (q & d)
            begin += p / (2 * d);
    return begin;
}

static int chunks(const struct task *task)
{
    return core_size(task->n);
}

static void write_messages(struct messages *messages, const struct task *task)
{
    int n = task->n, p = core_size(n), ranks = task->folded ? task->folded : p;
    int step = fold_in(messages, n, p), d;

    for (d = 1; d < p; d *= 2, step++)
        for (int q = 0; q < ranks; q++)
            reduce(messages, step, core_rank(n, q), core_rank(n, core_partner(task, q, d)),
                   block(p, core_place(task, q ^ d), 2 * d), p / (2 * d));
    for (d = p / 2; d > 0; d /= 2, step++)
        for (int q = 0; q < ranks; q++)
            copy(messages, step, core_rank(n, q), core_rank(n, core_partner(task, q, d)),
                 block(p, core_place(task, q), 2 * d), p / (2 * d));
    fold_out(messages, step, n, p);
}

static double ideal(const struct task *task, double latency, double bandwidth)
{
    int p = core_size(task->n), rounds = 0;

    for (int rest = p; rest > 1; rest /= 2)
        rounds++;
    return 2 * rounds * latency + 2 * (1 - 1.0 / p) * task->bytes / bandwidth + fold_ideal(task, latency, bandwidth);
}

static double cost(const struct task *task, const struct fabric *fabric)
{
    double seconds = fold_cost(task, fabric);

    for (int distance = 1; distance < core_size(task->n); distance *= 2)
        seconds += 2 * hop_seconds(core_hop(task, fabric, distance), task->bytes / (2 * distance));
    return seconds;
}

const struct collective collective_halving_doubling = {
    .op = COLLECTIVE_ALL_REDUCE,
    .name = "halving-doubling",
    .title = "Halving-doubling all-reduce (Rabenseifner: recursive halving, then recursive doubling)",
    .paper = "Rabenseifner, Optimization of collective reduction operations, ICCS 2004; "
             "Thakur, Rabenseifner, Gropp, IJHPCA 19(1), 2005",
    .figure = figure,
    .formula = "2 log2 p latency + 2 (1 - 1/p) bytes / bandwidth, p = 2^floor(log2 n); "
               "n > p: + 2 (latency + bytes / bandwidth)",
    .reduce_scatter = &collective_reduce_scatter_halving,
    .all_gather = &collective_all_gather_doubling,
    .nodes = NODES_ALIKE_OF_TWO,
    .chunks = chunks,
    .messages = core_messages,
    .write_messages = write_messages,
    .ideal = ideal,
    .cost = cost,
};
