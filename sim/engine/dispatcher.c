#include "engine/dispatcher.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const uint32_t NONE = UINT32_MAX;
static const uint32_t IN_LANE = 1u << 31;        /* of a successor: it waits for its lane alone */

/* A lane with choices: its operations in the order of ids, and how far it is. */
struct turns {
    uint32_t *ops;
    size_t count;
    size_t next;             /* whose turn it is */
    size_t ahead;            /* all that advance before this one have run */
    uint32_t advanced;       /* how many those are */
};

/* Counts, then fills: successors of an operation stand side by side, in the order of ids, which keeps replays the same
 * from run to run. The next operation in the lane is a successor like any other; in a lane with choices none is known
 * in advance, and each waits for its turn instead. */
static void link_successors(struct dispatcher *dispatcher, uint32_t *last_in_lane)
{
    const struct program *program = dispatcher->program;
    size_t count = program->ops.count;
    uint32_t *fill = xcalloc(count + 1, sizeof *fill);

    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < program->lanes.count; i++)
            last_in_lane[i] = NONE;
        for (uint32_t i = 0; i < count; i++) {
            const struct op *op = &program->ops.items[i];
            bool turns = dispatcher->turns && dispatcher->turns[op->lane].count;
            uint32_t before = turns ? NONE : last_in_lane[op->lane];

            for (uint32_t d = 0; d < op->ndeps + (before != NONE); d++) {
                uint32_t from = d < op->ndeps ? program->deps.items[op->first_dep + d] : before;

                if (pass == 0)
                    dispatcher->first_successor[from + 1]++;
                else
                    dispatcher->successors[fill[from]++] = d < op->ndeps ? i : i | IN_LANE;
            }
            dispatcher->waits[i] = op->ndeps + (before != NONE || turns);
            last_in_lane[op->lane] = i;
        }
        if (pass == 0) {
            for (size_t i = 0; i < count; i++)
                dispatcher->first_successor[i + 1] += dispatcher->first_successor[i];
            memcpy(fill, dispatcher->first_successor, count * sizeof *fill);
        }
    }
    free(fill);
}

static double latency_of(const struct dispatcher *dispatcher, const struct op *op)
{
    const struct op_transfer *transfer = &op->transfer;

    return cluster_route(dispatcher->cluster, (int)transfer->src, (int)transfer->dst).latency + transfer->delay;
}

/* Finds the lanes with choices and lists their operations. */
static void list_turns(struct dispatcher *dispatcher)
{
    const struct program *program = dispatcher->program;
    size_t lanes = program->lanes.count, used = 0;
    bool *chooses;

    if (!program->choices.count)
        return;
    chooses = xcalloc(lanes, sizeof *chooses);
    dispatcher->turns = xcalloc(lanes, sizeof *dispatcher->turns);
    dispatcher->turn_ops = xcalloc(program->ops.count, sizeof *dispatcher->turn_ops);
    for (size_t i = 0; i < program->choices.count; i++)
        chooses[program->ops.items[program->choices.items[i].op].lane] = true;
    for (size_t i = 0; i < program->ops.count; i++)
        dispatcher->turns[program->ops.items[i].lane].count += chooses[program->ops.items[i].lane];
    for (size_t i = 0; i < lanes; i++) {
        dispatcher->turns[i].ops = dispatcher->turn_ops + used;
        used += dispatcher->turns[i].count;
        dispatcher->turns[i].count = 0;
    }
    for (uint32_t i = 0; i < program->ops.count; i++) {
        struct turns *turns = &dispatcher->turns[program->ops.items[i].lane];

        if (chooses[program->ops.items[i].lane])
            turns->ops[turns->count++] = i;
    }
    free(chooses);
}

static void hand_out(struct dispatcher *dispatcher, uint32_t id)
{
    struct dispatcher_ready *ready = &dispatcher->ready;

    BUG_IF(ready->count == ready->capacity);
    ready->items[(ready->first + ready->count++) % ready->capacity] = id;
}

/* Nothing keeps the operation any more. A transfer of no bytes disturbs nobody, so its latency is all there is to know;
 * on the ideal cluster every transfer is like that. */
static void settle(struct dispatcher *dispatcher, uint32_t id)
{
    const struct op *op = &dispatcher->program->ops.items[id];

    if (op->kind == OP_TRANSFER && op->amount > 0 && !dispatcher->cluster->ideal) {
        hand_out(dispatcher, id);
        return;
    }
    dispatcher->end[id] = dispatcher->start[id];
    if (op->kind == OP_COMPUTE)
        dispatcher->end[id] += op->amount;
    else
        dispatcher->end[id] += latency_of(dispatcher, op);
    *GROW(&dispatcher->known) = id;
}

/* Ends less apart than this share of the time are the same to a choice: engines differ by rounding. */
static const double SAME_TIME = 1e-9;

double dispatcher_choice_time(const struct dispatcher *dispatcher, uint32_t id)
{
    return dispatcher->start[id] * (1 + 2 * SAME_TIME);
}

enum awaited { ARRIVED, LATE, UNDER_WAY };
static enum awaited awaited(const struct dispatcher *dispatcher, const struct choice *choice, double now)
{
    enum awaited awaited = ARRIVED;

    for (uint32_t i = choice->first; i < choice->first + choice->count; i++) {
        if (dispatcher->end[i] > now * (1 + SAME_TIME))
            return LATE;
        if (isnan(dispatcher->end[i]))
            awaited = UNDER_WAY;
    }
    return awaited;
}

/* Runs the operation `at` of the lane, in its turn or before it. */
static void run(struct dispatcher *dispatcher, struct turns *turns, size_t at, double now)
{
    uint32_t id = turns->ops[at];

    if (dispatcher->program->ops.items[id].advances) {
        turns->ahead = at + 1;
        turns->advanced++;
    }
    dispatcher->start[id] = fmax(dispatcher->start[id], now);
    if (--dispatcher->waits[id] == 0)
        settle(dispatcher, id);
}

/* The lane is free from `now` on. `told`: what is still under way will not have arrived by then. */
static void give_turn(struct dispatcher *dispatcher, struct turns *turns, double now, bool told)
{
    const struct op *ops = dispatcher->program->ops.items;
    const struct choice *choice;
    enum awaited state = ARRIVED;
    uint32_t id;

    while (turns->next < turns->ahead && ops[turns->ops[turns->next]].advances)
        turns->next++;       /* it ran before its turn */
    if (turns->next == turns->count)
        return;
    while (turns->ahead < turns->count && (turns->ahead < turns->next || !ops[turns->ops[turns->ahead]].advances))
        turns->ahead++;
    id = turns->ops[turns->next];
    choice = program_choice(dispatcher->program, id);
    if (choice && turns->ahead < turns->count && turns->advanced < choice->most)
        state = awaited(dispatcher, choice, now);
    if (state == UNDER_WAY && !told) {
        dispatcher->start[id] = now;
        hand_out(dispatcher, id);
    } else if (state == ARRIVED) {
        run(dispatcher, turns, turns->next++, now);
    } else {
        run(dispatcher, turns, turns->ahead, now);
    }
}

/* Chains of operations can be long, so what is known waits in a list rather than in recursion. */
static void spread(struct dispatcher *dispatcher)
{
    while (dispatcher->known.count) {
        uint32_t id = dispatcher->known.items[--dispatcher->known.count];
        const struct op *op = &dispatcher->program->ops.items[id];
        bool buffered = op->kind == OP_TRANSFER && op->transfer.buffered;
        double end = dispatcher->end[id], left = buffered ? end - latency_of(dispatcher, op) : end;

        dispatcher->left--;
        for (uint32_t s = dispatcher->first_successor[id]; s < dispatcher->first_successor[id + 1]; s++) {
            uint32_t next = dispatcher->successors[s] & ~IN_LANE;

            dispatcher->start[next] = fmax(dispatcher->start[next], dispatcher->successors[s] & IN_LANE ? left : end);
            if (--dispatcher->waits[next] == 0)
                settle(dispatcher, next);
        }
        struct turns *turns = dispatcher->turns ? &dispatcher->turns[dispatcher->program->ops.items[id].lane] : NULL;
        if (turns && turns->count)
            give_turn(dispatcher, turns, end, false);
    }
}

void dispatcher_init(struct dispatcher *dispatcher, const struct program *program, const struct cluster *cluster,
                     double *start, double *end)
{
    size_t count = program->ops.count, lanes = program->lanes.count;

    BUG_IF(count >= IN_LANE);
    uint32_t *last_in_lane = xcalloc(lanes + 1, sizeof *last_in_lane);

    dispatcher->program = program;
    dispatcher->cluster = cluster;
    dispatcher->start = start;
    dispatcher->end = end;
    dispatcher->left = count;
    dispatcher->waits = xcalloc(count + 1, sizeof *dispatcher->waits);
    dispatcher->first_successor = xcalloc(count + 1, sizeof *dispatcher->first_successor);
    dispatcher->successors = xcalloc(program->deps.count + count + 1, sizeof *dispatcher->successors);
    dispatcher->ready.capacity = lanes + 1; /* a lane runs one operation at a time */
    dispatcher->ready.items = xcalloc(lanes + 1, sizeof *dispatcher->ready.items);
    list_turns(dispatcher);
    link_successors(dispatcher, last_in_lane);
    free(last_in_lane);
    for (uint32_t i = 0; i < count; i++) {
        start[i] = 0;
        end[i] = NAN;        /* not known */
    }
    for (uint32_t i = 0; i < count; i++)
        if (dispatcher->waits[i] == 0)
            settle(dispatcher, i);
    for (size_t i = 0; dispatcher->turns && i < lanes; i++)
        if (dispatcher->turns[i].count)
            give_turn(dispatcher, &dispatcher->turns[i], 0, false);
    spread(dispatcher);
}

bool dispatcher_take(struct dispatcher *dispatcher, uint32_t *id)
{
    struct dispatcher_ready *ready = &dispatcher->ready;

    if (ready->count == 0)
        return false;
    *id = ready->items[ready->first];
    ready->first = (ready->first + 1) % ready->capacity;
    ready->count--;
    return true;
}

void dispatcher_end(struct dispatcher *dispatcher, uint32_t id, double end)
{
    dispatcher->end[id] = end;
    *GROW(&dispatcher->known) = id;
    spread(dispatcher);
}

void dispatcher_choose(struct dispatcher *dispatcher, uint32_t id)
{
    give_turn(dispatcher, &dispatcher->turns[dispatcher->program->ops.items[id].lane], dispatcher->start[id], true);
    spread(dispatcher);
}

size_t dispatcher_ready(const struct dispatcher *dispatcher)
{
    return dispatcher->ready.count;
}

void dispatcher_release(struct dispatcher *dispatcher)
{
    free(dispatcher->waits);
    free(dispatcher->successors);
    free(dispatcher->turns);
    free(dispatcher->turn_ops);
    free(dispatcher->first_successor);
    free(dispatcher->known.items);
    free(dispatcher->ready.items);
    memset(dispatcher, 0, sizeof *dispatcher);
}
