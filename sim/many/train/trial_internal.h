/* A trial under way, for the files that play it. */
#ifndef DTSIM_TRIAL_INTERNAL_H
#define DTSIM_TRIAL_INTERNAL_H

#include "train/trial.h"

/* Nodes that are remembered until a recovery has ended; further ones are as rare as they are many. */
enum { LOST_MOST = 256 };

/* A trial under way. */
struct going {
    const struct trial_rules *rules;
    void (*observe)(void *context, const struct trial_event *event);
    void *context;
    struct trial trial;
    struct random_failures random;
    double clock;                    /* of the course */
    size_t mark;                     /* the last finished checkpoint */
    bool recovers;
    bool waits;                      /* for a node: those that are there are idle, and do not fail */
    int pool;                        /* spare nodes that are there */
    int missing;                     /* nodes that were lost and are not replaced yet */
    struct {
        double *items;
        size_t count, capacity;
    } repairs;                       /* s of wall time at which nodes come back, ascending */
    size_t repaired;                 /* of these, how many have */
    size_t row;                      /* of a trace: that will be next */
    int lost[LOST_MOST],
        nlost; /* nodes that were lost since the training stands still, or was last without holes;
                * places in the shape that holds the states, ascending; with copies in memory: as lost */
    int held;  /* the nodes of that shape; of an elastic training */
    bool kept; /* no work since the last checkpoint is lost, for all parts of the model are still there */
    int holes; /* lost nodes whose work others do */
    bool gone;                       /* all copies of a share in memory */
    bool stored;                     /* what is loaded comes from the storage, because copies in memory are lost */
    int fewer;                       /* nodes that are there, too few for the whole training; 0: it is whole */
};

/* The shape of the training now. */
static inline const struct zone *zone_now(const struct going *going)
{
    const struct course *course = going->rules->course;
    const struct zone *zone = going->fewer ? &course->shrunk[going->fewer] : course_zone(course, going->clock);

    return going->holes ? &course->holed[zone->nodes] : zone;
}

/* The same when it is whole. */
static inline const struct zone *zone_whole(const struct going *going, const struct zone *zone)
{
    return going->fewer ? going->rules->course->zones.items : zone;
}

/* Nodes that the trace has up. */
static inline int trial_nodes_up(const struct going *going)
{
    return going->row ? going->rules->failures->trace->rows[going->row - 1].nodes : 0;
}

/* The share of its nodes that is there: a trace says so, and without one all are but for holes. */
static inline double share_there(const struct going *going, const struct zone *zone)
{
    int there = zone->nodes - going->holes;

    if (going->rules->failures->trace && trial_nodes_up(going) < there)
        there = trial_nodes_up(going);
    return (double)there / zone->nodes;
}

/* A time at which a training on fewer nodes takes others that have come back: when a checkpoint is finished. */
struct growth { double seconds, clock; bool grows; };       /* s until then; on the clock; false: it looks again */

/* Whether the training begins again from a checkpoint whenever a node is lost. */
static inline bool trial_restarts(const struct going *going)
{
    return !going->rules->elastic || going->rules->elastic->system == ELASTIC_VARUNA;
}

/* survive.c: whether the states of a training survive a loss of nodes. */
/* The place, in the shape that holds the states, of a node: the index-th of those that are left. -1: it holds none. */
int trial_place(const struct going *going, int index);
/* A node at that place is lost; -1 is none. */
void trial_lose_place(struct going *going, int place);
/* Whether every part of the model is still on a node. */
bool trial_survives(const struct going *going);
/* All nodes of the present shape hold their parts. */
void trial_settle(struct going *going);
/* How many of the nodes are taken, with the time ahead in view (liveput). */
int trial_foresee(const struct going *going, int there);

/* trial_failures.c: failures, and the time that passes under them. */
void trial_tell(struct going *going, enum trial_event_kind kind, int node, const char *cause, double steps_lost);
size_t trial_last_mark(struct going *going);
void trial_lose_work(struct going *going, const struct zone *zone);
/* The step under way is lost. */
void trial_lose_step(struct going *going, const struct zone *zone);
/* Nodes whose repair has ended are spare ones again. */
void trial_return_repaired(struct going *going);
double trial_until_failure(struct going *going, const struct zone *zone, double limit, bool *fails);
const struct cause *trial_node_fails(struct going *going, const struct zone *zone);
void trial_stand(struct going *going, const struct zone *zone, double seconds, enum loss loss);
const struct cause *trial_spend(struct going *going, const struct zone *zone, double seconds, enum loss loss);

/* resize.c */
bool trial_resize(struct going *going);
struct growth trial_next_growth(struct going *going, const struct zone *zone);
const struct cause *trial_grow(struct going *going);
const struct cause *trial_take_spares(struct going *going, const struct zone *zone);
void trial_wait_for_trace(struct going *going, const struct zone *zone);
/* What follows a loss that costs no work. The cause of another one that comes before it is done. */
const struct cause *trial_reroute(struct going *going);

#endif
