/* The lowering of collectives: their messages as transfers of a program, in each channel's order of members. */
#include "collective/dag.h"
#include "hardware/cluster.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "engine/program.h"

/* Channel c begins a node's g members at member ceil(c g / channels). If the node has `channels` NICs, this is the
 * first GPU of NIC c, and the member before it, now the last, belongs to NIC c - 1. So a ring enters through NIC c and
 * leaves through NIC c - 1. A root stays the first. A chain is the ring from the root on, and the members of its node
 * before it come last (as NCCL's broadcasts and reductions go round its rings, src/device/broadcast.h). For other
 * algorithms the other members of the root's node are rotated without it. */
void collective_order(const struct collective_call *call, int channel, int *order)
{
    const struct collective *collective = call->collective;
    const struct placed_group *group = call->group;
    int channels = call->channels;
    bool rooted = collective->op == COLLECTIVE_BROADCAST || collective->op == COLLECTIVE_REDUCE;
    int start = 0, root = 0;

    if (rooted && !collective->chain)
        order[start++] = 0;
    for (int length; start < group->n; start += length) {
        length = placed_group_run(group, start);
        int rotation = (channel * length + channels - 1) / channels;
        for (int i = 0; i < length; i++)
            order[start + i] = start + (i + rotation) % length;
    }
    if (!collective->chain)
        return;
    while (order[root])
        root++;
    for (int i = 0; i < root; i++) {         /* the root's node is the first: members before the root move to the end */
        int member = order[0];

        memmove(order, order + 1, (size_t)(group->n - 1) * sizeof *order);
        order[group->n - 1] = member;
    }
}

/* The state of a collective's lowering. */
struct lowering {
    const struct dag *dag;
    const struct placed_group *group;    /* the members that are lowered */
    double bytes;            /* B of a channel */
    int channels, stride;    /* channels used, lanes of a member */
    const uint32_t *lanes, *ready;
    struct tuning tuning;
    int *node;               /* a member: its node */
    struct new_op like;
    struct program *program;
    struct channel {
        int *order;          /* rank of the collective -> member */
        int *place;          /* member -> rank of the collective */
        uint32_t base;       /* the operation of its first message */
    } *channel;
    struct deps deps;        /* scratch: dependencies of the next operation */
};

static void add_waits(struct lowering *lowering, const struct channel *channel, size_t list)
{
    const struct dag *dag = lowering->dag;

    for (size_t i = dag->first[list]; i < dag->first[list + 1]; i++) {
        uint32_t wait = dag->waits.items[i];

        if (wait < dag->messages.count)
            *GROW(&lowering->deps) = channel->base + wait;
        else if (lowering->ready)
            *GROW(&lowering->deps) = lowering->ready[channel->order[wait - dag->messages.count]];
    }
}

static uint32_t lower_message(struct lowering *lowering, int lane, int src, int dst, double bytes)
{
    const struct tuning *tuning = &lowering->tuning;
    bool inside = lowering->node[src] == lowering->node[dst];
    struct new_op op = lowering->like;

    op.kind = OP_TRANSFER;
    op.lane = lowering->lanes[src * lowering->stride + lane];
    op.transfer = inside ? tuning->inside : tuning->between;
    op.transfer.src = (uint32_t)lowering->group->gpus[src];
    op.transfer.dst = (uint32_t)lowering->group->gpus[dst];
    op.amount = bytes;
    return program_add(lowering->program, op, lowering->deps.items, lowering->deps.count);
}

/* Most messages of a rank's port go where its last message went, and differ at most in their bytes. Each port of each
 * channel has a lane. */
static void lower_channel(struct lowering *lowering, int c)
{
    const struct dag *dag = lowering->dag;
    struct channel *channel = &lowering->channel[c];
    struct last { int dst; uint32_t id; } *last = xcalloc((size_t)dag->n * (size_t)dag->ports, sizeof *last);

    channel->base = (uint32_t)lowering->program->ops.count;
    for (size_t i = 0; i < dag->messages.count; i++) {
        const struct message *message = &dag->messages.items[i];
        double bytes = lowering->bytes * message->nchunks / dag->chunks;
        struct last *before = &last[message->src * dag->ports + message->port];

        lowering->deps.count = 0;
        add_waits(lowering, channel, i);
        before->id = before->dst == message->dst + 1 ?
                         program_resize(lowering->program, before->id, bytes, lowering->deps.items,
                                        lowering->deps.count) :
                         lower_message(lowering, c * dag->ports + message->port, channel->order[message->src],
                                       channel->order[message->dst], bytes);
        before->dst = message->dst + 1;          /* 0: none yet */
    }
    free(last);
}

static void lower_end(struct lowering *lowering, int member, uint32_t *done)
{
    struct new_op op = lowering->like;

    op.kind = OP_COMPUTE;
    op.lane = lowering->lanes[member * lowering->stride];
    lowering->deps.count = 0;
    for (int c = 0; c < lowering->channels; c++) {
        const struct channel *channel = &lowering->channel[c];
        add_waits(lowering, channel, lowering->dag->messages.count + (size_t)channel->place[member]);
    }
    *done = program_add(lowering->program, op, lowering->deps.items, lowering->deps.count);
}

/* Every member launches the kernel before its first message. */
static void lower_launch(struct lowering *lowering, uint32_t *launched)
{
    struct new_op op = lowering->like;

    op.kind = OP_COMPUTE;
    op.amount = op.compute.communication = lowering->tuning.launch;
    for (int member = 0; member < lowering->group->n; member++) {
        op.lane = lowering->lanes[member * lowering->stride];
        launched[member] = program_add(lowering->program, op, lowering->ready ? &lowering->ready[member] : NULL,
                                       lowering->ready ? 1 : 0);
    }
    lowering->ready = launched;
}

/* The messages of every channel, each in its own order of the members. */
static void lower_channels(struct lowering *lowering, const struct collective_call *chosen)
{
    size_t n = (size_t)chosen->group->n;

    lowering->channel = xcalloc((size_t)lowering->channels, sizeof *lowering->channel);
    for (int c = 0; c < lowering->channels; c++) {
        struct channel *channel = &lowering->channel[c];

        channel->order = xcalloc(n, sizeof *channel->order);
        channel->place = xcalloc(n, sizeof *channel->place);
        collective_order(chosen, c, channel->order);
        for (int rank = 0; rank < chosen->group->n; rank++)
            channel->place[channel->order[rank]] = rank;
        lower_channel(lowering, c);
    }
}

static void lowering_release(struct lowering *lowering)
{
    for (int c = 0; c < lowering->channels; c++) {
        free(lowering->channel[c].order);
        free(lowering->channel[c].place);
    }
    free(lowering->channel);
    free(lowering->deps.items);
    free(lowering->node);
}

struct collective_choice collective_lower(const struct collective_call *call, const struct folded *folded,
                                          const struct member_ops *ops, struct new_op like, struct program *program,
                                          struct dags *dags)
{
    struct placed_group lowered = *call->group;      /* its members alone are fewer if it is folded */
    struct lowering lowering = {
        .group = &lowered, .stride = ops->stride, .lanes = ops->lanes, .ready = ops->ready, .program = program,
        .like = {.what = like.what, .mb = like.mb, .stage = like.stage, .exchange = like.exchange},
    };
    struct collective_choice choice;
    struct collective_call chosen;
    struct task task;
    uint32_t *launched;

    BUG_IF(call->channels < 1);
    choice = collective_choose(call);
    chosen = collective_chosen(*call, choice.used, choice.channels);
    lowering.tuning = collective_tuning(&chosen, choice.protocol);
    task = collective_task(&chosen);
    task.folded = folded && folded->n < lowered.n ? folded->n : 0;
    if (folded) {
        lowered.cluster = folded->cluster;
        lowered.n = folded->n;
        lowered.gpus = folded->gpus;
    }
    chosen.group = &lowered;
    lowering.node = xcalloc((size_t)lowered.n, sizeof *lowering.node);
    launched = xcalloc((size_t)lowered.n, sizeof *launched);
    for (int member = 0; member < lowered.n; member++)
        lowering.node[member] = lowered.cluster->ideal ? 0 : cluster_node_of(lowered.cluster, lowered.gpus[member]);
    if (lowering.tuning.launch > 0)
        lower_launch(&lowering, launched);
    lowering.bytes = task.bytes;
    lowering.channels = folded ? folded->channels : choice.channels;
    lowering.dag = dags_find(dags, choice.used, &task);
    BUG_IF(lowering.dag->ports * lowering.channels > ops->stride);
    BUG_IF(lowering.dag->messages.count * (size_t)lowering.channels + program->ops.count + (size_t)lowered.n >
           UINT32_MAX);
    lower_channels(&lowering, &chosen);
    for (int member = 0; member < lowered.n; member++)
        lower_end(&lowering, member, &ops->done[member]);
    lowering_release(&lowering);
    free(launched);
    return choice;
}
