/* course: a training on the clock that stands still in recoveries: steps, validations and the stalls of checkpoints,
 * one after the other. A failure moves the training back on this clock, to the end of the last finished checkpoint's
 * stall. */
#ifndef DTSIM_COURSE_H
#define DTSIM_COURSE_H

#include "train/course_steps.h"
#include "train/shapes.h"

/* The cost of a checkpoint on that number of nodes. */
struct checkpoint_cost {
    double bytes;                    /* B of the whole checkpoint; NaN: not needed */
    double block;                    /* s that the training stands still */
    double write;                    /* s from the beginning until it is safe; at least `block` */
    double load;                     /* s to load it; 0 without failures */
    double write_stored, load_stored; /* s to write one of memory to the storage, and to load it; 0: none is there */
};
/* Errors: the bytes, or a bandwidth, that the cost needs are not known; fewer nodes than copies in memory. */
int checkpoint_cost(const struct scenario *scenario, const struct steps *steps, const struct step *step,
                    struct checkpoint_cost *cost, struct error *err);

/* B of a checkpoint of the whole model. Error: they are not said, and not known for this optimizer. */
int checkpoint_bytes(const struct scenario *scenario, const struct steps *steps, double *bytes, struct error *err);

/* A stretch of the clock on the same nodes. */
struct zone {
    double end;                      /* s on the clock */
    double pace;                     /* s on the clock in a second of wall time; 1 but on fewer nodes than it wants */
    int nodes, gpus;
    int paid;                   /* GPUs: also those of the nodes that are idle */
    double power, idle_power;        /* W of all nodes: mean over its steps; while the training stands still; NaN: not
                                      * known */
    struct checkpoint_cost cost;
    double reroute; /* s that it stands still for a loss that costs no work, or for nodes that join */
};

/* A finished checkpoint. The first one is the beginning of the training. */
struct mark {
    double resumes;                  /* s on the clock: its stall has ended, and a recovery goes on from here */
    double safe;                     /* s on the clock: it is finished */
    double step;                     /* how many steps it holds */
};

/* How much is trained at a time on the clock: at the end of each stretch, the beginning first. */
struct milestone { double clock, steps, samples, tokens; };

struct course {
    struct { struct mark *items; size_t count, capacity; } marks;
    struct { struct zone *items; size_t count, capacity; } zones;
    struct { struct milestone *items; size_t count, capacity; } milestones;
    double end;                      /* s: the last checkpoint is finished */
    double useful, stalls, validations;      /* s of them; their sum is `end` */
    double steps, checkpoints;
    double gpu_seconds;              /* without failures */
    double joules;                   /* without failures; NaN: not known */
    struct shapes shapes;            /* of a training that goes on with fewer nodes, */
    struct zone *shrunk;             /* and its only zone on each number of nodes, gpus 0: none; NULL: it waits */
    struct zone *holed; /* the same, its own number of nodes included, while nodes do the work of lost neighbours
                         * too; nodes and power are of all; NULL: none does */
    double step;        /* s of a step, where all are alike */
};

/* The course of these steps with a checkpoint after each interval: whole steps, and of a time those that come nearest
 * to it. At the end, and where the number of GPUs changes, there is one too. Error: more than COURSE_MARKS of them. */
enum { COURSE_MARKS = 5000000 };
int course_init(struct course *course, const struct scenario *scenario, const struct steps *steps,
                const struct interval *every, struct error *err);
void course_release(struct course *course);
/* The last finished checkpoint at that time of the clock, or `from` where that is a later one. */
size_t course_mark(const struct course *course, size_t from, double clock);
/* How much is trained at that time: within a stretch evenly, stalls and validations spread over it. */
struct milestone course_at(const struct course *course, double clock);
/* The zone of that time. */
const struct zone *course_zone(const struct course *course, double clock);
/* The beginning of the step under way at a time on the clock behind a checkpoint; of a course whose steps are all
 * alike. */
double course_step_begin(const struct course *course, size_t mark, double clock);
/* Steps between a checkpoint and a time on the clock behind it, whole. */
double course_steps_since(const struct course *course, size_t mark, double clock);

#endif
