/* dispatcher: which operations of a program may run, as the ends of others become known. If the duration of an
 * operation is known in advance (a COMPUTE, a transfer that shares no link), the dispatcher sets its start and end at
 * once, however far ahead they are. An engine gets each transfer that may share links once its start is known, and each
 * choice of a lane that depends on a transfer which has not ended. */
#ifndef DTSIM_DISPATCHER_H
#define DTSIM_DISPATCHER_H

#include "engine/program.h"
#include "hardware/cluster.h"

/* What a transfer costs alone: latency + bytes on the links / bandwidth. */
struct transfer_cost {
    double latency;                  /* s: the route's and the transfer's own delay */
    double bandwidth;                /* B/s of the route, or as many as the transfer takes at most; INFINITY: it takes no
                                        time */
    bool shares;                     /* it may be slower, because others cross its links (sharing.h) */
};
/* The costs of all transfers, by traits; 0 for traits that are not of a transfer, and none shares. The caller frees the
 * array. */
struct transfer_cost *transfer_costs(const struct program *program, const struct cluster *cluster);
/* s of the operation, alone. */
static inline double op_seconds(const struct program *program, const struct op *op, const struct transfer_cost *costs)
{
    return op->kind == OP_COMPUTE ? op->amount :
           costs[op->traits].latency +
               flow_bytes(op->amount, &op_traits(program, op)->transfer) / costs[op->traits].bandwidth;
}

/* Zero-initialise, dispatcher_init, dispatcher_release. */
struct dispatcher {
    const struct program *program;
    const struct transfer_cost *costs;   /* by traits */
    const bool *met;                 /* by id: of the transfers that may share, those that do; NULL: any may */
    double *start, *end;             /* the timeline's; a start is meaningful once its operation was handed out */
    double *moved;                   /* timeline.moved, or NULL; of the start until the operation's end is known */
    size_t left;                     /* operations whose end is not known */
    double latest;                   /* s: the latest end that is */
    struct dispatcher_lane *lanes;
    struct dispatcher_op *ops;       /* an operation */
    struct turns *turns;             /* a lane; NULL if no lane has choices */
    uint32_t *turn_ops;              /* the operations of all lanes with choices, lane by lane */
    struct dispatcher_ids { uint32_t *items; size_t count, capacity; }
        known,                       /* their ends are new to those who wait for them */
        woken;                       /* they have waited, and may start */
    struct dispatcher_ready { uint32_t *items; size_t first, count, capacity; } ready;
};

/* `start` and `end` have a value an operation. Settles the operations that need no engine. The costs outlive the
 * dispatcher. Set `moved` and `met` before. */
void dispatcher_init(struct dispatcher *dispatcher, const struct program *program, const struct transfer_cost *costs,
                     double *start, double *end);
/* Whether an engine finds out how long the operation takes. */
static inline bool dispatcher_asks(const struct dispatcher *dispatcher, uint32_t id)
{
    const struct op *op = &dispatcher->program->ops.items[id];

    return op->kind == OP_TRANSFER && op->amount > 0 && dispatcher->costs[op->traits].shares &&
           (!dispatcher->met || dispatcher->met[id]);
}
/* Takes the operation that became ready first; false: none is ready. It is a transfer, whose start[] is known and may
 * be in the future, or a COMPUTE with a choice. For a choice the engine calls dispatcher_choose at
 * dispatcher_choice_time, after it has called dispatcher_end for all transfers that end before. */
bool dispatcher_take(struct dispatcher *dispatcher, uint32_t *id);
/* The transfer ends at `end`, which may be in the future if it is buffered; the caller has set `moved` of it. Settles all
 * operations that need no other transfer. */
void dispatcher_end(struct dispatcher *dispatcher, uint32_t id, double end);
/* The operation will end soon: fetches from memory what dispatcher_end() will need, in steps from 0 on, each a little
 * after the one before, which it builds on. Nothing but speed depends on it. */
enum { EXPECT_STEPS = 3 };
void dispatcher_expect(const struct dispatcher *dispatcher, uint32_t id, int step);
/* Seconds: a little after the lane came to the choice, so that transfers that end at the same time have ended. */
double dispatcher_choice_time(const struct dispatcher *dispatcher, uint32_t id);
void dispatcher_choose(struct dispatcher *dispatcher, uint32_t id);
size_t dispatcher_ready(const struct dispatcher *dispatcher);
void dispatcher_release(struct dispatcher *dispatcher);

#endif
