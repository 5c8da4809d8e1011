/* Statistics without a library: a machine with a GPU has CUDA and often nothing else. */
#include "statistics.h"

#include <stdlib.h>

/* The interquartile range of a normal distribution, in standard deviations: 2 x 0.67449. */
#define NORMAL_RANGE 1.349

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* A quantile of sorted values, linear between neighbours. */
static double quantile(const struct series *series, double share)
{
    double at = share * (double)(series->count - 1);
    size_t low = (size_t)at, high = low + 1 < series->count ? low + 1 : low;

    return series->items[low] + (at - (double)low) * (series->items[high] - series->items[low]);
}

struct summary series_summary(struct series *series)
{
    BUG_IF(series->count == 0);
    qsort(series->items, series->count, sizeof *series->items, compare);
    return (struct summary){quantile(series, 0.5), (quantile(series, 0.75) - quantile(series, 0.25)) / NORMAL_RANGE,
                            series->count};
}
