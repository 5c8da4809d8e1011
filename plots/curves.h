/* curves: charts of points that belong to series: a curve a series, simulated and, dashed, what it is compared with. */
#ifndef DTSIM_CURVES_H
#define DTSIM_CURVES_H

#include "chart.h"

struct curve_point {
    const char *series;      /* clean text */
    double x, y;
    double reference;        /* what y is compared with; NaN: nothing */
    double lower, lower_reference;       /* the same of the lower panel, where there is one */
    const char *colour, *dash;           /* series with the same one have the same colour, or line style; NULL: every
                                          * series its own colour, all lines solid */
};

/* Zero-initialise; curves_release when done. */
struct curves {
    struct curve_points { struct curve_point *items; size_t count, capacity; } points;
    const char *title, *note;        /* note NULL: none */
    const char *x, *y;               /* of the axes, with units */
    const char *x_format;            /* of its tics; NULL: plain numbers */
    const char *reference;           /* in the legend; NULL: there is none */
    const char *lower;               /* of the lower panel's axis, with its unit; NULL: there is no such panel */
    const char *lower_format;        /* of its tics; NULL: plain numbers */
    bool log_lower;
    bool rings;                      /* the reference is a ring around each point; else a dashed line */
    bool log_x, log_y;
    double base;                     /* of ticks of logarithmic axes: 2 or 10 */
    double y_most;                   /* the axis goes at least so far; 0: as far as the points */
};

/* Opens the chart's files and writes them: points by series, in the order of the series' first points, ascending x. Not
 * more series than there are colours and marks to tell them apart. */
int curves_draw(struct chart *chart, struct curves *curves);
void curves_release(struct curves *curves);

#endif
