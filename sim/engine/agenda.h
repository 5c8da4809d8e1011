/* agenda: which operations of a program may run, as ends become known. What takes a time known in advance (COMPUTE, a
 * transfer of nothing) is settled at once, however far ahead; what is left to an engine are the transfers that move
 * bytes, each handed out once its start is known, and the choices of lanes that hang on a transfer still under way. */
#ifndef DTSIM_AGENDA_H
#define DTSIM_AGENDA_H

#include "hardware/cluster.h"
#include "engine/program.h"

/* Zero-initialise, agenda_init, agenda_release. */
struct agenda {
    const struct program *program;
    const struct cluster *cluster;
    double *start, *end;             /* the timeline's; a start is meaningful once its operation was handed out */
    size_t left;                     /* operations whose end is not known */
    uint32_t *waits;                 /* still to end before it: dependencies, and the one before in its lane */
    uint32_t *successors;            /* of operation i: from first_successor[i] to first_successor[i + 1] */
    uint32_t *first_successor;
    struct turns *turns;             /* a lane; NULL where no lane has choices */
    uint32_t *turn_ops;              /* of all lanes with choices, in a row */
    struct agenda_known { uint32_t *items; size_t count, capacity; } known;    /* ends to tell the successors */
    struct agenda_ready { uint32_t *items; size_t first, count, capacity; } ready;
};

/* `start` and `end` have a value an operation. Settles what depends on nothing; transfers are ready then. */
void agenda_init(struct agenda *agenda, const struct program *program, const struct cluster *cluster, double *start,
                 double *end);
/* The next transfer in the order in which they became ready, or false. Its start[] is known, perhaps in the future.
 * Or a COMPUTE operation with a choice: agenda_choose is to be called at agenda_choice_time, when every transfer that
 * ends before has been told. */
bool agenda_take(struct agenda *agenda, uint32_t *id);
/* The transfer ended at that time (of a buffered one that may be in the future): settles everything that follows from
 * it. */
void agenda_end(struct agenda *agenda, uint32_t id, double end);
/* A little after the lane came to the choice, as what ends at the same time has ended. */
double agenda_choice_time(const struct agenda *agenda, uint32_t id);
void agenda_choose(struct agenda *agenda, uint32_t id);
size_t agenda_ready(const struct agenda *agenda);
void agenda_release(struct agenda *agenda);

#endif
