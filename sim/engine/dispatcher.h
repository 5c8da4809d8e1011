/* dispatcher: which operations of a program may run, as the ends of others become known. Where the duration of an
 * operation is known in advance (a COMPUTE, a transfer of no bytes), the dispatcher settles its times at once, however
 * far ahead they are. An engine gets the transfers that move bytes, each once its start is known; and the choices of
 * lanes that depend on a transfer which has not ended. */
#ifndef DTSIM_DISPATCHER_H
#define DTSIM_DISPATCHER_H

#include "hardware/cluster.h"
#include "engine/program.h"

/* Zero-initialise, dispatcher_init, dispatcher_release. */
struct dispatcher {
    const struct program *program;
    const struct cluster *cluster;
    double *start, *end;             /* the timeline's; a start is meaningful once its operation was handed out */
    size_t left;                     /* operations whose end is not known */
    uint32_t *waits;                 /* still to end before it: dependencies, and the one before in its lane */
    uint32_t *successors;            /* of operation i: from first_successor[i] to first_successor[i + 1] */
    uint32_t *first_successor;
    struct turns *turns;             /* a lane; NULL where no lane has choices */
    uint32_t *turn_ops;              /* of all lanes with choices, in a row */
    struct dispatcher_known { uint32_t *items; size_t count, capacity; } known;  /* whose ends successors wait for */
    struct dispatcher_ready { uint32_t *items; size_t first, count, capacity; } ready;
};

/* `start` and `end` have a value an operation. Settles what depends on nothing; transfers are ready then. */
void dispatcher_init(struct dispatcher *dispatcher, const struct program *program, const struct cluster *cluster,
                     double *start, double *end);
/* Takes the operation that became ready first; false: none is ready. It is a transfer, whose start[] is known and may
 * lie in the future; or a COMPUTE with a choice. For the latter the engine calls dispatcher_choose at
 * dispatcher_choice_time, after it has told the ends of all transfers that end before. */
bool dispatcher_take(struct dispatcher *dispatcher, uint32_t *id);
/* The transfer ended at that time, which of a buffered transfer may lie in the future. Settles everything that follows
 * from it. */
void dispatcher_end(struct dispatcher *dispatcher, uint32_t id, double end);
/* Seconds: a little after the lane came to the choice, so that transfers that end at the same time have ended. */
double dispatcher_choice_time(const struct dispatcher *dispatcher, uint32_t id);
void dispatcher_choose(struct dispatcher *dispatcher, uint32_t id);
size_t dispatcher_ready(const struct dispatcher *dispatcher);
void dispatcher_release(struct dispatcher *dispatcher);

#endif
