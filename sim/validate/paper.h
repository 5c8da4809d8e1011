/* paper: a published measurement as a file: a scenario, a table of what changes from row to row, and what was measured.
 * `dtsim help paper` shows its keys. */
#ifndef DTSIM_PAPER_H
#define DTSIM_PAPER_H

#include "run/metrics.h"

/* What a column of the table holds. */
enum column_kind {
    COLUMN_ID,               /* names the row */
    COLUMN_GROUP,            /* rows whose order is to be right among themselves */
    COLUMN_EXPECT,           /* fits | oom: whether the row ran where it was measured; left out: fits */
    COLUMN_RELATIVE,         /* the id of another row: the ratio to it is compared too */
    COLUMN_MEASURED,         /* "measured.METRIC": a number in the metric's unit, as printed */
    COLUMN_PATH,             /* a dotted path of the scenario, put there as by --set; a cell that is null leaves it */
};
struct column {
    enum column_kind kind;
    const struct node *node;
    const char *path;                /* PATH */
    const struct metric *metric;     /* MEASURED */
};

struct paper_row {
    const struct node *node;         /* the cells, a sequence as long as the columns */
    const char *id, *group;          /* group: "" where there is none */
    bool oom;                        /* it ran out of memory */
    size_t relative;                 /* index of the row it is compared with, or its own */
    double *measured;                /* by column; NaN: nothing printed */
};

/* How good a table has to be, in percent; NaN: nothing is asked. */
struct bars {
    const struct node *node;
    double mean, max;                /* of the errors' sizes */
    double bias;                     /* of the mean error's size */
    double rank;                     /* least mean rank correlation within the groups (a number up to 1) */
    double memory;                   /* most rows of which it is wrong whether they fit (a count) */
    double largest;                  /* least rows whose micro-batch is found to be the largest */
};

struct paper {
    const struct node *node;
    struct arena arena;
    const char *file, *name;         /* name: the file's */
    const char *title;               /* a few words, for a table of papers */
    const char *source;              /* who measured it, and which table */
    const char *notes;               /* hardware, assumptions, what is unconfirmed; or NULL */
    const char *fitted;              /* what was fitted to these rows; or NULL: nothing */
    bool largest;                    /* the rows' micro-batches are the largest that ran: twice as much did not fit */
    struct node_holder { const struct node *node; } base, columns_node, rows_node;
    struct bars bars;
    struct column *columns;
    size_t ncolumns;
    struct paper_row *rows;
    size_t nrows;
};
extern const struct table paper_table;

/* Reads and checks the file, all but what the scenarios themselves say. Release in either case. */
int paper_load(const char *path, struct paper *paper, struct error *err);
void paper_release(struct paper *paper);
/* The scenario of a row: base, changed by its cells and then by `sets`. Takes the paper's arena: once a process. */
int paper_scenario(struct paper *paper, size_t row, const char *const *sets, size_t nsets, struct scenario *scenario,
                   struct error *err);

#endif
