#include "collective/drawing.h"

#include <stdlib.h>

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

void drawing_init(struct drawing *drawing, const struct collective *collective, const struct task *task)
{
    struct arrivals arrivals = {0};
    size_t list = 0, narrows;
    int n = task->drawn ? task->drawn : task->n;

    *drawing = (struct drawing){.n = n, .chunks = collective->chunks(task)};
    collective->draw(&drawing->arrows, task);
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

void drawing_release(struct drawing *drawing)
{
    free(drawing->arrows.items);
    free(drawing->waits.items);
    free(drawing->first);
}
