/* Star broadcast: the root sends its vector to every rank, one after another.
 *
 * Cost: n - 1 messages one after another through the root's port, as of a parameter server (Li et al., "Scaling
 * distributed machine learning with the parameter server", OSDI 2014). */
#include "collective/collective.h"

/* a: the whole vector; => the receiver keeps it. */
static const char figure[] =
    "step  rank 0   rank 1   rank 2   rank 3\n"
    " 0    a => 1\n"
    " 1    a => 2\n"
    " 2    a => 3\n";

static int chunks(const struct task *task)
{
    (void)task;
    return 1;
}

static void write_messages(struct messages *messages, const struct task *task)
{
    for (int r = 1; r < task->n; r++)
        copy(messages, r - 1, 0, r, 0, 1);
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
    .figure = figure,
    .formula = "(n - 1) (latency + bytes / bandwidth)",
    .chunks = chunks,
    .write_messages = write_messages,
    .ideal = ideal,
};
