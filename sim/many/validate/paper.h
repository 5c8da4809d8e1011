/* paper: a file with published measurements: a scenario, and a table whose rows change the scenario and give the
 * measured values. `dtsim help paper` shows its keys. */
#ifndef DTSIM_PAPER_H
#define DTSIM_PAPER_H

#include "run/metrics.h"

/* The meaning of a column of the table. */
enum column_kind {
    COLUMN_ID,               /* names the row */
    COLUMN_GROUP,            /* names a group of rows, whose order should be predicted correctly */
    COLUMN_EXPECT,           /* fits | oom: whether the measured run fitted in memory; left out: fits */
    COLUMN_RELATIVE,         /* the id of another row: the ratio of the two times is compared too */
    COLUMN_MEASURED,         /* "measured.METRIC": a number in the metric's unit, as published; "ratio.METRIC": of this
                                row to the row that it is relative to, where only that was published */
    COLUMN_PATH,             /* a dotted path of the scenario, set as by --set; a null cell changes nothing */
};
struct column {
    enum column_kind kind;
    const struct node *node;
    const char *path;                /* PATH */
    const struct metric *metric;     /* MEASURED */
    const char *name;                /* MEASURED: in tables: METRIC or "ratio.METRIC" */
    bool ratio;                      /* MEASURED */
};

struct paper_row {
    const struct node *node;         /* the cells, a sequence as long as the columns */
    const char *id, *group;          /* group: "" if there is none */
    bool oom;                        /* the measured run ran out of memory */
    size_t relative;                 /* index of the row it is compared with, or its own */
    double *measured;                /* by column; NaN: nothing published */
};

/* The accuracy that a table must have, in percent; NaN: no requirement. */
struct bars {
    const struct node *node;
    double mean, max;                /* upper bounds of the mean and of the maximum of the absolute errors */
    double bias;                     /* upper bound of the absolute value of the mean error */
    double rank;                     /* lower bound of the mean rank correlation within groups (a number up to 1) */
    double memory;                   /* most rows for which it is predicted wrongly whether they fit (a count) */
    double largest;                  /* least share of rows whose micro-batch is predicted to be the largest */
};

struct paper {
    const struct node *node;
    struct arena arena;
    const char *file, *name;         /* name: the file's, without folder and extension */
    const char *title;               /* a few words, for a table of papers */
    const char *source;              /* the authors, and the table */
    const char *notes;               /* hardware, assumptions, unconfirmed facts; or NULL */
    const char *fitted;              /* the parameters that were fitted to these rows; or NULL: none */
    bool largest;                    /* each row's micro-batch is the largest that ran: twice as much did not fit */
    struct node_holder { const struct node *node; } base, columns_node, rows_node;
    struct bars bars;
    struct column *columns;
    size_t ncolumns;
    struct paper_row *rows;
    size_t nrows;
};
extern const struct table paper_table;

/* Reads and checks the file, but not the scenarios of its rows. Call paper_release in any case. */
int paper_load(const char *path, struct paper *paper, struct error *err);
/* A table of one row: the file's scenario, with the measured seconds of its iteration. The same. */
int paper_of_scenario(const char *path, double seconds, struct paper *paper, struct error *err);
void paper_release(struct paper *paper);
/* The scenario of a row: base, changed by the row's cells, with `plain` asked plainly (plain.h), and then changed by
 * `sets`. The paper must outlive it. Release in either case. */
int paper_scenario(const struct paper *paper, size_t row, bool plain, const char *const *sets, size_t nsets,
                   struct scenario *scenario, struct error *err);

/* What a validated paper (struct validation) says to programs and in `dtsim help result`. */
extern const struct view validation_view;

#endif
