#include "collective/dag.h"

#include <stdlib.h>

enum { NONE = -1 };

/* Scratch: the messages that last delivered each chunk to each rank, in the steps before the present one. */
struct arrivals {
    int64_t *last;           /* [rank * chunks + chunk]: NONE, a message, or messages.count + a pair */
    struct pairs {           /* several messages of one step that delivered the same chunk to the same rank */
        struct pair { uint32_t message; int64_t others; } *items;
        size_t count, capacity;
    } pairs;
    int64_t *latest;         /* [source]: the latest of its messages that were noted, or NONE */
    struct sources { int *items; size_t count, capacity; } sources;     /* sources whose latest is not NONE */
    int64_t *sent;           /* [rank]: the last message that it sent, or NONE */
};

static int64_t *table(size_t count)
{
    int64_t *items = xcalloc(count, sizeof *items);

    for (size_t i = 0; i < count; i++)
        items[i] = NONE;
    return items;
}

static void wait_for(struct dag *dag, int64_t what)
{
    *GROW(&dag->waits) = (uint32_t)what;
}

static void arrivals_note(const struct dag *dag, struct arrivals *arrivals, int64_t message)
{
    int source = dag->messages.items[message].src;

    if (arrivals->latest[source] == NONE)
        *GROW(&arrivals->sources) = source;
    if (arrivals->latest[source] < message)
        arrivals->latest[source] = message;
}

/* Notes the messages that last delivered any of the chunks to the rank. The messages of one sender arrive one after
 * another, so only the latest of them is noted. True when a chunk is still the rank's own. */
static bool arrivals_collect(const struct dag *dag, struct arrivals *arrivals, int rank, int chunk, int nchunks)
{
    const int64_t *last = &arrivals->last[(size_t)rank * (size_t)dag->chunks + (size_t)chunk];
    int64_t nmessages = (int64_t)dag->messages.count, previous = NONE;
    bool own = false;

    for (int c = 0; c < nchunks; c++) {
        int64_t entry = last[c];

        own = own || entry == NONE;
        if (entry == previous || entry == NONE)
            continue;
        for (previous = entry; entry >= nmessages; entry = arrivals->pairs.items[entry - nmessages].others)
            arrivals_note(dag, arrivals, arrivals->pairs.items[entry - nmessages].message);
        arrivals_note(dag, arrivals, entry);
    }
    return own;
}

/* Waits for the noted messages, except for `lane`'s own, which are earlier in its lane; forgets them. */
static void arrivals_wait(struct dag *dag, struct arrivals *arrivals, int lane)
{
    for (size_t i = 0; i < arrivals->sources.count; i++) {
        int source = arrivals->sources.items[i];

        if (source != lane)
            wait_for(dag, arrivals->latest[source]);
        arrivals->latest[source] = NONE;
    }
    arrivals->sources.count = 0;
}

static void arrivals_deliver(const struct dag *dag, struct arrivals *arrivals, int64_t i)
{
    const struct message *message = &dag->messages.items[i];
    int64_t *last = &arrivals->last[(size_t)message->dst * (size_t)dag->chunks + (size_t)message->chunk];
    int64_t nmessages = (int64_t)dag->messages.count;

    for (int c = 0; c < message->nchunks; c++) {
        int64_t before = last[c];

        last[c] = i;
        if (before == NONE)
            continue;
        int64_t head = before < nmessages ? before : arrivals->pairs.items[before - nmessages].message;
        if (dag->messages.items[head].step == message->step) {
            last[c] = nmessages + (int64_t)arrivals->pairs.count;
            *GROW(&arrivals->pairs) = (struct pair){(uint32_t)i, before};
        }
    }
}

/* A message waits for a rank to be ready if the rank takes part for the first time. Later messages of the rank follow:
 * in the source's lane, or after an earlier delivery. */
static void message_waits(struct dag *dag, struct arrivals *arrivals, int64_t i)
{
    const struct message *message = &dag->messages.items[i];
    int64_t nmessages = (int64_t)dag->messages.count, *sent = &arrivals->sent[message->src];
    bool src_own, dst_own;

    BUG_IF(message->src >= dag->n || message->dst >= dag->n || message->nchunks > dag->chunks - message->chunk);
    src_own = arrivals_collect(dag, arrivals, message->src, message->chunk, message->nchunks);
    dst_own = arrivals_collect(dag, arrivals, message->dst, message->chunk, message->nchunks);
    arrivals_wait(dag, arrivals, message->src);
    if (src_own && *sent == NONE)
        wait_for(dag, nmessages + message->src);
    if (dst_own && (*sent == NONE || dag->messages.items[*sent].dst != message->dst))
        wait_for(dag, nmessages + message->dst);
    *sent = i;
}

/* A rank is done when all its chunks have arrived and its last message has left. */
static void end_waits(struct dag *dag, struct arrivals *arrivals, int rank)
{
    size_t before = dag->waits.count;

    arrivals_collect(dag, arrivals, rank, 0, dag->chunks);
    arrivals_wait(dag, arrivals, NONE);
    if (arrivals->sent[rank] != NONE)
        wait_for(dag, arrivals->sent[rank]);
    if (dag->waits.count == before)
        wait_for(dag, (int64_t)dag->messages.count + rank);
}

void dag_init(struct dag *dag, const struct collective *collective, const struct task *task)
{
    struct arrivals arrivals = {0};
    size_t list = 0, nmessages;
    int n = task->folded ? task->folded : task->n;

    *dag = (struct dag){.n = n, .chunks = collective->chunks(task)};
    collective->draw(&dag->messages, task);
    nmessages = dag->messages.count;
    BUG_IF(n < 1 || dag->chunks < 1 || nmessages > INT32_MAX);
    dag->first = xcalloc(nmessages + (size_t)n + 1, sizeof *dag->first);
    arrivals.last = table((size_t)n * (size_t)dag->chunks);
    arrivals.latest = table((size_t)n);
    arrivals.sent = table((size_t)n);
    while (list < nmessages) {
        size_t begin = list;

        for (; list < nmessages && dag->messages.items[list].step == dag->messages.items[begin].step; list++) {
            message_waits(dag, &arrivals, (int64_t)list);
            dag->first[list + 1] = dag->waits.count;
        }
        for (size_t i = begin; i < list; i++)
            arrivals_deliver(dag, &arrivals, (int64_t)i);
    }
    for (int rank = 0; rank < n; rank++, list++) {
        end_waits(dag, &arrivals, rank);
        dag->first[list + 1] = dag->waits.count;
    }
    free(arrivals.last);
    free(arrivals.pairs.items);
    free(arrivals.latest);
    free(arrivals.sources.items);
    free(arrivals.sent);
}

void dag_release(struct dag *dag)
{
    free(dag->messages.items);
    free(dag->waits.items);
    free(dag->first);
}
