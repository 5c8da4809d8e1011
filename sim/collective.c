#include "collective.h"

#include "cluster.h"

#include <stdlib.h>
#include <string.h>

#define COLLECTIVE(name) extern const struct collective collective_##name;
#include "collectives/list.h"
#undef COLLECTIVE

static const struct collective *const collectives[] = {
#define COLLECTIVE(name) &collective_##name,
#include "collectives/list.h"
#undef COLLECTIVE
};

const struct collective *collective_at(size_t index)
{
    return index < COUNT(collectives) ? collectives[index] : NULL;
}

const char *collective_name(size_t index)
{
    return index < COUNT(collectives) ? collectives[index]->name : NULL;
}

const struct collective *collective_find(const char *name)
{
    for (size_t i = 0; i < COUNT(collectives); i++)
        if (!strcmp(collectives[i]->name, name))
            return collectives[i];
    return NULL;
}

static void draw_arrow(struct arrows *arrows, struct arrow arrow)
{
    BUG_IF(arrow.step < 0 || (arrows->count && arrow.step < arrows->items[arrows->count - 1].step));
    BUG_IF(arrow.src < 0 || arrow.dst < 0 || arrow.src == arrow.dst);
    BUG_IF(arrow.chunk < 0 || arrow.nchunks < 1);
    *GROW(arrows) = arrow;
}

void copy(struct arrows *arrows, int step, int src, int dst, int chunk, int nchunks)
{
    draw_arrow(arrows, (struct arrow){step, src, dst, chunk, nchunks, COPY});
}

void reduce(struct arrows *arrows, int step, int src, int dst, int chunk, int nchunks)
{
    draw_arrow(arrows, (struct arrow){step, src, dst, chunk, nchunks, REDUCE});
}

/* A drawing knows what each arrow waits for, in terms of arrows and ranks, so that every channel repeats it on its own
 * members and lanes. A wait below arrows.count is for that arrow; arrows.count + r is for rank r to be ready. */
struct drawing {
    int n, chunks;
    struct arrows arrows;
    struct deps waits;
    size_t *first;           /* list i: waits[first[i] .. first[i + 1]): an arrow's, then the end's of every rank */
};

enum { NONE = -1 };

/* While dependencies are found: who last delivered what, in the steps before the present one. */
struct arrivals {
    int64_t *last;           /* [rank * chunks + chunk]: NONE, an arrow, or arrows.count + a pair */
    struct pairs {           /* several arrows of one step that delivered the same chunk to the same rank */
        struct pair { uint32_t arrow; int64_t others; } *items;
        size_t count, capacity;
    } pairs;
    int64_t *latest;         /* [source]: the latest arrow from it that is being waited for, or NONE */
    struct sources { int *items; size_t count, capacity; } sources;     /* those whose latest is not NONE */
    int64_t *sent;           /* [rank]: the last arrow it sent, or NONE */
};

static int64_t *table(size_t count)
{
    int64_t *items = xcalloc(count, sizeof *items);

    for (size_t i = 0; i < count; i++)
        items[i] = NONE;
    return items;
}

static void wait_for(struct drawing *drawing, int64_t what)
{
    *GROW(&drawing->waits) = (uint32_t)what;
}

static void arrivals_note(const struct drawing *drawing, struct arrivals *arrivals, int64_t arrow)
{
    int source = drawing->arrows.items[arrow].src;

    if (arrivals->latest[source] == NONE)
        *GROW(&arrivals->sources) = source;
    if (arrivals->latest[source] < arrow)
        arrivals->latest[source] = arrow;
}

/* Notes the arrows that last delivered any of the chunks to the rank; of one sender's only the latest, for they arrive
 * one after another. True when a chunk is still the rank's own. */
static bool arrivals_collect(const struct drawing *drawing, struct arrivals *arrivals, int rank, int chunk, int nchunks)
{
    const int64_t *last = &arrivals->last[(size_t)rank * (size_t)drawing->chunks + (size_t)chunk];
    int64_t narrows = (int64_t)drawing->arrows.count, previous = NONE;
    bool own = false;

    for (int c = 0; c < nchunks; c++) {
        int64_t entry = last[c];

        own = own || entry == NONE;
        if (entry == previous || entry == NONE)
            continue;
        for (previous = entry; entry >= narrows; entry = arrivals->pairs.items[entry - narrows].others)
            arrivals_note(drawing, arrivals, arrivals->pairs.items[entry - narrows].arrow);
        arrivals_note(drawing, arrivals, entry);
    }
    return own;
}

/* Waits for what was noted, except for `lane`'s own arrows, which precede anyway; forgets it. */
static void arrivals_wait(struct drawing *drawing, struct arrivals *arrivals, int lane)
{
    for (size_t i = 0; i < arrivals->sources.count; i++) {
        int source = arrivals->sources.items[i];

        if (source != lane)
            wait_for(drawing, arrivals->latest[source]);
        arrivals->latest[source] = NONE;
    }
    arrivals->sources.count = 0;
}

static void arrivals_deliver(const struct drawing *drawing, struct arrivals *arrivals, int64_t i)
{
    const struct arrow *arrow = &drawing->arrows.items[i];
    int64_t *last = &arrivals->last[(size_t)arrow->dst * (size_t)drawing->chunks + (size_t)arrow->chunk];
    int64_t narrows = (int64_t)drawing->arrows.count;

    for (int c = 0; c < arrow->nchunks; c++) {
        int64_t before = last[c];

        last[c] = i;
        if (before == NONE)
            continue;
        int64_t head = before < narrows ? before : arrivals->pairs.items[before - narrows].arrow;
        if (drawing->arrows.items[head].step == arrow->step) {
            last[c] = narrows + (int64_t)arrivals->pairs.count;
            *GROW(&arrivals->pairs) = (struct pair){(uint32_t)i, before};
        }
    }
}

/* An end is ready where it takes part for the first time; later arrows follow from that: in the lane of the source, or
 * behind what was delivered to it before. */
static void arrow_waits(struct drawing *drawing, struct arrivals *arrivals, int64_t i)
{
    const struct arrow *arrow = &drawing->arrows.items[i];
    int64_t narrows = (int64_t)drawing->arrows.count, *sent = &arrivals->sent[arrow->src];
    bool src_own, dst_own;

    BUG_IF(arrow->src >= drawing->n || arrow->dst >= drawing->n || arrow->nchunks > drawing->chunks - arrow->chunk);
    src_own = arrivals_collect(drawing, arrivals, arrow->src, arrow->chunk, arrow->nchunks);
    dst_own = arrivals_collect(drawing, arrivals, arrow->dst, arrow->chunk, arrow->nchunks);
    arrivals_wait(drawing, arrivals, arrow->src);
    if (src_own && *sent == NONE)
        wait_for(drawing, narrows + arrow->src);
    if (dst_own && (*sent == NONE || drawing->arrows.items[*sent].dst != arrow->dst))
        wait_for(drawing, narrows + arrow->dst);
    *sent = i;
}

/* A rank is done when everything arrived and its own last message is gone. */
static void end_waits(struct drawing *drawing, struct arrivals *arrivals, int rank)
{
    size_t before = drawing->waits.count;

    arrivals_collect(drawing, arrivals, rank, 0, drawing->chunks);
    arrivals_wait(drawing, arrivals, NONE);
    if (arrivals->sent[rank] != NONE)
        wait_for(drawing, arrivals->sent[rank]);
    if (drawing->waits.count == before)
        wait_for(drawing, (int64_t)drawing->arrows.count + rank);
}

static void drawing_init(struct drawing *drawing, const struct collective *collective, int n)
{
    struct arrivals arrivals = {0};
    size_t list = 0, narrows;

    *drawing = (struct drawing){.n = n, .chunks = collective->chunks(n)};
    collective->draw(&drawing->arrows, n);
    narrows = drawing->arrows.count;
    BUG_IF(n < 1 || drawing->chunks < 1 || narrows > INT32_MAX);
    drawing->first = xcalloc(narrows + (size_t)n + 1, sizeof *drawing->first);
    arrivals.last = table((size_t)n * (size_t)drawing->chunks);
    arrivals.latest = table((size_t)n);
    arrivals.sent = table((size_t)n);
    while (list < narrows) {
        size_t begin = list;

        for (; list < narrows && drawing->arrows.items[list].step == drawing->arrows.items[begin].step; list++) {
            arrow_waits(drawing, &arrivals, (int64_t)list);
            drawing->first[list + 1] = drawing->waits.count;
        }
        for (size_t i = begin; i < list; i++)
            arrivals_deliver(drawing, &arrivals, (int64_t)i);
    }
    for (int rank = 0; rank < n; rank++, list++) {
        end_waits(drawing, &arrivals, rank);
        drawing->first[list + 1] = drawing->waits.count;
    }
    free(arrivals.last);
    free(arrivals.pairs.items);
    free(arrivals.latest);
    free(arrivals.sources.items);
    free(arrivals.sent);
}

static void drawing_release(struct drawing *drawing)
{
    free(drawing->arrows.items);
    free(drawing->waits.items);
    free(drawing->first);
}

/* Members from `start` that follow one another on one node. */
static int run_length(const struct cluster *cluster, const struct group *group, int start)
{
    int node = cluster_node_of(cluster, group->gpus[start]), end = start + 1;

    while (end < group->n && cluster_node_of(cluster, group->gpus[end]) == node)
        end++;
    return end - start;
}

/* The NICs that the members of a run use. */
static int run_nics(const struct cluster *cluster, const struct group *group, int start, int length)
{
    int nics = 0;

    for (int i = start; i < start + length; i++) {
        int nic = cluster_nic_of(cluster, group->gpus[i]), seen = start;

        while (seen < i && cluster_nic_of(cluster, group->gpus[seen]) != nic)
            seen++;
        nics += seen == i;
    }
    return nics;
}

int collective_channels(const struct cluster *cluster, const struct group *group)
{
    int length = run_length(cluster, group, 0), nics = run_nics(cluster, group, 0, length);

    if (length == 1 || length == group->n)
        return 1;
    for (int start = 0; start < group->n; start += length)
        if (run_length(cluster, group, start) != length || run_nics(cluster, group, start, length) != nics)
            return 1;
    return nics;
}

/* Which member is which rank of the drawing, on one channel. Of g members on a node the first on channel c is number
 * ceil(c g / channels): that is the first GPU of NIC c where the node has `channels` NICs, and the one before it, the
 * last, belongs to NIC c - 1. So a ring enters through NIC c and leaves through NIC c - 1. */
static void member_order(const struct cluster *cluster, const struct group *group, int channel, int channels,
                         int *order)
{
    for (int start = 0, length; start < group->n; start += length) {
        length = run_length(cluster, group, start);
        int turn = (channel * length + channels - 1) / channels;
        for (int i = 0; i < length; i++)
            order[start + i] = start + (i + turn) % length;
    }
}

/* One channel's arrows on its members; with what all channels share. */
struct lowering {
    const struct drawing *drawing;
    const struct group *group;
    double bytes;            /* of a channel */
    int channels;
    const uint32_t *lanes, *ready;
    struct op like;
    struct program *program;
    struct channel {
        int *order;          /* rank of the drawing -> member */
        int *place;          /* and back */
        uint32_t base;       /* the operation of its first arrow */
    } *channel;
    struct deps deps;        /* of the operation that is being made */
};

static void add_waits(struct lowering *lowering, const struct channel *channel, size_t list)
{
    const struct drawing *drawing = lowering->drawing;

    for (size_t i = drawing->first[list]; i < drawing->first[list + 1]; i++) {
        uint32_t wait = drawing->waits.items[i];

        if (wait < drawing->arrows.count)
            *GROW(&lowering->deps) = channel->base + wait;
        else if (lowering->ready)
            *GROW(&lowering->deps) = lowering->ready[channel->order[wait - drawing->arrows.count]];
    }
}

static void lower_channel(struct lowering *lowering, int c)
{
    const struct drawing *drawing = lowering->drawing;
    struct channel *channel = &lowering->channel[c];

    channel->base = (uint32_t)lowering->program->ops.count;
    for (size_t i = 0; i < drawing->arrows.count; i++) {
        const struct arrow *arrow = &drawing->arrows.items[i];
        int src = channel->order[arrow->src], dst = channel->order[arrow->dst];
        struct op op = lowering->like;

        op.kind = OP_TRANSFER;
        op.lane = lowering->lanes[src * lowering->channels + c];
        op.src = (uint32_t)lowering->group->gpus[src];
        op.dst = (uint32_t)lowering->group->gpus[dst];
        op.amount = lowering->bytes * arrow->nchunks / drawing->chunks;
        lowering->deps.count = 0;
        add_waits(lowering, channel, i);
        program_add(lowering->program, op, lowering->deps.items, lowering->deps.count);
    }
}

static void lower_end(struct lowering *lowering, int member, uint32_t *done)
{
    struct op op = lowering->like;

    op.kind = OP_COMPUTE;
    op.lane = lowering->lanes[member * lowering->channels];
    lowering->deps.count = 0;
    for (int c = 0; c < lowering->channels; c++) {
        const struct channel *channel = &lowering->channel[c];
        add_waits(lowering, channel, lowering->drawing->arrows.count + (size_t)channel->place[member]);
    }
    *done = program_add(lowering->program, op, lowering->deps.items, lowering->deps.count);
}

void collective_lower(const struct collective *collective, const struct cluster *cluster, const struct group *group,
                      double bytes, int channels, const uint32_t *lanes, const uint32_t *ready, struct op like,
                      struct program *program, uint32_t *done)
{
    struct drawing drawing;
    struct lowering lowering = {
        .drawing = &drawing, .group = group, .bytes = bytes / channels, .channels = channels,
        .lanes = lanes, .ready = ready, .program = program,
        .like = {.what = like.what, .mb = like.mb, .stage = like.stage},
    };

    BUG_IF(channels < 1);
    drawing_init(&drawing, collective, group->n);
    BUG_IF(drawing.arrows.count * (size_t)channels + program->ops.count + (size_t)group->n > UINT32_MAX);
    lowering.channel = xcalloc((size_t)channels, sizeof *lowering.channel);
    for (int c = 0; c < channels; c++) {
        struct channel *channel = &lowering.channel[c];

        channel->order = xcalloc((size_t)group->n, sizeof *channel->order);
        channel->place = xcalloc((size_t)group->n, sizeof *channel->place);
        member_order(cluster, group, c, channels, channel->order);
        for (int rank = 0; rank < group->n; rank++)
            channel->place[channel->order[rank]] = rank;
        lower_channel(&lowering, c);
    }
    for (int member = 0; member < group->n; member++)
        lower_end(&lowering, member, &done[member]);
    for (int c = 0; c < channels; c++) {
        free(lowering.channel[c].order);
        free(lowering.channel[c].place);
    }
    free(lowering.channel);
    free(lowering.deps.items);
    drawing_release(&drawing);
}
