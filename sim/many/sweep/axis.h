/* axis: the values that one path of a scenario, or a name of one's own, takes in a sweep. */
#ifndef DTSIM_AXIS_H
#define DTSIM_AXIS_H

#include "sweep/paths.h"

struct axis {
    const char *name;            /* a path of the scenario, or a word for expressions alone */
    struct loc loc;              /* where the name stands */
    bool put;                    /* it is a path: its values go into the scenario */
    struct node **nodes;         /* the values as the scenario gets them */
    struct value *values;        /* and as expressions see them */
    size_t count;
};

enum { AXIS_MOST = 1000000 };    /* values of one axis */

/* Reads what stands under the name: a value, a list of values, or a generator, all ends included:
 *     {range: [from, to, step]}     from, from + step, ... as far as to; the step is 1 if left out
 *     {pow2: [from, to]}            powers of two
 *     {linear: [from, to, count]}   equal differences
 *     {log: [from, to, count]}      equal ratios
 *     {random: {from, to, count, seed, scale: linear|log, whole: true|false}}
 * Ends may have units. What is calculated is rounded to 12 digits. `what` stands before messages ("sweep: grid"). */
int axis_read(struct arena *arena, const char *what, const char *name, struct loc loc, const struct node *node,
              struct axis *axis, struct error *err);
/* Whether a value is a generator. */
bool axis_generates(const struct node *node);
/* Refuses a name that is no path of a scenario, though it is meant as one, and no word. */
int axis_name_check(const char *what, const char *name, struct loc loc, struct error *err);

/* The generators and what they give, a line each. */
void axis_help(FILE *out);

#endif
