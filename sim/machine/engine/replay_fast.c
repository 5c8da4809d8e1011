/* Event by event, in this process. Every lane has at most one thing under way: a transfer whose latency runs (its bytes
 * begin when it has passed), a transfer whose bytes flow, or a choice that waits for its time.
 *
 * Events that are less apart than rounding errors are one event: they happen together, at the time of the first. All
 * transfers that end then are told to the dispatcher, all that become ready begin, and links are shared once. */
#include "base/progress.h"
#include "engine/dispatcher.h"
#include "engine/flows.h"
#include "engine/replay.h"
#include "engine/sharing.h"

#include <math.h>
#include <stdlib.h>

struct resolution resolution_of(const struct program *program, const struct transfer_cost *costs)
{
    double bytes = 1, serial = 0;

    for (size_t i = 0; i < program->ops.count; i++) {
        const struct op *op = &program->ops.items[i];

        serial += op_seconds(program, op, costs);
        if (op->kind == OP_TRANSFER)
            bytes = fmax(bytes, flow_bytes(op->amount, &op_traits(program, op)->transfer));
    }
    return (struct resolution){.unit = ldexp(1, (int)fmin(40, 62 - ceil(log2(bytes)))), .seconds = ldexp(serial, -50)};
}

double resolution_units(const struct resolution *resolution, double flow)
{
    return fmax(1, rint(flow * resolution->unit));
}

/* The state of a lane until its next event. */
struct under_way {
    uint32_t id;                     /* its operation */
    enum { WAITS, SENDS } does;      /* its latency runs, or its choice waits; its bytes flow */
};

struct fast {
    const struct program *program;
    struct dispatcher dispatcher;
    struct flows flows;              /* by lane */
    struct event_heap events;        /* by lane */
    struct under_way *under_way;     /* by lane */
    struct resolution resolution;
    double now;                      /* s */
    struct lane_list { uint32_t *items; size_t count, capacity; }
        happening,                   /* lanes whose events are now; there is room for all */
        choices;                     /* lanes whose choices are now */
};

static void begin_bytes(struct fast *fast, const struct op *op)
{
    const struct op_transfer *transfer = &op_traits(fast->program, op)->transfer;

    fast->under_way[op->lane].does = SENDS;
    flows_start(&fast->flows, op->lane,
                flows_route(&fast->flows, op->traits, fast->dispatcher.costs[op->traits].bandwidth),
                resolution_units(&fast->resolution, flow_bytes(op->amount, transfer)), fast->now,
                fast->dispatcher.moved ? fast->dispatcher.moved[fast->under_way[op->lane].id] : 0);
}

/* The latency that passes before the bytes of a transfer begin, or, if it is buffered, after they have left. */
static double latency(const struct fast *fast, const struct op *op, bool after)
{
    return op_traits(fast->program, op)->transfer.buffered == after ? fast->dispatcher.costs[op->traits].latency : 0;
}

/* The seconds are added to the present time, and not to the operation's start: SimGrid's clock does the same. */
static void begin(struct fast *fast, uint32_t id)
{
    const struct op *op = &fast->program->ops.items[id];
    bool transfer = op->kind == OP_TRANSFER;
    double wait;

    fast->under_way[op->lane] = (struct under_way){id, WAITS};
    if (transfer)
        wait = fast->dispatcher.start[id] - fast->now + latency(fast, op, false);
    else
        wait = dispatcher_choice_time(&fast->dispatcher, id) - fast->now;
    if (wait > fast->resolution.seconds)
        event_heap_set(&fast->events, op->lane, fast->now + wait);
    else if (transfer)
        begin_bytes(fast, op);
    else
        *GROW(&fast->choices) = op->lane;
}

/* Begins all that is ready. Makes choices one by one, each after everything that the previous choice has made ready. */
static void begin_ready(struct fast *fast)
{
    size_t made = 0;
    uint32_t id;

    for (;;) {
        while (dispatcher_take(&fast->dispatcher, &id))
            begin(fast, id);
        if (made == fast->choices.count)
            break;
        dispatcher_choose(&fast->dispatcher, fast->under_way[fast->choices.items[made++]].id);
    }
    fast->choices.count = 0;
}

/* Goes to the next event and takes all that happen with it. */
static void next_events(struct fast *fast)
{
    BUG_IF(!fast->events.count);
    fast->now += fast->events.entries[0].time - fast->now;
    fast->happening.count = 0;
    while (fast->events.count && fast->events.entries[0].time - fast->now < fast->resolution.seconds)
        fast->happening.count += event_heap_pop(&fast->events, fast->happening.items + fast->happening.count);
}

static void happen(struct fast *fast, uint32_t lane)
{
    struct under_way under_way = fast->under_way[lane];
    const struct op *op = &fast->program->ops.items[under_way.id];

    if (under_way.does == SENDS) {
        double moved = flows_stop(&fast->flows, lane);

        if (fast->dispatcher.moved)
            fast->dispatcher.moved[under_way.id] = moved;
        dispatcher_end(&fast->dispatcher, under_way.id, fast->now + latency(fast, op, true));
    } else if (op->kind == OP_TRANSFER) {
        begin_bytes(fast, op);
    } else {
        *GROW(&fast->choices) = lane;
    }
}

/* Most memory that the ends of transfers touch in a long program is far from the processor. So it is fetched for several
 * ends that happen together: each step of dispatcher_expect() for all of them. */
static void expect_ends(const struct fast *fast, const uint32_t *lanes, size_t count)
{
    for (int step = 0; step < EXPECT_STEPS; step++)
        for (size_t i = 0; i < count; i++)
            if (fast->under_way[lanes[i]].does == SENDS)
                dispatcher_expect(&fast->dispatcher, fast->under_way[lanes[i]].id, step);
}

static void happen_together(struct fast *fast)
{
    enum { SEVERAL = 16, LONG = 1 << 16 };
    const uint32_t *lanes = fast->happening.items;
    size_t count = fast->happening.count;
    bool expects = count > 1 && fast->program->ops.count > LONG;

    for (size_t i = 0; i < count; i++) {
        if (expects && i % SEVERAL == 0)
            expect_ends(fast, lanes + i, count - i < SEVERAL ? count - i : SEVERAL);
        happen(fast, lanes[i]);
    }
}

/* Event by event. */
static void replay_events(const struct program *program, const struct cluster *cluster, const struct sharing *sharing,
                          const struct transfer_cost *costs, struct timeline *timeline)
{
    size_t lanes = program->lanes.count;
    struct fast fast = {.program = program, .dispatcher.moved = timeline->moved};

    fast.under_way = xcalloc(lanes + 1, sizeof *fast.under_way);
    fast.happening.items = xcalloc(lanes + 1, sizeof *fast.happening.items);
    dispatcher_init(&fast.dispatcher, program, costs, timeline->start, timeline->end);
    fast.resolution = resolution_of(program, fast.dispatcher.costs);
    event_heap_init(&fast.events, lanes);
    flows_init(&fast.flows, sharing, cluster, lanes, fast.resolution.unit, 2 * fast.resolution.seconds, &fast.events);
    begin_ready(&fast);
    for (size_t events = 1; fast.dispatcher.left; events++) {
        if (events % PROGRESS_EVENTS == 0 &&
            progress_step(program->progress, "replaying", program->ops.count - fast.dispatcher.left,
                          program->ops.count, fast.now))
            break;
        flows_share(&fast.flows, fast.now);
        next_events(&fast);
        happen_together(&fast);
        begin_ready(&fast);
    }
    timeline->makespan = fast.dispatcher.latest;
    timeline->unclear = fast.flows.unclear;
    dispatcher_release(&fast.dispatcher);
    flows_release(&fast.flows);
    event_heap_release(&fast.events);
    free(fast.under_way);
    free(fast.happening.items);
    free(fast.choices.items);
}

/* Where no two transfers meet in the times that they take alone, these are the times. */
void replay_fast(const struct program *program, const struct cluster *cluster, struct timeline *timeline)
{
    struct transfer_cost *costs = transfer_costs(program, cluster);
    struct sharing sharing = sharing_of(program, cluster, costs);

    if (!sharing.any || !program->choices.count)
        replay_costs(program, costs, timeline);
    if (sharing.any && !progress_over(program->progress) &&
        (program->choices.count || sharing_meets(&sharing, timeline, costs, NULL)))
        replay_events(program, cluster, &sharing, costs, timeline);
    sharing_release(&sharing);
    free(costs);
}
