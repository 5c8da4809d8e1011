#include "engine/agenda.h"

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
            bool turns = agenda->turns && agenda->turns[op->lane].count;
            uint32_t before = turns ? NONE : last_in_lane[op->lane];

            for (uint32_t d = 0; d < op->ndeps + (before != NONE); d++) {
                uint32_t from = d < op->ndeps ? program->deps.items[op->first_dep + d] : before;

                if (pass == 0)
                    agenda->first_successor[from + 1]++;
                else
                    agenda->successors[fill[from]++] = d < op->ndeps ? i : i | IN_LANE;
            }
            agenda->waits[i] = op->ndeps + (before != NONE || turns);
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

/* Finds the lanes with choices and lists their operations. */
static void list_turns(struct agenda *agenda)
{
    const struct program *program = agenda->program;
    size_t lanes = program->lanes.count, used = 0;
    bool *chooses;

    if (!program->choices.count)
        return;
    chooses = xcalloc(lanes, sizeof *chooses);
    agenda->turns = xcalloc(lanes, sizeof *agenda->turns);
    agenda->turn_ops = xcalloc(program->ops.count, sizeof *agenda->turn_ops);
    for (size_t i = 0; i < program->choices.count; i++)
        chooses[program->ops.items[program->choices.items[i].op].lane] = true;
    for (size_t i = 0; i < program->ops.count; i++)
        agenda->turns[program->ops.items[i].lane].count += chooses[program->ops.items[i].lane];
    for (size_t i = 0; i < lanes; i++) {
        agenda->turns[i].ops = agenda->turn_ops + used;
        used += agenda->turns[i].count;
        agenda->turns[i].count = 0;
    }
    for (uint32_t i = 0; i < program->ops.count; i++) {
        struct turns *turns = &agenda->turns[program->ops.items[i].lane];

        if (chooses[program->ops.items[i].lane])
            turns->ops[turns->count++] = i;
    }
    free(chooses);
}

static void hand_out(struct agenda *agenda, uint32_t id)
{
    struct agenda_ready *ready = &agenda->ready;

    BUG_IF(ready->count == ready->capacity);
    ready->items[(ready->first + ready->count++) % ready->capacity] = id;
}

/* Nothing keeps the operation any more. A transfer of no bytes disturbs nobody, so its latency is all there is to know;
 * on the ideal cluster every transfer is like that. */
static void settle(struct agenda *agenda, uint32_t id)
{
    const struct op *op = &agenda->program->ops.items[id];

    if (op->kind == OP_TRANSFER && op->amount > 0 && !agenda->cluster->ideal) {
        hand_out(agenda, id);
        return;
    }
    agenda->end[id] = agenda->start[id];
    if (op->kind == OP_COMPUTE)
        agenda->end[id] += op->amount;
    else
        agenda->end[id] += latency_of(agenda, op);
    *GROW(&agenda->known) = id;
}

/* Ends less apart than this share of the time are the same to a choice: engines differ by rounding. */
static const double SAME_TIME = 1e-9;

double agenda_choice_time(const struct agenda *agenda, uint32_t id)
{
    return agenda->start[id] * (1 + 2 * SAME_TIME);
}

enum awaited { ARRIVED, LATE, UNDER_WAY };
static enum awaited awaited(const struct agenda *agenda, const struct choice *choice, double now)
{
    enum awaited awaited = ARRIVED;

    for (uint32_t i = choice->first; i < choice->first + choice->count; i++) {
        if (agenda->end[i] > now * (1 + SAME_TIME))
            return LATE;
        if (isnan(agenda->end[i]))
            awaited = UNDER_WAY;
    }
    return awaited;
}

/* Runs the operation `at` of the lane, in its turn or before it. */
static void run(struct agenda *agenda, struct turns *turns, size_t at, double now)
{
    uint32_t id = turns->ops[at];

    if (agenda->program->ops.items[id].advances) {
        turns->ahead = at + 1;
        turns->advanced++;
    }
    agenda->start[id] = fmax(agenda->start[id], now);
    if (--agenda->waits[id] == 0)
        settle(agenda, id);
}

/* The lane is free from `now` on. `told`: what is still under way will not have arrived by then. */
static void give_turn(struct agenda *agenda, struct turns *turns, double now, bool told)
{
    const struct op *ops = agenda->program->ops.items;
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
    choice = program_choice(agenda->program, id);
    if (choice && turns->ahead < turns->count && turns->advanced < choice->most)
        state = awaited(agenda, choice, now);
    if (state == UNDER_WAY && !told) {
        agenda->start[id] = now;
        hand_out(agenda, id);
    } else if (state == ARRIVED) {
        run(agenda, turns, turns->next++, now);
    } else {
        run(agenda, turns, turns->ahead, now);
    }
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
        struct turns *turns = agenda->turns ? &agenda->turns[agenda->program->ops.items[id].lane] : NULL;
        if (turns && turns->count)
            give_turn(agenda, turns, end, false);
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
    list_turns(agenda);
    link_successors(agenda, last_in_lane);
    free(last_in_lane);
    for (uint32_t i = 0; i < count; i++) {
        start[i] = 0;
        end[i] = NAN;        /* not known */
    }
    for (uint32_t i = 0; i < count; i++)
        if (agenda->waits[i] == 0)
            settle(agenda, i);
    for (size_t i = 0; agenda->turns && i < lanes; i++)
        if (agenda->turns[i].count)
            give_turn(agenda, &agenda->turns[i], 0, false);
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

void agenda_choose(struct agenda *agenda, uint32_t id)
{
    give_turn(agenda, &agenda->turns[agenda->program->ops.items[id].lane], agenda->start[id], true);
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
    free(agenda->turns);
    free(agenda->turn_ops);
    free(agenda->first_successor);
    free(agenda->known.items);
    free(agenda->ready.items);
    memset(agenda, 0, sizeof *agenda);
}
