/* Double binary tree all-reduce: two trees over the nodes. Each sums one half of the vector and sends the sum back,
 * piece after piece. An inner node of one tree is a leaf of the other (except for one, if their number is odd). So no
 * link carries much more than the vector each way, for any number of nodes, and paths are short.
 *
 * In the first tree a node's parent is its number with the lowest set bit moved up by one, or, if there is no such
 * node, with this bit cleared; node 0 is the root. The second tree is the mirror image; for odd counts it is the first
 * tree, one node further. In a node of several ranks the others form a chain to the first rank, which alone sends to
 * other nodes. If all ranks are in one node, each counts as a node. A message's step is the first one in which its
 * sender is free and has the piece. Two children may send to their parent in the same step; they then share its link.
 *
 * Cost: a rank sends 4 times per pair of pieces, and the first way up and the last one down take 3 log2 n - 1 messages.
 * Where nothing contends it is exact for powers of two, else off by up to a quarter (3 ranks; mostly by a few
 * messages). Where children share their parent's link it takes up to 0.7 times longer, without latency (Sanders, Speck,
 * Traeff, "Two-tree algorithms for full bandwidth broadcast, reduction and scan", Parallel Computing 35(12), 2009; the
 * trees are NCCL's, src/graph/trees.cc).
 *
 * A communication library has a connection, here a port, from each rank to its parent and to each child: pieces go up and
 * down at the same time, and no connection waits for another (NCCL, src/device/all_reduce.h, runTreeSplit). So every
 * piece is a wave that follows the one before. */
#include "pieces.h"

#include <math.h>
#include <stdlib.h>

/* a b: the pieces (pieces.h) of the first and the second half; +> the receiver adds it to its own; => it keeps it.
 * */
static const char figure[] =
    "step  rank 0   rank 1   rank 2   rank 3\n"
    " 0    b +> 1   a +> 2   b +> 1   a +> 2\n"
    " 1             b +> 3   a +> 0\n"
    " 2    a => 2                     b => 1\n"
    " 3             b => 0   a => 1\n"
    " 4             b => 2   a => 3\n";

/* The number of nodes of the trees. */
static int tree_nodes(const struct task *task)
{
    return task->per_node == task->n ? task->n : task->n / task->per_node;
}

/* With a library's buffers latency does not speak against small pieces: the number is the same for all sizes, so that
 * more bytes never take less. */
static int tree_pieces(const struct task *task)
{
    return task->buffered ? PIECES_MOST : pieces(task->bytes / 2);
}

static int chunks(const struct task *task)
{
    return 2 * tree_pieces(task);
}

enum { ROOT = -1 };

static int first_parent(int nodes, int node)
{
    int bit = node & -node, up = (node ^ bit) | bit << 1;

    if (node == 0)
        return ROOT;
    return up < nodes ? up : node ^ bit;
}

static int second_parent(int nodes, int node)
{
    int image = nodes % 2 ? (node + nodes - 1) % nodes : nodes - 1 - node, up = first_parent(nodes, image);

    if (up == ROOT)
        return ROOT;
    return nodes % 2 ? (up + 1) % nodes : nodes - 1 - up;
}

/* The trees, and the steps in which each rank can send a piece or is busy. */
struct plan_of_trees {
    int n;
    int *parent[2];          /* a rank: its parent in each tree */
    int *order[2];           /* ranks, parents first */
    int *depth[2];           /* a rank: messages between it and the root */
    int *down[2];            /* a rank: the port through which its parent sends to it */
    int *ready[2];           /* a rank: the step from which it has the present piece */
    struct slots { bool *items; size_t count, capacity; } *busy;     /* a rank and step: it sends another piece */
    struct messages messages; /* in any order */
    int steps;
};

static void order_by_depth(int n, const int *parent, int *order, int *depth)
{
    int placed = 0;

    for (int r = 0; r < n; r++)
        for (int up = parent[r]; up != ROOT; up = parent[up])
            depth[r]++;
    for (int d = 0; placed < n; d++)
        for (int r = 0; r < n; r++)
            if (depth[r] == d)
                order[placed++] = r;
}

/* A library's connections: one to the parent and one to each child, in each tree. Without a library all are one. */
enum { CHILDREN = 3, DOWN = 2 };

static int ports(const struct task *task)
{
    return task->buffered ? DOWN + 2 * CHILDREN : 1;
}

static void number_connections(struct plan_of_trees *plan, int t)
{
    int *children = xcalloc((size_t)plan->n, sizeof *children);

    for (int r = 0; r < plan->n; r++)
        if (plan->parent[t][r] != ROOT)
            plan->down[t][r] = DOWN + CHILDREN * t + children[plan->parent[t][r]]++;
    free(children);
}

static void plan_init(struct plan_of_trees *plan, const struct task *task)
{
    int nodes = tree_nodes(task), g = task->n / nodes;
    size_t n = (size_t)task->n;

    *plan = (struct plan_of_trees){.n = task->n, .busy = xcalloc(n, sizeof *plan->busy)};
    for (int t = 0; t < 2; t++) {
        plan->parent[t] = xcalloc(n, sizeof(int));
        plan->order[t] = xcalloc(n, sizeof(int));
        plan->ready[t] = xcalloc(n, sizeof(int));
        plan->down[t] = xcalloc(n, sizeof(int));
        for (int r = 0; r < task->n; r++) {
            int up = t ? second_parent(nodes, r / g) : first_parent(nodes, r / g);
            plan->parent[t][r] = r % g ? r - 1 : up == ROOT ? ROOT : up * g;
        }
        plan->depth[t] = xcalloc(n, sizeof(int));
        order_by_depth(task->n, plan->parent[t], plan->order[t], plan->depth[t]);
        number_connections(plan, t);
    }
}

static void plan_release(struct plan_of_trees *plan)
{
    for (int t = 0; t < 2; t++) {
        free(plan->parent[t]);
        free(plan->order[t]);
        free(plan->ready[t]);
        free(plan->depth[t]);
        free(plan->down[t]);
    }
    for (int r = 0; r < plan->n; r++)
        free(plan->busy[r].items);
    free(plan->busy);
    free(plan->messages.items);
}

static void plan_message(struct plan_of_trees *plan, struct message message)
{
    message.nchunks = 1;
    *GROW(&plan->messages) = message;
    if (plan->steps <= message.step)
        plan->steps = message.step + 1;
}

/* Sends in the first step from `from` on in which the rank is free; returns the step after. */
static int send(struct plan_of_trees *plan, int from, int src, int dst, int chunk, enum combine combine)
{
    struct slots *busy = &plan->busy[src];
    size_t step = (size_t)from;

    while (step < busy->count && busy->items[step])
        step++;
    while (busy->count <= step)
        *GROW(busy) = false;
    busy->items[step] = true;
    plan_message(plan, (struct message){.step = (int)step, .src = src, .dst = dst, .chunk = chunk,
                                        .combine = (uint8_t)combine});
    return (int)step + 1;
}

static void send_up(struct plan_of_trees *plan, int t, int chunk)
{
    int *ready = plan->ready[t];

    for (int r = 0; r < plan->n; r++)
        ready[r] = 0;
    for (int i = plan->n - 1; i > 0; i--) {
        int r = plan->order[t][i], up = plan->parent[t][r], arrival = send(plan, ready[r], r, up, chunk, REDUCE);

        if (ready[up] < arrival)
            ready[up] = arrival;
    }
}

static void send_down(struct plan_of_trees *plan, int t, int chunk)
{
    for (int i = 1; i < plan->n; i++) {
        int r = plan->order[t][i], up = plan->parent[t][r];

        plan->ready[t][r] = send(plan, plan->ready[t][up], up, r, chunk, COPY);
    }
}

/* Each piece goes up and down its tree as a wave, a step behind the one before. The children of a rank send in the same
 * step, so that none waits for another. */
static void send_waves(struct plan_of_trees *plan, int t, int c)
{
    int most = plan->depth[t][plan->order[t][plan->n - 1]];

    for (int piece = 0; piece < c; piece++)
        for (int i = 1; i < plan->n; i++) {
            int r = plan->order[t][i], up = plan->parent[t][r], depth = plan->depth[t][r];

            plan_message(plan, (struct message){.step = piece + most - depth, .src = r, .dst = up,
                                                .chunk = t * c + piece, .combine = REDUCE, .port = (uint8_t)t});
            plan_message(plan, (struct message){.step = piece + most + depth - 1, .src = up, .dst = r,
                                                .chunk = t * c + piece, .combine = COPY,
                                                .port = (uint8_t)plan->down[t][r]});
        }
}

/* Sorts the messages by step; messages of one step keep the order in which they were planned. */
static void draw_plan(struct messages *messages, const struct plan_of_trees *plan)
{
    size_t *place = xcalloc((size_t)plan->steps + 1, sizeof *place);
    size_t *sorted = xcalloc(plan->messages.count + 1, sizeof *sorted);

    for (size_t i = 0; i < plan->messages.count; i++)
        place[plan->messages.items[i].step + 1]++;
    for (int step = 0; step < plan->steps; step++)
        place[step + 1] += place[step];
    for (size_t i = 0; i < plan->messages.count; i++)
        sorted[place[plan->messages.items[i].step]++] = i;
    for (size_t i = 0; i < plan->messages.count; i++) {
        const struct message *message = &plan->messages.items[sorted[i]];

        through_port(messages, message->port);
        (message->combine == COPY ? copy : reduce)(messages, message->step, message->src, message->dst, message->chunk,
                                                   1);
    }
    free(place);
    free(sorted);
}

static void write_messages(struct messages *messages, const struct task *task)
{
    struct plan_of_trees plan;
    int c = tree_pieces(task);

    plan_init(&plan, task);
    for (int t = 0; t < 2 && task->buffered; t++)
        send_waves(&plan, t, c);
    for (int piece = 0; piece < c && !task->buffered; piece++) {
        for (int t = 0; t < 2; t++)
            send_up(&plan, t, t * c + piece);
        for (int t = 0; t < 2; t++)
            send_down(&plan, t, t * c + piece);
    }
    draw_plan(messages, &plan);
    plan_release(&plan);
}

/* Messages one after another between the nodes. */
static int tree_messages(int nodes, int c)
{
    int rounds = 0;

    for (int reach = 1; reach < nodes; reach *= 2)
        rounds++;
    return nodes <= 2 ? 2 * c * rounds : 4 * c + 3 * rounds - 5;
}

static double ideal(const struct task *task, double latency, double bandwidth)
{
    int c = tree_pieces(task);

    return tree_messages(tree_nodes(task), c) * (latency + task->bytes / (2 * c) / bandwidth);
}

/* With a library's buffers nothing waits but for what it needs. The busiest links are a node's NICs, where an inner node
 * of one tree and a leaf of the other sends four pieces of each pair, or the ports of a chain. NCCL's own model adds up
 * their time and all latencies (src/graph/tuning.cc). But half of the pieces go up, and while they do, the first ones
 * already cross the network and come back: only what is longer counts. Every port is at the lower end of some channel's
 * chain, and so never rests from the beginning on. */
static double cost_buffered(const struct task *task, const struct fabric *fabric)
{
    int c = tree_pieces(task), nodes = tree_nodes(task), g = task->n / nodes, depth = 0;
    double piece = task->bytes / (2 * c), sends = nodes > 4 ? 4 : nodes;
    double chained = fabric->channels % g && g > 2 ? 4 : 4.0 * (g - 1) / g;      /* channels take turns at its ends */
    double nic = c * piece * sends / fabric->between.bandwidth, port = c * piece * chained / fabric->inside.bandwidth;

    for (int reach = 1; reach < nodes; reach *= 2)
        depth++;
    double chain = 2 * (g - 1) * fabric->inside.latency, way = depth * fabric->between.latency;
    double fill = port > nic ? depth / fabric->between.bandwidth :
                               (g - 1) / fabric->inside.bandwidth + (depth - 1) / fabric->between.bandwidth;

    if (fabric->tuned)
        return chain + 2 * way + fmax(nic, port);
    return piece * fill + fmax(fmax(chain + nic + way, chain / 2 + port), fmax(nic, port) / 2 + chain + 2 * way);
}

/* The messages between the nodes, the chain up and down, and both pieces that its first rank sends down the chain each
 * time. If links are shared, messages that both children send at once share their parent's link: in steady state 1.5
 * times the time (seen in simulation). */
static double cost(const struct task *task, const struct fabric *fabric)
{
    int c = tree_pieces(task), nodes = tree_nodes(task), g = task->n / nodes;
    double piece = task->bytes / (2 * c), between = hop_seconds(fabric->between, piece);

    if (fabric->buffered)
        return cost_buffered(task, fabric);
    return (tree_messages(nodes, c) + (nodes > 2 ? 2 * (c - 1) : 0)) * between +
           (g > 1 ? 2 * (g - 1 + c) * hop_seconds(fabric->inside, piece) : 0);
}

const struct collective collective_double_tree = {
    .op = COLLECTIVE_ALL_REDUCE,
    .name = "double-tree",
    .title = "Double binary tree all-reduce (pipelined)",
    .paper = "Sanders, Speck, Traeff, Two-tree algorithms for full bandwidth broadcast, reduction and scan, Parallel "
             "Computing 35(12), 2009; NCCL (src/graph/trees.cc)",
    .figure = figure,
    .formula = "(4 c + 3 ceil(log2 n) - 5) (latency + bytes / 2 c / bandwidth), c pieces of 128 KiB a half, 1 to 32; "
               "n = 2: 2 c; an estimate where n is no power of two",
    .error = 0.25,
    .library_cost = LIBRARY_TREE,
    .library = true,
    .chunks = chunks,
    .ports = ports,
    .write_messages = write_messages,
    .ideal = ideal,
    .cost = cost,
};
