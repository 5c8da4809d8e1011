#include "statistics.h"

#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>

/* The interquartile range of a normal distribution in its deviations: 2 x 0.67449. */
#define NORMAL_RANGE 1.349

struct summary series_summary(struct series *series)
{
    double low, high;

    BUG_IF(series->count == 0);
    gsl_sort(series->items, 1, series->count);
    low = gsl_stats_quantile_from_sorted_data(series->items, 1, series->count, 0.25);
    high = gsl_stats_quantile_from_sorted_data(series->items, 1, series->count, 0.75);
    return (struct summary){gsl_stats_median_from_sorted_data(series->items, 1, series->count),
                            (high - low) / NORMAL_RANGE, series->count};
}
