/* Rows that differ in their number of micro-batches alone: two errors that cancel in a mean show apart there, in the time of
 * a micro-batch and in what a step takes besides. */
#include "validate/validation.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/text.h"

static bool timed(const struct validation *validation, size_t row)
{
    return !isnan(validation_time_error(validation, row));
}

static bool together(const struct validation *validation, size_t a, size_t b)
{
    return timed(validation, a) && timed(validation, b) &&
           !strcmp(validation->outcomes[a].asked_but_batches, validation->outcomes[b].asked_but_batches);
}

/* The line through n points, least squares; not all x are the same. */
static struct line line_through(const double *x, const double *y, size_t n)
{
    double mean_x = 0, mean_y = 0, up = 0, along = 0;

    for (size_t i = 0; i < n; i++) {
        mean_x += x[i] / (double)n;
        mean_y += y[i] / (double)n;
    }
    for (size_t i = 0; i < n; i++) {
        up += (x[i] - mean_x) * (y[i] - mean_y);
        along += (x[i] - mean_x) * (x[i] - mean_x);
    }
    return (struct line){up / along, mean_y - up / along * mean_x};
}

bool validation_slope(const struct validation *validation, size_t first, struct slope *slope)
{
    size_t nrows = validation->paper->nrows, n = 0;
    double *counts = xcalloc(3 * nrows, sizeof *counts), *measured = counts + nrows, *predicted = measured + nrows;
    bool opens = timed(validation, first), differ = false;

    *slope = (struct slope){.first = first};
    for (size_t i = 0; opens && i < nrows; i++) {
        if (!together(validation, first, i))
            continue;
        opens = i >= first;              /* else the rows are another's, which comes before */
        counts[n] = validation->outcomes[i].micro_batches;
        predicted[n] = validation->outcomes[i].metrics.iteration_time;
        measured[n] = predicted[n] / (1 + validation_time_error(validation, i));
        differ |= counts[n++] != counts[0];
        slope->last = i;
    }
    slope->rows = n;
    if (opens && differ) {
        slope->measured = line_through(counts, measured, n);
        slope->predicted = line_through(counts, predicted, n);
    }
    free(counts);
    return opens && differ;
}

void validation_print_slopes(const struct validation *validation, FILE *out)
{
    const struct paper *paper = validation->paper;

    for (size_t row = 0; row < paper->nrows; row++) {
        struct slope slope;

        if (!validation_slope(validation, row, &slope))
            continue;
        fputs("micro-batches alone (", out);
        text_write(TEXT_LINE, paper->rows[slope.first].id, out);
        fputs(slope.rows > 2 ? " ... " : ", ", out);
        text_write(TEXT_LINE, paper->rows[slope.last].id, out);
        fprintf(out, "): each %.4g s, predicted %.4g s (%+.1f %%); besides them %.4g s, predicted %.4g s\n", slope.measured.each,
                slope.predicted.each, 100 * (slope.predicted.each / slope.measured.each - 1), slope.measured.constant,
                slope.predicted.constant);
    }
}
