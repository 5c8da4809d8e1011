#include "agenda.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const uint32_t NONE = UINT32_MAX;
static const uint32_t IN_LANE = 1u << 31;        /* of a successor: it waits for its lane alone */

/* Counts, then fills: successors of an operation stand side by side, in the order of ids, which keeps replays the same
 * from run to run. The next operation in the lane is a successor like any other. */
static void link_successors(struct agenda *agenda, uint32_t *last_in_lane)
{
    const struct program *program = agenda->program;
    size_t count = program->ops.count;
    uint32_t *fill = xcalloc(count + 1, sizeof *fill);

    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < program->lanes.count; i++)
            last_in_lane[i] = NONE;
        for (uint32_t i = 0; i < count; i++) {
            const struct op *op = &program->ops.items[i];
            uint32_t before = last_in_lane[op->lane];

            for (uint32_t d = 0; d < op->ndeps + (before != NONE); d++) {
                uint32_t from = d < op->ndeps ? program->deps.items[op->first_dep + d] : before;

                if (pass == 0)
                    agenda->first_successor[from + 1]++;
                else
                    agenda->successors[fill[from]++] = d < op->ndeps ? i : i | IN_LANE;
            }
            agenda->waits[i] = op->ndeps + (before != NONE);
            last_in_lane[op->lane] = i;
        }
        if (pass == 0) {
            for (size_t i = 0; i < count; i++)
                agenda->first_successor[i + 1] += agenda->first_successor[i];
            memcpy(fill, agenda->first_successor, count * sizeof *fill);
        }
    }
    free(fill);
}

static double latency_of(const struct agenda *agenda, const struct op *op)
{
    return cluster_route(agenda->cluster, (int)op->src, (int)op->dst).latency + op->delay;
}

/* Nothing keeps the operation any more. A transfer of no bytes disturbs nobody, so its latency is all there is to know;
 * on the ideal cluster every transfer is like that. */
static void settle(struct agenda *agenda, uint32_t id)
{
    const struct op *op = &agenda->program->ops.items[id];
    struct agenda_ready *ready = &agenda->ready;

    if (op->kind == OP_TRANSFER && op->amount > 0 && !agenda->cluster->ideal) {
        BUG_IF(ready->count == ready->capacity);
        ready->items[(ready->first + ready->count++) % ready->capacity] = id;
        return;
    }
    agenda->end[id] = agenda->start[id];
    if (op->kind == OP_COMPUTE)
        agenda->end[id] += op->amount;
    else
        agenda->end[id] += latency_of(agenda, op);
    *GROW(&agenda->known) = id;
}

/* Chains of operations can be long, so what is known waits in a list rather than in recursion. */
static void spread(struct agenda *agenda)
{
    while (agenda->known.count) {
        uint32_t id = agenda->known.items[--agenda->known.count];
        const struct op *op = &agenda->program->ops.items[id];
        double end = agenda->end[id], left = op->buffered ? end - latency_of(agenda, op) : end;

        agenda->left--;
        for (uint32_t s = agenda->first_successor[id]; s < agenda->first_successor[id + 1]; s++) {
            uint32_t next = agenda->successors[s] & ~IN_LANE;

            agenda->start[next] = fmax(agenda->start[next], agenda->successors[s] & IN_LANE ? left : end);
            if (--agenda->waits[next] == 0)
                settle(agenda, next);
        }
    }
}

void agenda_init(struct agenda *agenda, const struct program *program, const struct cluster *cluster, double *start,
                 double *end)
{
    size_t count = program->ops.count, lanes = program->lanes.count;

    BUG_IF(count >= IN_LANE);
    uint32_t *last_in_lane = xcalloc(lanes + 1, sizeof *last_in_lane);

    agenda->program = program;
    agenda->cluster = cluster;
    agenda->start = start;
    agenda->end = end;
    agenda->left = count;
    agenda->waits = xcalloc(count + 1, sizeof *agenda->waits);
    agenda->first_successor = xcalloc(count + 1, sizeof *agenda->first_successor);
    agenda->successors = xcalloc(program->deps.count + count + 1, sizeof *agenda->successors);
    agenda->ready.capacity = lanes + 1;     /* a lane runs one operation at a time */
    agenda->ready.items = xcalloc(lanes + 1, sizeof *agenda->ready.items);
    link_successors(agenda, last_in_lane);
    free(last_in_lane);
    for (uint32_t i = 0; i < count; i++) {
        start[i] = 0;
        end[i] = 0;
    }
    for (uint32_t i = 0; i < count; i++)
        if (agenda->waits[i] == 0)
            settle(agenda, i);
    spread(agenda);
}

bool agenda_take(struct agenda *agenda, uint32_t *id)
{
    struct agenda_ready *ready = &agenda->ready;

    if (ready->count == 0)
        return false;
    *id = ready->items[ready->first];
    ready->first = (ready->first + 1) % ready->capacity;
    ready->count--;
    return true;
}

void agenda_end(struct agenda *agenda, uint32_t id, double end)
{
    agenda->end[id] = end;
    *GROW(&agenda->known) = id;
    spread(agenda);
}

size_t agenda_ready(const struct agenda *agenda)
{
    return agenda->ready.count;
}

void agenda_release(struct agenda *agenda)
{
    free(agenda->waits);
    free(agenda->successors);
    free(agenda->first_successor);
    free(agenda->known.items);
    free(agenda->ready.items);
    memset(agenda, 0, sizeof *agenda);
}
