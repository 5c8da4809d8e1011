/* plot: charts of a run, drawn by gnuplot from the run's result files and from nothing else. A chart is three files in
 * DIR/plots: KIND.tsv (what it draws), KIND.gp (how; edit it and run it again from any folder) and KIND.FORMAT. */
#ifndef DTSIM_PLOT_H
#define DTSIM_PLOT_H

#include "base/base.h"

struct plot_kind {
    const char *name;
    const char *brief;       /* one line for help, without a full stop */
};

/* The i-th kind of chart; NULL past the last. */
const struct plot_kind *plot_kind_at(size_t i);
/* The i-th format, "png" first: the default; NULL past the last. */
const char *plot_format_at(size_t i);

/* Draws one chart of the run in the folder `dir`; format NULL: the default. An unknown kind or format is EXIT_USAGE, a
 * bad result file EXIT_INPUT at its line; without gnuplot EXIT_NO_TOOL, and the .tsv and the .gp are there all the
 * same. */
int plot(const char *kind, const char *dir, const char *format, struct error *err);

/* The i-th file that plot(kind, dir, format) makes, the picture first, then the script and the data; NULL past the
 * last. The path lives in the arena. */
const char *plot_file(struct arena *arena, const char *kind, const char *dir, const char *format, size_t i);

#endif
