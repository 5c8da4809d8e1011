/* Star broadcast: the root sends its vector to every rank, one after another. Star reduce is its reverse: every rank
 * sends its vector to the root, one after another.
 *
 * Cost: n - 1 messages one after another through the root's port, as of a parameter server (Li et al., "Scaling
 * distributed machine learning with the parameter server", OSDI 2014). */
#include "rooted.h"

/* a: the whole vector; => the receiver keeps it; +> the receiver adds it to its own. */
static const char broadcast_figure[] =
    "step  rank 0   rank 1   rank 2   rank 3\n"
    " 0    a => 1\n"
    " 1    a => 2\n"
    " 2    a => 3\n";
static const char reduce_figure[] =
    "step  rank 0   rank 1   rank 2   rank 3\n"
    " 0             a +> 0\n"
    " 1                      a +> 0\n"
    " 2                               a +> 0\n";

static void write_broadcast(struct messages *messages, const struct task *task)
{
    star(messages, task, 0, COPY);
}

static void write_reduce(struct messages *messages, const struct task *task)
{
    star(messages, task, 0, REDUCE);
}

static double ideal(const struct task *task, double latency, double bandwidth)
{
    return (task->n - 1) * (latency + task->bytes / bandwidth);
}

const struct collective collective_broadcast_star = {
    .op = COLLECTIVE_BROADCAST,
    .name = "star",
    .title = "Star broadcast (from a server, one after another)",
    .paper = "Li et al., Scaling distributed machine learning with the parameter server, OSDI 2014",
    .figure = broadcast_figure,
    .formula = "(n - 1) (latency + bytes / bandwidth)",
    .chunks = whole_vector,
    .write_messages = write_broadcast,
    .ideal = ideal,
};

const struct collective collective_reduce_star = {
    .op = COLLECTIVE_REDUCE,
    .name = "star",
    .title = "Star reduce (to a server, one after another)",
    .paper = "Li et al., Scaling distributed machine learning with the parameter server, OSDI 2014",
    .figure = reduce_figure,
    .formula = "(n - 1) (latency + bytes / bandwidth)",
    .chunks = whole_vector,
    .write_messages = write_reduce,
    .ideal = ideal,
};
