/* All-reduce in the switches (NVLink SHARP). A rank reads its share of the vector, and the switch of its node sums it
 * on the way. Ranks that have the same place in their nodes sum their shares over all nodes. A rank writes its share,
 * and the switch copies it to the whole node. Messages between the ranks stand for the work of the switch.
 *
 * Every rank sends to other nodes itself.
 *
 * In a node of g ranks a port sends the vector once to be summed and a share to be copied, and receives the same number
 * of bytes: (1 + 1/g) of the vector, where messages between the ranks take 2 (1 - 1/g). Measurements with 5 to 8 H200
 * give 305 GB/s a port by this count (bus bandwidths in stas00/ml-engineering, network/README). Sources: NCCL,
 * src/device/all_reduce.h, NVLS; Graham et al., "Scalable Hierarchical Aggregation and Reduction Protocol (SHARP)
 * Streaming-Aggregation hardware design and evaluation", ISC 2020.
 *
 * Between L nodes NCCL has two pipelined trees: 2 log2 L messages on the way, 2 shares through each NIC. Halving and
 * doubling stand for them: they take the same number of messages on the way, but thousands of times fewer in all than
 * the pieces in the trees. (They move 2 (1 - 1/L) shares; an overhead of the messages makes up for the difference. Two
 * nodes need none: a tree then is one edge, so that a NIC carries one share each way. 8 GiB on two nodes of 8 H100 take
 * 36.6 ms, of 8 B200 23.3 ms, coreweave/nccl-tests#92; two shares would take 43 ms at the NICs' full rate.) For
 * other counts than powers of two a node's number has a digit for each prime factor of L. In a round for each digit a
 * node sends to all nodes that differ from it in this digit only.
 *
 * A piece of the vector is on its way at once, and each hop waits for a whole piece. In one node the pipeline has two
 * stages in addition to the switch's: into its memory and out of it. Between nodes only the first piece is exposed,
 * except for one pass through the switch each way, while nothing comes the other way, and all hops of the trees but
 * two, whose pieces are among the shares. A tree's root has one child, other nodes have two (NCCL, src/graph/trees.cc).
 * So the two hops at the root carry half a piece each: a single piece saves this time, one of many finds the NICs
 * busy. */
#include "collective/collective.h"

#include <math.h>

/* a b: the share of the first rank of each node, c d: of the second; +> the receiver adds it to its own; => the
 * receiver keeps it. */
static const char figure[] =
    "2 ranks a node\n"
    "step  rank 0   rank 1   rank 2   rank 3\n"
    " 0    cd +> 1  ab +> 0  cd +> 3  ab +> 2\n"
    " 1    b +> 2   d +> 3   a +> 0   c +> 1\n"
    " 2    a => 2   c => 3   b => 0   d => 1\n"
    " 3    ab => 1  cd => 0  ab => 3  cd => 2\n";

enum { HIDDEN = 4096 };  /* divides bytes in the nodes: the network's time hides theirs */

static int nodes_of(const struct task *task)
{
    return task->n / task->per_node;
}

/* The ranks that are written. */
static int ranks_of(const struct task *task)
{
    return task->folded ? task->folded : task->n;
}

/* Chunks of a rank's share: one a node, or two if two nodes stand for all. */
static int share_of(const struct task *task)
{
    return nodes_of(task) * (task->folded ? 2 : 1);
}

static int chunks(const struct task *task)
{
    return task->per_node * share_of(task);
}

/* Every rank sends every other rank of its node this rank's share, to be summed; or its own share, to be kept. */
static int draw_nodes(struct messages *messages, const struct task *task, int step, enum combine combine)
{
    int g = task->per_node, share = share_of(task);

    for (int d = 1; d < g; d++, step++)
        for (int r = 0; r < ranks_of(task); r++) {
            int dst = r / g * g + (r + d) % g;

            if (combine == REDUCE)
                reduce(messages, step, r, dst, dst % g * share, share);
            else
                copy(messages, step, r, dst, r % g * share, share);
        }
    return step;
}

static int factor_of(int number)
{
    for (int factor = 2; factor * factor <= number; factor++)
        if (number % factor == 0)
            return factor;
    return number;
}

/* A round: nodes that differ only in one digit, `unit` apart, cut the chunks that they hold of their share into `radix`
 * parts, one for each value of the digit. */
static int draw_round(struct messages *messages, const struct task *task, int step, int unit, int radix,
                      enum combine combine)
{
    int g = task->per_node, nodes = nodes_of(task), part = nodes / unit / radix;

    for (int d = 1; d < radix; d++, step++)
        for (int r = 0; r < task->n; r++) {
            int node = r / g, digit = node / unit % radix, begin = 0;
            int peer = node + ((digit + d) % radix - digit) * unit;
            int owner = combine == REDUCE ? peer : node;

            /* each digit before this one has cut the rest into equal parts */
            for (int u = 1, rest = nodes; u <= unit; u *= factor_of(nodes / u)) {
                int base = u == unit ? radix : factor_of(nodes / u);

                rest /= base;
                begin += owner / u % base * rest;
            }
            (combine == REDUCE ? reduce : copy)(messages, step, r, peer * g + r % g, r % g * nodes + begin, part);
        }
    return step;
}

/* The same round of two nodes that stand for all: in each step they send to each other. All sums use the same chunks in
 * the middle of the share, so that one waits for the one before it. A copied part must be none that the sender receives
 * in the same round, and must hold what it received in the round before: so the sides of the middle take turns. */
static int draw_folded_round(struct messages *messages, const struct task *task, int step, int unit, int radix,
                             int round, enum combine combine)
{
    int g = task->per_node, nodes = nodes_of(task), part = nodes / unit / radix;

    for (int d = 1; d < radix; d++, step++)
        for (int r = 0; r < 2 * g; r++) {
            int peer = (r + g) % (2 * g), middle = r % g * share_of(task) + nodes;

            if (combine == REDUCE)
                reduce(messages, step, r, peer, middle - part, 2 * part);
            else
                copy(messages, step, r, peer, (r / g + round) % 2 ? middle : middle - 2 * part, 2 * part);
        }
    return step;
}

static int draw_between(struct messages *messages, const struct task *task, int step, int unit, int round,
                        enum combine combine)
{
    int radix = factor_of(nodes_of(task) / unit);

    return task->folded ? draw_folded_round(messages, task, step, unit, radix, round, combine)
                        : draw_round(messages, task, step, unit, radix, combine);
}

static void write_messages(struct messages *messages, const struct task *task)
{
    int nodes = nodes_of(task), step = draw_nodes(messages, task, 0, REDUCE), unit = 1, units[32], rounds = 0;

    for (; unit < nodes; unit *= factor_of(nodes / unit))
        units[rounds++] = unit;
    for (int i = 0; i < rounds; i++)
        step = draw_between(messages, task, step, units[i], i, REDUCE);
    for (int i = rounds - 1; i >= 0; i--)
        step = draw_between(messages, task, step, units[i], i, COPY);
    draw_nodes(messages, task, step, COPY);
}

/* Rounds between the nodes, each way, and the messages that a rank sends in them. */
static int rounds_of(int nodes, int *messages)
{
    int rounds = 0;

    *messages = 0;
    for (int rest = nodes, factor; rest > 1; rest /= factor, rounds++) {
        factor = factor_of(rest);
        *messages += factor - 1;
    }
    return rounds;
}

static double messages_of(const struct task *task)
{
    int messages;

    rounds_of(nodes_of(task), &messages);
    return 2.0 * task->n * (task->per_node - 1 + messages);
}

static double cost(const struct task *task, const struct fabric *fabric)
{
    double nodes = nodes_of(task), share = task->bytes / task->per_node;
    int messages, rounds = rounds_of((int)nodes, &messages), peers = task->per_node - 1;

    /* with buffers the messages of a copy need not wait for each other; the messages of a sum do */
    return (peers + (fabric->buffered ? peers > 0 : peers)) * fabric->inside.latency +
           2 * peers * share / fabric->inside.bandwidth +
           (messages + (fabric->buffered ? rounds : messages)) * fabric->crowded.latency +
           2 * (1 - 1 / nodes) * share / fabric->crowded.bandwidth;
}

static double ideal(const struct task *task, double latency, double bandwidth)
{
    struct hop hop = {latency, bandwidth};

    return cost(task, &(struct fabric){.inside = hop, .between = hop, .crowded = hop});
}

/* Divides the time through the switch and back, and the time through the trees, equally among the messages of
 * cost(). */
static struct stand_in in_switch(const struct task *task, double piece)
{
    double g = task->per_node, nodes = nodes_of(task), hops = 2 * ceil(log2(nodes)), alone;
    struct stand_in stand_in = {{1 / g, 1, 2 * piece * (1 + 1 / g) / g}, {1, 1, 0}, 0, 1};
    int messages, rounds = rounds_of((int)nodes, &messages);

    if (g > 1)
        stand_in.inside.bytes = stand_in.crosses = (g + 1) / (2 * (g - 1));
    if (nodes > 1) {
        alone = task->bytes > 0 ? piece / task->bytes : 1;
        stand_in.inside.bytes /= HIDDEN;
        stand_in.inside.fill = 2 * piece / g;
        stand_in.between.latency = hops / (messages + rounds);
        stand_in.through = (g + 1) / (nodes > 2 ? 2 : 1);
        stand_in.between.bytes = nodes > 2 ? nodes / (nodes - 1) : 1;
        stand_in.between.fill = fmax(hops - 2 - alone, 0) * piece / g / (messages + rounds);
    }
    return stand_in;
}

const struct collective collective_nvls = {
    .op = COLLECTIVE_ALL_REDUCE,
    .name = "nvls",
    .title = "All-reduce in the switches (NVLink SHARP)",
    .paper = "NCCL (src/device/all_reduce.h, NVLS and NVLS tree); Graham et al., Scalable Hierarchical Aggregation and "
             "Reduction Protocol (SHARP) Streaming-Aggregation, ISC 2020",
    .figure = figure,
    .formula = "in a node of g: latency + (1 + 1/g) (bytes + 2 piece) / bandwidth; between L nodes latency + "
               "2 piece / bandwidth + 2 ceil(log2 L) latency + "
               "(2 bytes + (2 ceil(log2 L) - 2 - piece / bytes) piece) / g / bandwidth; L = 2: one bytes, not 2, or as "
               "long as ports need for (1 + 1/g) bytes",
    .every_nic = true,
    .crowds = true,
    .nodes = NODES_ALIKE,
    .library_cost = LIBRARY_NVLS,
    .library = true,
    .chunks = chunks,
    .messages = messages_of,
    .write_messages = write_messages,
    .ideal = ideal,
    .cost = cost,
    .in_switch = in_switch,
};
