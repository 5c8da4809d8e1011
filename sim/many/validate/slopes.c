/* Rows that differ in their number of micro-batches alone: two errors that cancel in a mean show apart there, in the time of
 * a micro-batch and in what a step takes besides. */
#include "validate/validation.h"

#include <gsl/gsl_fit.h>
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

bool validation_slope(const struct validation *validation, size_t first, struct slope *slope)
{
    size_t nrows = validation->paper->nrows, n = 0;
    double *numbers = xcalloc(3 * nrows, sizeof *numbers), *counts = numbers, *measured = counts + nrows, *predicted = measured + nrows;
    double c00, c01, c11, rest;
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
        gsl_fit_linear(counts, 1, measured, 1, n, &slope->measured.constant, &slope->measured.each, &c00, &c01, &c11, &rest);
        gsl_fit_linear(counts, 1, predicted, 1, n, &slope->predicted.constant, &slope->predicted.each, &c00, &c01, &c11, &rest);
    }
    free(numbers);
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
