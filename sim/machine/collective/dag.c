#include "collective/dag.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"

static const uint32_t NONE = UINT32_MAX;

/* Scratch: the messages that last delivered each chunk to each rank, in the steps before the present one. */
struct arrivals {
    uint32_t *last;          /* [rank * chunks + chunk]: NONE, a message, or messages.count + a pair */
    struct pairs {           /* several messages of one step that delivered the same chunk to the same rank */
        struct pair { uint32_t message, others; } *items;
        size_t count, capacity;
    } pairs;
    uint32_t *latest;        /* [lane], a port of a source: the latest of its messages that were noted, or NONE */
    uint32_t *sources;       /* the lanes whose latest is not NONE, and their number */
    size_t count;
    uint32_t *sent;          /* [lane]: the last message that left it, or NONE */
    uint32_t *received;      /* [lane]: the last message that arrived there in an earlier step, or NONE */
};

static uint32_t *table(size_t count)
{
    uint32_t *items = xcalloc(count, sizeof *items);

    memset(items, 0xff, count * sizeof *items);      /* NONE */
    return items;
}

static uint32_t lane_of(const struct dag *dag, int rank, int port)
{
    return (uint32_t)rank * (uint32_t)dag->ports + (uint32_t)port;
}

static void wait_for(struct dag *dag, uint32_t what)
{
    *GROW(&dag->waits) = what;
}

static void arrivals_note(const struct dag *dag, struct arrivals *arrivals, uint32_t message)
{
    const struct message *noted = &dag->messages.items[message];
    uint32_t source = lane_of(dag, noted->src, noted->port), *latest = &arrivals->latest[source];

    if (*latest == NONE)
        arrivals->sources[arrivals->count++] = source;
    if (*latest == NONE || *latest < message)
        *latest = message;
}

/* Notes the messages that last delivered any of the chunks to the rank. The messages of one lane arrive one after
 * another, so only the latest of them is noted. True when a chunk is still the rank's own. */
static bool arrivals_collect(const struct dag *dag, struct arrivals *arrivals, int rank, int chunk, int nchunks)
{
    const uint32_t *last = &arrivals->last[(size_t)rank * (size_t)dag->chunks];
    uint32_t nmessages = (uint32_t)dag->messages.count, previous = NONE;
    bool own = false;

    for (int c = 0; c < nchunks; c++) {
        uint32_t entry = last[(chunk + c) % dag->chunks];

        own = own || entry == NONE;
        if (entry == previous || entry == NONE)
            continue;
        BUG_IF(entry >= nmessages + arrivals->pairs.count);
        for (previous = entry; entry >= nmessages; entry = arrivals->pairs.items[entry - nmessages].others)
            arrivals_note(dag, arrivals, arrivals->pairs.items[entry - nmessages].message);
        arrivals_note(dag, arrivals, entry);
    }
    return own;
}

/* Notes the messages that arrived last on each port of the rank. */
static void phase_collect(const struct dag *dag, struct arrivals *arrivals, int rank)
{
    for (int port = 0; port < dag->ports; port++) {
        uint32_t last = arrivals->received[lane_of(dag, rank, port)];

        if (last != NONE)
            arrivals_note(dag, arrivals, last);
    }
}

/* Waits for the noted messages, except for `lane`'s own, which are earlier in its lane; forgets them. */
static void arrivals_wait(struct dag *dag, struct arrivals *arrivals, uint32_t lane)
{
    for (size_t i = 0; i < arrivals->count; i++) {
        uint32_t source = arrivals->sources[i];

        if (source != lane)
            wait_for(dag, arrivals->latest[source]);
        arrivals->latest[source] = NONE;
    }
    arrivals->count = 0;
}

static void arrivals_deliver(const struct dag *dag, struct arrivals *arrivals, uint32_t i)
{
    const struct message *message = &dag->messages.items[i];
    uint32_t *row = &arrivals->last[(size_t)message->dst * (size_t)dag->chunks];
    uint32_t nmessages = (uint32_t)dag->messages.count;

    arrivals->received[lane_of(dag, message->dst, message->port)] = i;
    for (int c = 0; c < message->nchunks; c++) {
        uint32_t *last = &row[(message->chunk + c) % dag->chunks], before = *last;

        *last = i;
        if (before == NONE)
            continue;
        BUG_IF(before >= nmessages + arrivals->pairs.count);
        uint32_t head = before < nmessages ? before : arrivals->pairs.items[before - nmessages].message;
        if (dag->messages.items[head].step == message->step) {
            BUG_IF(nmessages + arrivals->pairs.count >= NONE);
            *last = nmessages + (uint32_t)arrivals->pairs.count;
            *GROW(&arrivals->pairs) = (struct pair){i, before};
        }
    }
}

/* A message waits for a rank to be ready if the rank takes part for the first time. Later messages of the rank follow:
 * in the source's lane, or after an earlier delivery. */
static void message_waits(struct dag *dag, struct arrivals *arrivals, uint32_t i)
{
    const struct message *message = &dag->messages.items[i];
    uint32_t nmessages = (uint32_t)dag->messages.count, src = (uint32_t)message->src;
    uint32_t lane = lane_of(dag, message->src, message->port), *sent = &arrivals->sent[lane];
    bool src_own, dst_own;

    BUG_IF(message->src >= dag->n || message->dst >= dag->n || message->chunk >= dag->chunks ||
           message->nchunks > dag->chunks || message->port >= dag->ports);
    src_own = arrivals_collect(dag, arrivals, message->src, message->chunk, message->nchunks);
    dst_own = arrivals_collect(dag, arrivals, message->dst, message->chunk, message->nchunks);
    if (message->phase != (*sent == NONE ? 0 : dag->messages.items[*sent].phase))
        phase_collect(dag, arrivals, message->src);
    arrivals_wait(dag, arrivals, lane);
    if (src_own && *sent == NONE)
        wait_for(dag, nmessages + src);
    if (dst_own && (*sent == NONE || dag->messages.items[*sent].dst != message->dst))
        wait_for(dag, nmessages + (uint32_t)message->dst);
    *sent = i;
}

/* A rank is done when all its chunks have arrived and its last message has left. */
static void end_waits(struct dag *dag, struct arrivals *arrivals, int rank)
{
    size_t before = dag->waits.count;

    arrivals_collect(dag, arrivals, rank, 0, dag->chunks);
    arrivals_wait(dag, arrivals, NONE);
    for (int port = 0; port < dag->ports; port++)
        if (arrivals->sent[lane_of(dag, rank, port)] != NONE)
            wait_for(dag, arrivals->sent[lane_of(dag, rank, port)]);
    if (dag->waits.count == before)
        wait_for(dag, (uint32_t)dag->messages.count + (uint32_t)rank);
}

void dag_init(struct dag *dag, const struct collective *collective, const struct task *task)
{
    struct arrivals arrivals = {0};
    size_t list = 0, nmessages, lanes;
    int n = task->folded ? task->folded : task->n;

    *dag = (struct dag){.n = n, .chunks = collective->chunks(task),
                        .ports = collective->ports ? collective->ports(task) : 1};
    collective->write_messages(&dag->messages, task);
    nmessages = dag->messages.count;
    BUG_IF(n < 1 || dag->chunks < 1 || nmessages > INT32_MAX);
    dag->first = xcalloc(nmessages + (size_t)n + 1, sizeof *dag->first);
    arrivals.last = table((size_t)n * (size_t)dag->chunks);
    lanes = (size_t)n * (size_t)dag->ports;
    arrivals.latest = table(lanes);
    arrivals.sources = table(lanes);
    arrivals.sent = table(lanes);
    arrivals.received = table(lanes);
    while (list < nmessages) {
        size_t begin = list;

        for (; list < nmessages && dag->messages.items[list].step == dag->messages.items[begin].step; list++) {
            message_waits(dag, &arrivals, (uint32_t)list);
            dag->first[list + 1] = (uint32_t)dag->waits.count;
        }
        for (size_t i = begin; i < list; i++)
            arrivals_deliver(dag, &arrivals, (uint32_t)i);
    }
    for (int rank = 0; rank < n; rank++, list++) {
        end_waits(dag, &arrivals, rank);
        dag->first[list + 1] = (uint32_t)dag->waits.count;
    }
    BUG_IF(dag->waits.count > UINT32_MAX);
    free(arrivals.last);
    free(arrivals.pairs.items);
    free(arrivals.latest);
    free(arrivals.sources);
    free(arrivals.sent);
    free(arrivals.received);
}

void dag_release(struct dag *dag)
{
    free(dag->messages.items);
    free(dag->waits.items);
    free(dag->first);
}

enum { DAGS = 4 };
struct known_dag { const struct collective *collective; struct task task; struct dag dag; };

const struct dag *dags_find(struct dags *dags, const struct collective *collective, const struct task *task)
{
    struct known_dag *known;

    if (!dags->items)
        dags->items = xcalloc(DAGS, sizeof *dags->items);
    for (size_t i = 0; i < DAGS; i++) {
        known = &dags->items[i];
        if (known->collective == collective && known->task.n == task->n && known->task.per_node == task->per_node &&
            known->task.bytes == task->bytes && known->task.folded == task->folded &&
            known->task.buffered == task->buffered && !memcmp(&known->task.torus, &task->torus, sizeof task->torus))
            return &known->dag;
    }
    known = &dags->items[dags->next++ % DAGS];
    dag_release(&known->dag);
    known->collective = collective;
    known->task = *task;
    dag_init(&known->dag, collective, task);
    return &known->dag;
}

void dags_release(struct dags *dags)
{
    for (size_t i = 0; dags->items && i < DAGS; i++)
        dag_release(&dags->items[i].dag);
    free(dags->items);
    *dags = (struct dags){0};
}
