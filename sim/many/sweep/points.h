/* points: the scenarios of a sweep by number, each made when it is asked for, so that a grid of 10^9 costs no memory.
 *
 * Points are numbered from 0: first the combinations of the grid and the zips, of which the last one written varies the
 * fastest, then those of `include`. */
#ifndef DTSIM_POINTS_H
#define DTSIM_POINTS_H

#include "sweep/axis.h"

/* Axes that take their values together; one of the grid is alone. */
struct zip {
    size_t first, count;         /* axes */
    size_t length;               /* values of each */
};

/* A value that follows from others. */
struct derived {
    const char *name;
    struct loc loc;
    bool put;                    /* it is a path of the scenario */
    struct expression *expression;
};

struct moment;
/* What drops points: an expression that is false (where) or true (exclude), or values that a point has. */
struct constraint {
    const char *text;            /* as written, for people */
    struct expression *expression;       /* or NULL */
    bool drops;                  /* the value of the expression that drops a point */
    size_t *names;               /* axes and derived values, by their number in expressions */
    const struct node **nodes;   /* their value; a list: any of its items */
    size_t count;
    /* Instead of all that: whether a rule of its own, which reads the axes `names`, drops the point, or all points with the
     * values that are known of it; or NULL. */
    bool (*asks)(const void *rule, const struct moment *moment);
    const void *rule;
};
/* A point that is looked at; and its value of an axis. VALUE_NONE: it is not chosen yet. */
struct value moment_axis(const struct moment *moment, size_t axis);
/* The number of the point that has the first value of all axes but these. False: one of these is not chosen yet. */
bool moment_number(const struct moment *moment, const bool *axes, uint64_t *number);

/* A path that an expression uses though the sweep does not set it. */
struct looked_up {
    const char *path;
    bool resolved;               /* it follows from the point's whole scenario; else it is the base's value */
    struct value value;
};

/* Points that are listed one by one; an axis that one does not name has the base's value. */
struct included {
    struct axis *axes;
    size_t count;
};

struct points {
    struct loc loc;              /* where the sweep is described */
    struct node *base;
    const char *name;            /* of scenarios without one */
    struct { struct axis *items; size_t count, capacity; } axes;
    struct { struct zip *items; size_t count, capacity; } zips;
    struct { struct constraint *items; size_t count, capacity; } constraints;
    struct { struct looked_up *items; size_t count, capacity; } lookups;
    struct derived *derived;
    size_t nderived;
    struct included *included;
    size_t nincluded;
    int sample;                  /* number of the remaining points to draw at random; 0: all */
    int seed;
};

/* Reads what stands under `sweep` (NULL: the base alone). `file`: the text of the file that it stands in, for the
 * columns of expressions, or NULL. The base may be changed so that paths lead to mappings. Release in either case. */
int points_read(struct arena *arena, const struct node *node, const char *file, struct node *base, const char *name,
                struct points *points, struct error *err);
void points_release(struct points *points);

/* Combinations of grid and zips, before anything is dropped; UINT64_MAX: 2^64 or more. */
uint64_t points_combinations(const struct points *points);

enum { POINTS_LOOKED = 10000000 };       /* combinations that are looked through for a sweep */

/* The points that a sweep consists of. */
struct selection {
    uint64_t *items;             /* their numbers, ascending */
    size_t count, capacity;
    uint64_t looked;             /* combinations, each of which remains or is dropped */
    uint64_t *dropped;           /* by each constraint, the first that applies: of those that fewer axes decide, before others */
};
/* Looks through all combinations, or draws among them, and keeps those that no constraint drops; an error where more
 * than `most` remain, or more than POINTS_LOOKED would have to be looked at: those that the values of some axes drop are
 * not. Release in either case. */
int points_select(const struct points *points, size_t most, struct selection *selection, struct error *err);
/* Which constraint drops the point of that number, the first of several; none: their number. */
int points_dropped(const struct points *points, uint64_t number, size_t *constraint, struct error *err);
void selection_release(struct selection *selection);

/* A value that a point gives a path or a name. */
struct setting {
    const char *name;
    struct loc loc;              /* of the name */
    bool put;
    struct node *node;
};
struct point {
    struct setting *items;       /* axes as they are written, then derived values */
    size_t count;
    struct node *root;           /* the scenario: the base with the paths set */
};
/* The point of that number, in the arena. */
int point_make(const struct points *points, uint64_t number, struct arena *arena, struct point *point,
               struct error *err);

/* The help of a sweep file: its keys. */
extern const struct table points_table;

#endif
