/* fit_chart: what a fitted model predicts against what was measured. */
#ifndef DTSIM_FIT_CHART_H
#define DTSIM_FIT_CHART_H

#include "base/base.h"

struct fit_point {
    const char *series;      /* "matmul fp16"; points of one series come one after another */
    double measured, predicted;      /* s */
    bool held_out;           /* the fit did not see it */
};

/* Draws them into `picture`, a name that ends in .png, .svg or .pdf; its data (.tsv) and script (.gp) stay beside it.
 * Another ending is EXIT_USAGE; without gnuplot EXIT_NO_TOOL, and data and script are there all the same. */
int fit_chart_draw(const char *picture, const char *title, const struct fit_point *points, size_t count,
                   struct error *err);

#endif
