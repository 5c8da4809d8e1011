/* rows: what charts of sweeps share: values of rows by key, axes with their values in order, and how a chart writes
 * numbers whose key ends in their unit. */
#ifndef DTSIM_ROWS_H
#define DTSIM_ROWS_H

#include "chart.h"

/* A row's value: of its point, of the row itself or of its metrics, the first that has the key; NULL: it has none. */
const struct json_t *row_value(const struct json_t *row, const char *key);
/* The same as a number; NaN: it is none. */
double row_number(const struct json_t *row, const char *key);
/* A value as a short clean text; "" of NULL. */
const char *json_label(struct arena *arena, const struct json_t *value);
/* "ok", "infeasible" or another status. */
const char *row_status(const struct json_t *row);

/* The values that rows have under a key, in their natural order: numbers and quantities ("512 MB", "1 GB") by size,
 * other texts by their letters and the numbers in them. */
enum { AXIS_VALUES = 256 };
struct row_axis {
    const char *key;
    const char *texts[AXIS_VALUES];
    int count, longest;      /* letters */
    int *places;             /* of each row: the place of its value; -1: it has none */
};
/* An error where there are more values than an axis can show. The places live in the arena. */
int row_axis_read(const struct chart *chart, const char *key, struct row_axis *axis);
/* Writes the tics of axis 'x' or 'y': value i stands at i; values are `pixels` apart, and a label needs `needed`. */
void row_axis_tics(const struct chart *chart, const struct row_axis *axis, char which, int pixels, int needed);

/* The keys of points, in the order of the first rows; NULL-terminated. */
const char *const *point_keys(const struct chart *chart);
/* Whether two of the rows have different values under the key; of rows for which `group` is not equal only within a
 * group (NULL: all are one group; -1: of none). */
bool key_varies(const struct chart *chart, const char *key, const int *group, int groups);

/* How a chart writes the numbers of a key: all with one unit. */
struct quantity {
    const char *label;       /* "peak memory (GiB)" */
    const char *unit;        /* " GiB"; "" */
    double scale;            /* times a number in SI units: what is written */
};
/* `most`: the largest of the numbers. */
struct quantity quantity_of(struct arena *arena, const char *key, double most);
/* "62.83", with this number of digits, or with all digits before the point if they are more. */
const char *quantity_text(struct arena *arena, const struct quantity *quantity, double number, int digits);

/* "TP8 PP2": a row's values under the keys in which rows of the chart differ, but for an axis (or NULL)
 * and for numbers that follow from the place on it, as the data degree from the pipeline's where a sweep keeps the
 * GPUs. */
const char *row_label(const struct chart *chart, const struct json_t *row, const struct row_axis *axis);
/* Makes the chart's runs of its rows, one of each that ended well: its metrics, and of its scenario what the sweep
 * sets. As many `inputs` are their names. */
int rows_as_runs(struct chart *chart, struct headline **runs);

/* A value with its key as people write them: "TP8" of strategy.tensor, "mb1" of batch.micro, "no recompute"; else
 * the key's last part and the value. */
const char *short_value(struct arena *arena, const char *key, const struct json_t *value);
/* The sweep's name for a title: its folder's, or how many there are. */
const char *sweep_title(const struct chart *chart);
/* "128 GPUs; 68 points: 18 ok, 50 infeasible (memory 50)". */
const char *sweep_outcome(const struct chart *chart);

#endif
