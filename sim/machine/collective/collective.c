#include "collective/collective.h"

#include <math.h>
#include <string.h>

static const struct collective *const collectives[] = {
#define COLLECTIVE(name) &collective_##name,
#include "base/base.h"
#include "strategies/collectives/list.h"
#undef COLLECTIVE
};

const char *const collective_op_names[] = {
    [COLLECTIVE_ALL_REDUCE] = "all_reduce", [COLLECTIVE_REDUCE_SCATTER] = "reduce_scatter",
    [COLLECTIVE_ALL_GATHER] = "all_gather", [COLLECTIVE_BROADCAST] = "broadcast", [COLLECTIVE_REDUCE] = "reduce",
    [COLLECTIVE_ALL_TO_ALL] = "all_to_all", NULL,
};
_Static_assert(COUNT(collective_op_names) == COLLECTIVE_OP_COUNT + 1, "a name for every operation");

double collective_bus_factor(enum collective_op op, int n)
{
    switch (op) {
    case COLLECTIVE_ALL_REDUCE:
        return 2 * (n - 1.0) / n;
    case COLLECTIVE_REDUCE_SCATTER:
    case COLLECTIVE_ALL_GATHER:
    case COLLECTIVE_ALL_TO_ALL:
        return (n - 1.0) / n;
    default:
        return 1;
    }
}

const struct collective *collective_at(size_t index)
{
    return index < COUNT(collectives) ? collectives[index] : NULL;
}

const struct collective *collective_of(enum collective_op op, size_t index)
{
    for (size_t i = 0; i < COUNT(collectives); i++)
        if (collectives[i]->op == op && index-- == 0)
            return collectives[i];
    return NULL;
}

const struct collective *collective_find(enum collective_op op, const char *name)
{
    for (size_t i = 0; i < COUNT(collectives); i++)
        if (collectives[i]->op == op && !strcmp(collectives[i]->name, name))
            return collectives[i];
    return NULL;
}

const struct collective *collective_usual(enum collective_op op, bool library)
{
    const struct collective *usual = NULL, *candidate;

    for (size_t i = 0; (candidate = collective_of(op, i)); i++) {
        if (library && !candidate->write_messages)
            return candidate;
        usual = candidate->usual ? candidate : usual;
    }
    return usual;
}

const struct collective *collective_half(const struct collective *all_reduce, enum collective_op op)
{
    const struct collective *half = op == COLLECTIVE_ALL_GATHER ? all_reduce->all_gather : all_reduce->reduce_scatter;

    return half ? half : collective_usual(op, false);
}

const char *all_reduce_name(size_t index)
{
    const struct collective *collective = collective_of(COLLECTIVE_ALL_REDUCE, index);

    return collective ? collective->name : NULL;
}

static void write_message(struct messages *messages, struct message message)
{
    BUG_IF(message.step < 0 || (messages->count && message.step < messages->items[messages->count - 1].step));
    BUG_IF(message.src < 0 || message.dst < 0 || message.src == message.dst);
    BUG_IF(message.chunk < 0 || message.nchunks < 1);
    message.port = (uint8_t)messages->port;
    message.phase = (uint16_t)messages->phase;
    *GROW(messages) = message;
}

void through_port(struct messages *messages, int port)
{
    BUG_IF(port < 0 || port > UINT8_MAX);
    messages->port = port;
}

void next_phase(struct messages *messages)
{
    BUG_IF(messages->phase == UINT16_MAX);
    messages->phase++;
}

void copy(struct messages *messages, int step, int src, int dst, int chunk, int nchunks)
{
    write_message(messages, (struct message){step, src, dst, chunk, nchunks, COPY, 0, 0});
}

void reduce(struct messages *messages, int step, int src, int dst, int chunk, int nchunks)
{
    write_message(messages, (struct message){step, src, dst, chunk, nchunks, REDUCE, 0, 0});
}

double collective_messages(const struct collective *collective, const struct task *task)
{
    const struct task any = {.n = task->n, .per_node = task->per_node, .bytes = INFINITY,
                             .torus = task->torus};
    const struct collective *candidate;
    double most = 0;

    if (collective->messages)
        return collective->messages(&any);
    if (collective->write_messages)
        return 2.0 * any.n * fmax(collective->chunks(&any), log2(any.n));
    for (size_t i = 0; (candidate = collective_of(collective->op, i)); i++)
        if (candidate->write_messages)
            most = fmax(most, collective_messages(candidate, task));
    return most;
}

bool collective_runs_in(const struct collective *collective, const struct placed_group *group)
{
    return !collective->torus || group->is_torus;
}

const char *collective_needs(const struct collective *collective)
{
    if (collective->torus)
        return "a torus with wrap, such as 'network: {topology: {dims: [4, 4, 8]}}', and in each group all nodes of "
               "some of its dimensions, one GPU a node, in their order";
    return "switches that reduce: a cluster whose communication profile has 'nvls', such as dgx-h100";
}

int collective_check_group(const struct collective *collective, const struct placed_group *group, struct error *err)
{
    if (collective_runs_in(collective, group))
        return 0;
    return error_clash(err, (struct loc){0}, "%s: %s does not run on these %d GPUs; it needs %s",
                       collective_op_names[collective->op], collective->name, group->n, collective_needs(collective));
}

struct collective_call collective_chosen(struct collective_call call, const struct collective *used, int channels)
{
    call.collective = used;
    call.channels = channels;
    return call;
}
