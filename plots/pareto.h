/* pareto: what the parts of the pareto chart share: points and front (pareto.c), labels (pareto_labels.c). */
#ifndef DTSIM_PARETO_H
#define DTSIM_PARETO_H

#include "rows.h"

struct rectangle { double left, low, right, high; };
struct point {
    double x, y;                     /* SI units */
    const struct json_t *row;
    bool front;
    int alike;                       /* further points in the same place, of the front's */
    double across, up;               /* pixels, from the chart's lower left corner */
    const char *label;               /* of the front's */
    struct rectangle box;            /* where it stands; right 0: nowhere */
    int side;                        /* of the point: -1 left, 0 above or below, 1 right */
};

struct pareto {
    struct plot_key x, y;
    struct points { struct point *items; size_t count, capacity; } points;
    double x_size, y_size;           /* of the largest numbers */
    struct quantity x_quantity, y_quantity;
    double x_from, x_to, y_from, y_to;   /* of the axes, SI units */
    size_t front, labelled;
    int wide, high;                  /* pixels of the chart proper */
};

/* Finds places for the labels of the front; sets `labelled`. */
void pareto_place_labels(struct pareto *pareto);
/* The end of a label's line, on the edge of its box. */
void pareto_anchor(const struct point *point, const struct rectangle *box, double *across, double *up);

#endif
