/* Hierarchical all-reduce, two levels of rings: a reduce-scatter inside every node; all-reduces of a share each between
 * the ranks that have the same place in their nodes; an all-gather inside every node.
 *
 * Every rank sends to other nodes, so that all NICs work at once without channels. In one node, with one rank a node,
 * and with different numbers of ranks in nodes, this is the flat ring.
 *
 * Cost: with g ranks a node and L nodes, 1/g of the vector a message inside, 1/n between nodes; only 2 (L - 1)
 * messages pay the network's latency (Cho, Finkler, Serrano, Kung, Hunter, "BlueConnect: decomposing all-reduce for
 * deep learning on heterogeneous network hierarchy", IBM J. Research and Development 63(6), 2019). */
#include "collective/collective.h"

/* a b c d: the chunks; +> the receiver adds them to its own; => the receiver keeps them. */
static const char figure[] =
    "2 ranks a node\n"
    "step  rank 0   rank 1   rank 2   rank 3\n"
    " 0    cd +> 1  ab +> 0  cd +> 3  ab +> 2\n"
    " 1    b +> 2   d +> 3   a +> 0   c +> 1\n"
    " 2    a => 2   c => 3   b => 0   d => 1\n"
    " 3    ab => 1  cd => 0  ab => 3  cd => 2\n";

static int chunks(const struct task *task)
{
    return task->n;
}

/* A step of all rings inside the nodes; `ahead`: of the chunk that a rank sends, before the rank's own. */
static void draw_inside(struct messages *messages, const struct task *task, int step, int ahead, int ranks,
                        void (*hand)(struct messages *, int, int, int, int, int))
{
    int g = task->per_node, nodes = task->n / g;

    for (int r = 0; r < ranks; r++)
        hand(messages, step, r, r / g * g + (r + 1) % g, (2 * g + r % g - ahead) % g * nodes, nodes);
}

static void write_messages(struct messages *messages, const struct task *task)
{
    int g = task->per_node, nodes = task->n / g, ranks = task->folded ? task->folded : task->n, written = ranks / g;
    int step = 0;

    BUG_IF(written < 1);
    for (int i = 0; i < g - 1; i++, step++)
        draw_inside(messages, task, step, i + 1, ranks, reduce);
    /* once round to sum a chunk and once to copy it: a node passes on the chunk that it last got */
    for (int i = 0; i < 2 * (nodes - 1); i++, step++)
        for (int r = 0; r < ranks; r++)
            (i < nodes - 1 ? reduce : copy)(messages, step, r, (r + g) % ranks,
                                            r % g * nodes + (2 * nodes + r / g - 1 - i) % written, 1);
    for (int i = 0; i < g - 1; i++, step++)
        draw_inside(messages, task, step, i, ranks, copy);
}

static double cost(const struct task *task, const struct fabric *fabric)
{
    int g = task->per_node, nodes = task->n / g;

    return 2 * (g - 1) * hop_seconds(fabric->inside, task->bytes / g) +
           2 * (nodes - 1) * hop_seconds(fabric->crowded, task->bytes / task->n);
}

static double ideal(const struct task *task, double latency, double bandwidth)
{
    struct hop hop = {latency, bandwidth};

    return cost(task, &(struct fabric){.inside = hop, .between = hop, .crowded = hop});
}

const struct collective collective_hierarchical = {
    .op = COLLECTIVE_ALL_REDUCE,
    .name = "hierarchical",
    .title = "Hierarchical all-reduce (reduce-scatter in the nodes, rings between them, all-gather in the nodes)",
    .paper = "Cho, Finkler, Serrano, Kung, Hunter, BlueConnect: decomposing all-reduce for deep learning on "
             "heterogeneous network hierarchy, IBM J. R&D 63(6), 2019",
    .figure = figure,
    .formula = "2 (g - 1) (latency in the node + bytes / g / bandwidth) + 2 (L - 1) (latency + bytes / n / bandwidth), "
               "g ranks in each of L nodes",
    .every_nic = true,
    .nodes = NODES_IN_RING,
    .chunks = chunks,
    .write_messages = write_messages,
    .ideal = ideal,
    .cost = cost,
};
