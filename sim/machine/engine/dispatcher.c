#include "engine/dispatcher.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "hardware/cluster.h"

static const uint32_t NONE = UINT32_MAX;
static const uint32_t ENDED = UINT32_MAX - 1;    /* in `waiting`: all who waited for the operation know its end */

/* A lane runs one operation at a time, and its present operation waits for one of its dependencies at a time. So a lane
 * is in at most one list of those who wait. What follows is valid while it is. */
struct dispatcher_lane {
    uint32_t present;        /* the operation whose turn it is */
    uint32_t seen;           /* dependencies of it whose ends are known */
    uint32_t also;           /* the next lane that waits for the same operation, or NONE */
};

struct dispatcher_op {
    uint32_t waiting;        /* the first lane whose present operation waits for its end, NONE or ENDED */
    uint32_t next;           /* the next operation of its lane, or NONE */
};

/* A lane with choices: its operations in the order of ids, and how far it is. */
struct turns {
    uint32_t *ops;
    size_t count;
    size_t next;             /* the operation whose turn it is */
    size_t ahead;            /* all operations before this one that `advances` have run */
    uint32_t advanced;       /* the number of these */
};

/* Finds the lanes with choices and lists their operations. */
static void list_turns(struct dispatcher *dispatcher)
{
    const struct program *program = dispatcher->program;
    size_t lanes = program->lanes.count, used = 0;
    bool *chooses = program->choices.count ? xcalloc(lanes, sizeof *chooses) : NULL;

    if (!chooses)
        return;
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

/* The place of the item after `ahead` others. */
static size_t ready_at(const struct dispatcher_ready *ready, size_t ahead)
{
    size_t at = ready->first + ahead;

    return at < ready->capacity ? at : at - ready->capacity;
}

static void hand_out(struct dispatcher *dispatcher, uint32_t id)
{
    struct dispatcher_ready *ready = &dispatcher->ready;

    BUG_IF(ready->count == ready->capacity);
    ready->items[ready_at(ready, ready->count++)] = id;
}

/* The operation waits for nothing any more. */
static inline void settle(struct dispatcher *dispatcher, uint32_t id)
{
    const struct op *op = &dispatcher->program->ops.items[id];

    if (dispatcher_asks(dispatcher, id)) {
        hand_out(dispatcher, id);
        return;
    }
    dispatcher->end[id] = dispatcher->start[id] + op_seconds(dispatcher->program, op, dispatcher->costs);
    if (dispatcher->moved && op->kind == OP_COMPUTE)
        dispatcher->moved[id] += timeline_longer(id) * op->amount;
    *GROW(&dispatcher->known) = id;
}

/* Whether all dependencies of the operation have ended, the first `seen` of which have; else its lane waits for the first
 * that has not. It may not start before `start`, which changes by `moved`: of two that end together by the larger change. */
static bool may_start(struct dispatcher *dispatcher, uint32_t lane, uint32_t id, uint32_t seen, double start, double moved)
{
    struct dep_list deps = program_deps(dispatcher->program, &dispatcher->program->ops.items[id]);
    uint32_t next = dispatcher->ops[id].next;
    bool may = true;

    if (next != NONE) {      /* it may be far from the processor, and its turn comes when this one has ended */
        __builtin_prefetch(&dispatcher->program->ops.items[next]);
        __builtin_prefetch(&dispatcher->ops[next], 1);
    }
    for (; seen < deps.count; seen++) {
        uint32_t dep = deps.items[seen], *waiting = &dispatcher->ops[dep].waiting;

        if (*waiting != ENDED) {
            dispatcher->lanes[lane] = (struct dispatcher_lane){.present = id, .seen = seen, .also = *waiting};
            *waiting = lane;
            may = false;
            break;
        }
        if (dispatcher->moved && dispatcher->end[dep] >= start)
            moved = dispatcher->end[dep] > start ? dispatcher->moved[dep] : fmax(moved, dispatcher->moved[dep]);
        start = dispatcher->end[dep] > start ? dispatcher->end[dep] : start;
    }
    dispatcher->start[id] = start;
    if (dispatcher->moved)
        dispatcher->moved[id] = moved;
    return may;
}

/* A choice takes ends as equal that differ by less than this share of the time: engines round differently. */
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

/* Runs operation `at` of the lane, in its turn or before it. */
static void run(struct dispatcher *dispatcher, struct turns *turns, size_t at, double now)
{
    uint32_t id = turns->ops[at];

    if (dispatcher->program->ops.items[id].advances) {
        turns->ahead = at + 1;
        turns->advanced++;
    }
    if (may_start(dispatcher, dispatcher->program->ops.items[id].lane, id, 0, now, 0))
        settle(dispatcher, id);
}

/* The lane is free from `now` on: finds its next operation. `told`: transfers still under way do not end before
 * `now`. */
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

static int by_id(const void *a, const void *b)
{
    return *(const uint32_t *)a < *(const uint32_t *)b ? -1 : *(const uint32_t *)a > *(const uint32_t *)b;
}

/* Ascending; most often there are two. */
static void sort_ids(struct dispatcher_ids *ids)
{
    enum { FEW = 8 };

    if (ids->count > FEW) {
        array_sort(ids->items, ids->count, sizeof *ids->items, by_id);
        return;
    }
    for (size_t i = 1; i < ids->count; i++) {
        uint32_t id = ids->items[i];
        size_t at = i;

        for (; at && ids->items[at - 1] > id; at--)
            ids->items[at] = ids->items[at - 1];
        ids->items[at] = id;
    }
}

/* Settles the operations that may start now, in the order of ids, so that it does not matter who began to wait
 * first. */
static void settle_woken(struct dispatcher *dispatcher)
{
    struct dispatcher_ids *woken = &dispatcher->woken;

    sort_ids(woken);
    for (size_t i = 0; i < woken->count; i++)
        settle(dispatcher, woken->items[i]);
    woken->count = 0;
}

/* The end of an operation is known to all who wait for it. */
static void wake(struct dispatcher *dispatcher, uint32_t id)
{
    const struct op *op = &dispatcher->program->ops.items[id];
    bool buffered = op->kind == OP_TRANSFER && op_traits(dispatcher->program, op)->transfer.buffered;
    double end = dispatcher->end[id], left = buffered ? end - dispatcher->costs[op->traits].latency : end;
    double moved = dispatcher->moved ? dispatcher->moved[id] : 0;
    uint32_t lane = dispatcher->ops[id].waiting, next = dispatcher->ops[id].next;
    struct turns *turns = dispatcher->turns && dispatcher->turns[op->lane].count ? &dispatcher->turns[op->lane] : NULL;

    dispatcher->left--;
    dispatcher->latest = end > dispatcher->latest ? end : dispatcher->latest;
    dispatcher->ops[id].waiting = ENDED;
    while (lane != NONE) {
        struct dispatcher_lane own = dispatcher->lanes[lane];

        if (may_start(dispatcher, lane, own.present, own.seen, dispatcher->start[own.present],
                      dispatcher->moved ? dispatcher->moved[own.present] : 0))
            *GROW(&dispatcher->woken) = own.present;
        lane = own.also;
    }
    if (!turns && next != NONE && may_start(dispatcher, op->lane, next, 0, left, moved))
        *GROW(&dispatcher->woken) = next;
    if (dispatcher->woken.count)
        settle_woken(dispatcher);
    if (turns)
        give_turn(dispatcher, turns, end, false);
}

/* Wakes all who wait for operations whose ends are new. A list replaces recursion, as chains can be long. */
static void spread(struct dispatcher *dispatcher)
{
    while (dispatcher->known.count)
        wake(dispatcher, dispatcher->known.items[--dispatcher->known.count]);
}

/* Links the operations of each lane, and settles the first ones that wait for nothing. */
static void begin_lanes(struct dispatcher *dispatcher)
{
    const struct program *program = dispatcher->program;
    size_t lanes = program->lanes.count;

    for (size_t i = 0; i < lanes; i++)
        dispatcher->lanes[i] = (struct dispatcher_lane){NONE, 0, NONE};
    for (uint32_t i = 0; i < program->ops.count; i++) {
        struct dispatcher_lane *lane = &dispatcher->lanes[program->ops.items[i].lane];

        if (lane->present != NONE)
            dispatcher->ops[lane->present].next = i;
        else
            *GROW(&dispatcher->woken) = i;
        lane->present = i;
        dispatcher->ops[i] = (struct dispatcher_op){NONE, NONE};
        dispatcher->end[i] = NAN;        /* not known */
    }
    size_t first = dispatcher->woken.count, ready = 0;

    for (size_t i = 0; i < first; i++) {
        uint32_t id = dispatcher->woken.items[i], lane = program->ops.items[id].lane;

        if (!(dispatcher->turns && dispatcher->turns[lane].count) && may_start(dispatcher, lane, id, 0, 0, 0))
            dispatcher->woken.items[ready++] = id;
    }
    dispatcher->woken.count = ready;
    settle_woken(dispatcher);
    for (size_t i = 0; dispatcher->turns && i < lanes; i++)
        if (dispatcher->turns[i].count)
            give_turn(dispatcher, &dispatcher->turns[i], 0, false);
}

struct transfer_cost *transfer_costs(const struct program *program, const struct cluster *cluster)
{
    struct transfer_cost *costs = xcalloc(program->traits.count + 1, sizeof *costs);

    for (size_t i = 0; i < program->ops.count; i++) {
        const struct op *op = &program->ops.items[i];

        if (op->kind != OP_TRANSFER || costs[op->traits].bandwidth > 0)
            continue;
        const struct op_transfer *transfer = &op_traits(program, op)->transfer;
        struct route route = cluster_route(cluster, (int)transfer->src, (int)transfer->dst);
        double most = transfer->most > 0 ? fmin(transfer->most, route.bandwidth) : route.bandwidth;
        costs[op->traits] = (struct transfer_cost){route.latency + transfer->delay, most, false};
    }
    return costs;
}

void dispatcher_init(struct dispatcher *dispatcher, const struct program *program, const struct transfer_cost *costs,
                     double *start, double *end)
{
    size_t count = program->ops.count, lanes = program->lanes.count;

    BUG_IF(count >= ENDED);
    dispatcher->program = program;
    dispatcher->costs = costs;
    dispatcher->start = start;
    dispatcher->end = end;
    dispatcher->left = count;
    dispatcher->lanes = xcalloc(lanes + 1, sizeof *dispatcher->lanes);
    dispatcher->ops = xrealloc(NULL, count + 1, sizeof *dispatcher->ops);
    dispatcher->ready.capacity = lanes + 1; /* a lane runs one operation at a time */
    dispatcher->ready.items = xcalloc(lanes + 1, sizeof *dispatcher->ready.items);
    list_turns(dispatcher);
    begin_lanes(dispatcher);
    spread(dispatcher);
}

bool dispatcher_take(struct dispatcher *dispatcher, uint32_t *id)
{
    struct dispatcher_ready *ready = &dispatcher->ready;
    bool any = ready->count > 0;

    *id = ready->items[ready->first];
    ready->first = any ? ready_at(ready, 1) : ready->first;
    ready->count -= any;
    return any;
}

/* The end of an operation may let two begin: the next one of its lane, and the present one of a lane that waits for it.
 * This is one function, because gcc drops calls of a function that does nothing but prefetch. */
void dispatcher_expect(const struct dispatcher *dispatcher, uint32_t id, int step)
{
    const struct op *ops = dispatcher->program->ops.items;
    const struct dispatcher_op *own = &dispatcher->ops[id];
    uint32_t begin[2];

    if (step == 0) {
        __builtin_prefetch(&ops[id]);
        __builtin_prefetch(own, 1);
        __builtin_prefetch(&dispatcher->end[id], 1);
        return;
    }
    begin[0] = own->next;
    begin[1] = own->waiting == NONE || own->waiting == ENDED ? NONE : dispatcher->lanes[own->waiting].present;
    for (int i = 0; i < 2; i++) {
        if (begin[i] == NONE)
            continue;
        if (step == 1) {
            __builtin_prefetch(&ops[begin[i]]);
            __builtin_prefetch(&dispatcher->start[begin[i]], 1);
            __builtin_prefetch(&dispatcher->ops[begin[i]], 1);
        } else {
            __builtin_prefetch(&dispatcher->program->deps.items[ops[begin[i]].first_dep]);
            __builtin_prefetch(&dispatcher->end[begin[i]], 1);
        }
    }
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
    free(dispatcher->lanes);
    free(dispatcher->ops);
    free(dispatcher->turns);
    free(dispatcher->turn_ops);
    free(dispatcher->known.items);
    free(dispatcher->woken.items);
    free(dispatcher->ready.items);
    memset(dispatcher, 0, sizeof *dispatcher);
}
