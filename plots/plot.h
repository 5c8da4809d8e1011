/* plot: charts, drawn by gnuplot from result files and from nothing else. A chart is three files in a folder: KIND.tsv
 * (what it draws), KIND.gp (how; edit it and run it again from any folder) and KIND.FORMAT; or with another name. */
#ifndef DTSIM_PLOT_H
#define DTSIM_PLOT_H

#include "base/base.h"

/* What a chart is drawn from. */
enum plot_inputs {
    PLOT_RUN,                /* the folder of one run; the chart's files go to plots/ in it */
    PLOT_STACK,              /* folders of runs, one drawn above the other; the files go to plots/ in the folder where
                              * it is one, else to plots/ in the current folder */
    PLOT_RUNS,               /* folders of runs, in their order, or the rows of sweeps that the request holds; the
                              * files go to plots/ in the current folder */
    PLOT_SWEEP,              /* folders or files of sweeps, whose rows the request holds; the chart's files go to plots/
                              * in it where it is one folder, else to plots/ in the current folder */
    PLOT_TRAINING,           /* the folder of one training; the chart's files go to plots/ in it */
    PLOT_FILES,              /* other files or folders, which the chart reads; the files go there too */
};

struct plot_kind {
    const char *name;
    enum plot_inputs inputs;
    const char *brief;       /* one line for help, without a full stop */
};

/* The i-th kind of chart; NULL past the last. */
const struct plot_kind *plot_kind_at(size_t i);
/* The kind of that name; NULL after an error of EXIT_USAGE. */
const struct plot_kind *plot_kind_find(const char *name, struct error *err);
/* The i-th format, "png" first: the default; NULL past the last. */
const char *plot_format_at(size_t i);

/* Which part of a run a Gantt chart shows. */
struct plot_view {
    const char *ranks;       /* "0,4-7"; NULL: all, or of replicas that are alike the first */
    double from, to;         /* s; to 0: the end */
    int replica;             /* -1: of its own choice */
};

/* The rows of sweeps, and which of their values a chart shows. A key is a path that the sweep sets, or a metric. */
struct plot_key {
    const char *name;        /* NULL: the chart chooses, where it can */
    bool largest;            /* of a metric: more of it is better */
};
struct plot_rows {
    struct json_t *rows;     /* an array: of sweeps as 'dtsim results --json' prints it */
    struct plot_key x, y;    /* heat: axes; pareto: metrics */
    struct plot_key by;      /* heat: the metric */
};

/* How a chart looks, where a person says so. */
struct plot_look {
    const char *title;       /* NULL: as the chart says */
    const char *const *labels;       /* of charts of several runs, one a run */
    int nlabels;             /* 0: their names */
    int width, height;       /* pixels, 96 to an inch, before the zoom; 0: as the chart chooses */
    double zoom;             /* of everything, letters too; 0: 1 */
};

struct plot_request {
    const char *kind;
    const char *const *inputs;
    int ninputs;
    const char *format;      /* NULL: the default */
    const char *folder;      /* of the chart's files, made where it is missing; NULL: as its inputs say */
    const char *name;        /* of these files, without an ending; NULL: the kind */
    struct plot_view view;   /* of kinds other than gantt: .replica = -1 and nothing else */
    struct plot_look look;
    struct plot_rows rows;   /* of PLOT_SWEEP; of other kinds the rows to draw instead of the inputs', or none */
};

/* Sets folder, name and format of the chart's files from the path of its picture, NAME.png, NAME.svg or NAME.pdf. False
 * where the path does not end so; then the request stays as it is. */
bool plot_name(struct arena *arena, const char *path, struct plot_request *request);

/* Draws one chart. An unknown kind or format is EXIT_USAGE, as are too many inputs; a bad result file EXIT_INPUT at its
 * line; without gnuplot EXIT_NO_TOOL, and the .tsv and the .gp are there all the same. */
int plot(const struct plot_request *request, struct error *err);

/* The i-th file that the request makes, the picture first, then the script and the data; NULL past the last, and after
 * an error. The path lives in the arena. */
const char *plot_file(struct arena *arena, const struct plot_request *request, size_t i, struct error *err);

#endif
