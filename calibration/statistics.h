/* statistics: median and spread of repeated measurements. */
#ifndef DTSIM_STATISTICS_H
#define DTSIM_STATISTICS_H

#include "base/base.h"

struct series {
    double *items;               /* s */
    size_t count, capacity;
};

/* The median, and the interquartile range over 1.349: the deviation, were the values normally distributed. Neither
 * heeds outliers. Sorts the series; BUG if it is empty. */
struct summary {
    double median, spread;
    size_t count;
};
struct summary series_summary(struct series *series);

#endif
