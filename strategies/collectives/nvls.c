/* All-reduce in the switches (NVLink SHARP): every rank has its share of the vector summed by the switch of its node as
 * it is read, ranks of the same place sum their shares over all nodes, and the switch copies each share to the whole
 * node as it is written. Messages between the ranks stand for what the switch does.
 *
 * Every rank uses its own way to the network.
 *
 * In a node of g ranks a port sends the vector once to be summed and a share to be copied, and receives as much: (1 +
 * 1/g) of the vector where messages between the ranks take 2 (1 - 1/g). Seen in 5 to 8 H200: all 305 GB/s a port by
 * that count (bus bandwidths in stas00/ml-engineering, network/README). What it is: NCCL, src/device/all_reduce.h,
 * NVLS; Graham et al., "Scalable Hierarchical Aggregation and Reduction Protocol (SHARP) Streaming-Aggregation hardware
 * design and evaluation", ISC 2020.
 *
 * Between L nodes NCCL has two pipelined trees: 2 log2 L messages on the way, 2 shares through each NIC. Halving and
 * doubling stand for them: they take as many messages (and 2 (1 - 1/L) shares: an overhead of the messages makes up for
 * the difference), but thousands of times fewer than the pieces in the trees. For other counts than powers of two the
 * nodes are taken as digits of the prime factors of L, a round a digit, in which each node sends to all that differ
 * from it there.
 *
 * A piece of the vector is on its way at once, for which each hop waits: in one node the pipeline has two stages beside
 * the switch's (into its memory and out of it); between nodes what is behind the first piece is hidden, but for the
 * ways through the switch, one there and one back, when nothing comes the other way, and the hops of the trees but for
 * two, whose pieces are among the shares. A tree's root has one child where others have two (NCCL, src/graph/trees.cc),
 * so the two hops there carry half a piece each: a piece that is alone saves that, one of many finds the NICs busy. */
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

enum { HIDDEN = 4096 };  /* so small a part of the time in the nodes is seen beside the network's: none */

static int nodes_of(const struct task *task)
{
    return task->n / task->per_node;
}

static int chunks(const struct task *task)
{
    return task->n;
}

/* Every rank to every other of its node: their shares, to be summed; or its own share, to be kept. */
static int draw_nodes(struct messages *messages, const struct task *task, int step, enum combine combine)
{
    int g = task->per_node, nodes = nodes_of(task);

    for (int d = 1; d < g; d++, step++)
        for (int r = 0; r < task->n; r++) {
            int dst = r / g * g + (r + d) % g;

            if (combine == REDUCE)
                reduce(messages, step, r, dst, dst % g * nodes, nodes);
            else
                copy(messages, step, r, dst, r % g * nodes, nodes);
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

/* A round: nodes that differ in one digit alone, `unit` apart, cut what they hold of their share, `held` chunks from
 * begin(node), into as many parts as the digit has values. */
static int draw_round(struct messages *messages, const struct task *task, int step, int unit, int radix,
                      enum combine combine)
{
    int g = task->per_node, nodes = nodes_of(task), part = nodes / unit / radix;

    for (int d = 1; d < radix; d++, step++)
        for (int r = 0; r < task->n; r++) {
            int node = r / g, digit = node / unit % radix, begin = 0;
            int peer = node + ((digit + d) % radix - digit) * unit;
            int owner = combine == REDUCE ? peer : node;

            /* digits before this one have cut already: each the rest into equal parts */
            for (int u = 1, rest = nodes; u <= unit; u *= factor_of(nodes / u)) {
                int base = u == unit ? radix : factor_of(nodes / u);

                rest /= base;
                begin += owner / u % base * rest;
            }
            (combine == REDUCE ? reduce : copy)(messages, step, r, peer * g + r % g, r % g * nodes + begin, part);
        }
    return step;
}

static void draw(struct messages *messages, const struct task *task)
{
    int nodes = nodes_of(task), step = draw_nodes(messages, task, 0, REDUCE), unit = 1, units[32], rounds = 0;

    for (; unit < nodes; unit *= factor_of(nodes / unit))
        units[rounds++] = unit;
    for (int i = 0; i < rounds; i++)
        step = draw_round(messages, task, step, units[i], factor_of(nodes / units[i]), REDUCE);
    for (int i = rounds - 1; i >= 0; i--)
        step = draw_round(messages, task, step, units[i], factor_of(nodes / units[i]), COPY);
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

    /* what is kept need not wait for what was kept before, as what is summed does */
    return (peers + (fabric->buffered ? peers > 0 : peers)) * fabric->inside.latency +
           2 * peers * share / fabric->inside.bandwidth +
           (messages + (fabric->buffered ? rounds : messages)) * fabric->crowded.latency +
           2 * (1 - 1 / nodes) * share / fabric->crowded.bandwidth;
}

static double ideal(const struct task *task, double latency, double bandwidth)
{
    struct hop hop = {latency, bandwidth};

    return cost(task, &(struct fabric){hop, hop, hop, false});
}

/* The way through the switch and back, and that through the trees, in equal parts by the messages of cost(). */
static struct stand_in in_switch(const struct task *task, double piece)
{
    double g = task->per_node, nodes = nodes_of(task), hops = 2 * ceil(log2(nodes)), alone;
    struct stand_in stand_in = {{1 / g, 1, 2 * piece * (1 + 1 / g) / g}, {1, 1, 0}};
    int messages, rounds = rounds_of((int)nodes, &messages);

    if (g > 1)
        stand_in.inside.bytes = (g + 1) / (2 * (g - 1));
    if (nodes > 1) {
        alone = task->bytes > 0 ? piece / task->bytes : 1;
        stand_in.inside.bytes /= HIDDEN;
        stand_in.inside.fill = 2 * piece / g;
        stand_in.between.latency = hops / (messages + rounds);
        stand_in.between.bytes = nodes / (nodes - 1);
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
               "(2 bytes + (2 ceil(log2 L) - 2 - piece / bytes) piece) / g / bandwidth",
    .every_nic = true,
    .crowds = true,
    .pacer = PACER_NVLS,
    .library = true,
    .chunks = chunks,
    .messages = messages_of,
    .draw = draw,
    .ideal = ideal,
    .cost = cost,
    .in_switch = in_switch,
};
